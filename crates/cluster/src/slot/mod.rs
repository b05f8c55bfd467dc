//! Slots: the units of ownership. A key belongs to one of 16,384 slots, exactly as in Redis
//! Cluster, so that its clients compute the slot of a key by themselves.

mod crc16;
mod set;

pub use set::{SlotRange, SlotSet};

use crc16::{crc16, crc16_without};

/// Number of slots.
pub const SLOTS: usize = 16_384;

/// Returns the slot of a key: CRC16 of the key, or of its hash tag, modulo 16,384.
///
/// # Examples
///
/// ```
/// use nuthatch_cluster::slot::slot_of;
///
/// assert_eq!(slot_of(b"foo"), 12_182);
/// // Keys with one hash tag belong to one slot.
/// assert_eq!(slot_of(b"{user:7}.name"), slot_of(b"{user:7}.mail"));
/// ```
#[inline]
#[must_use]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16_without(key, b'{').unwrap_or_else(|| crc16_of_tag(key)) % SLOTS as u16
}

/// Returns the checksum of a key that may have a hash tag. Not inlined: few keys have one.
#[cold]
fn crc16_of_tag(key: &[u8]) -> u16 {
    crc16(hash_tag(key))
}

/// Returns the part of a key that is hashed: the bytes between the first `{` and the first `}`
/// after it. The whole key, if one of them is missing or nothing is between them.
#[must_use]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_tags_are_those_of_redis_cluster() {
        for (key, tag) in [
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("foo}bar{", "foo}bar{"),
            ("a}{b}", "b"),
            ("", ""),
        ] {
            assert_eq!(hash_tag(key.as_bytes()), tag.as_bytes(), "{key}");
        }
    }
}
