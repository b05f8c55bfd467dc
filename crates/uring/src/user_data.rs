//! The user data of operations, by which completions name them: the kind of the operation in the
//! low bits, and the number of its connection or of its read above.

pub(crate) const ACCEPT: u64 = 0;
pub(crate) const RECEIVE: u64 = 1;
pub(crate) const SEND: u64 = 2;
pub(crate) const WAKE: u64 = 3;
pub(crate) const CANCEL: u64 = 4;
pub(crate) const READ: u64 = 5;

const KIND_BITS: u32 = 3;

/// Returns the user data of an operation.
#[inline]
pub(crate) fn encode(kind: u64, number: u32) -> u64 {
    u64::from(number) << KIND_BITS | kind
}

/// Returns the kind of an operation and the number of its connection or read.
#[inline]
pub(crate) fn decode(user_data: u64) -> (u64, u32) {
    (user_data & ((1 << KIND_BITS) - 1), (user_data >> KIND_BITS) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_numbers_are_kept() {
        for kind in [ACCEPT, RECEIVE, SEND, WAKE, CANCEL, READ] {
            for number in [0, 1, 7, 8, u32::MAX] {
                assert_eq!(decode(encode(kind, number)), (kind, number));
            }
        }
    }
}
