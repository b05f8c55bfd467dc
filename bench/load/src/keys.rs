//! The keys and values of requests.

use nuthatch_bench::Random;

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 16;

/// The prefix of every key, and therefore of every value. The rest of a key is digits.
pub(crate) const KEY_PREFIX: &[u8; 4] = b"key:";

/// Returns the text of a key.
pub(crate) fn key(number: u32) -> [u8; KEY_BYTES] {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[KEY_PREFIX.len()..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Values of one size. Each begins with its key, which identifies it in a reply, and continues with
/// letters from a random position. No value contains a byte that ends a message.
#[derive(Debug)]
pub(crate) struct Values {
    size: usize,
    letters: Vec<u8>,
}

/// Number of positions at which the letters of a value may begin.
const PLACES: usize = 4096;

impl Values {
    pub(crate) fn new(size: usize) -> Self {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut random = Random::new(1);
        let letters = (0..PLACES + size).map(|_| LETTERS[random.below(64) as usize]).collect();
        Self { size, letters }
    }

    /// Appends the value of a key.
    pub(crate) fn append(&self, number: u32, out: &mut Vec<u8>) {
        let of_key = self.size.min(KEY_BYTES);
        out.extend_from_slice(&key(number)[..of_key]);
        let place = number as usize % PLACES;
        out.extend_from_slice(&self.letters[place..place + self.size - of_key]);
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sixteen_bytes() {
        assert_eq!(&key(0), b"key:000000000000");
        assert_eq!(&key(u32::MAX), b"key:004294967295");
    }

    #[test]
    fn values_begin_with_their_key_and_have_their_size() {
        for size in [1, 4, 15, 16, 17, 100, 10_240] {
            let values = Values::new(size);
            for number in [0, 7, 4095, 4096, u32::MAX] {
                let mut value = Vec::new();
                values.append(number, &mut value);
                assert_eq!(value.len(), size);
                let of_key = size.min(KEY_BYTES);
                assert_eq!(value[..of_key], key(number)[..of_key]);
                assert!(value.iter().all(u8::is_ascii_graphic), "{value:?}");
            }
        }
    }
}
