//! Hashes of passwords and tokens.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The SHA-256 of a password or token. Has no `Debug`, so that no log shows it. Comparisons take
/// constant time, so that their duration reveals nothing.
#[derive(Clone, Copy)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// Hashes a password or token.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Parses 64 hexadecimal digits, as `sha256sum` prints them. `None` for other text.
    #[must_use]
    pub fn parse(digits: &str) -> Option<Self> {
        let mut hash = [0; 32];
        if digits.len() != 2 * hash.len() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }
}

impl ConstantTimeEq for SecretHash {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_equal(one: SecretHash, other: SecretHash) -> bool {
        one.ct_eq(&other).into()
    }

    #[test]
    fn hashes_are_those_that_sha256sum_prints() {
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for digits in [digits.to_owned(), digits.to_uppercase()] {
            let parsed = SecretHash::parse(&digits).expect("a hash");
            assert!(are_equal(parsed, SecretHash::of(b"abc")));
            assert!(!are_equal(parsed, SecretHash::of(b"abd")));
        }
    }

    #[test]
    fn other_text_is_no_hash() {
        let digits = "0".repeat(64);
        let with_sign = format!("+{}", &digits[1..]);
        let not_ascii = format!("\u{e9}{}", &digits[2..]);
        for text in ["", "0", &digits[1..], &format!("{digits}0"), &with_sign, &not_ascii] {
            assert!(SecretHash::parse(text).is_none(), "{text}");
        }
    }
}
