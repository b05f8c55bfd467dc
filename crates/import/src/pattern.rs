//! Patterns of keys: `*` matches any text, `?` one character.

use std::convert::Infallible;
use std::str::FromStr;

/// A pattern for whole keys: `*` matches any text, `?` matches one UTF-8 character. All other
/// characters match themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<u8>);

impl FromStr for Pattern {
    type Err = Infallible;

    fn from_str(pattern: &str) -> Result<Self, Infallible> {
        Ok(Self(pattern.as_bytes().to_vec()))
    }
}

impl Pattern {
    /// Returns whether the whole key matches.
    pub fn matches(&self, key: &[u8]) -> bool {
        let pattern = &self.0;
        let (mut p, mut k) = (0, 0);
        // The positions to continue at if the text that matches the last star must be longer.
        let mut retry = None;
        loop {
            match pattern.get(p) {
                None if k == key.len() => return true,
                Some(b'*') => {
                    p += 1;
                    retry = Some((p, k));
                    continue;
                }
                Some(b'?') if k < key.len() => {
                    p += 1;
                    k += character_len(&key[k..]);
                    continue;
                }
                Some(byte) if key.get(k) == Some(byte) => {
                    p += 1;
                    k += 1;
                    continue;
                }
                _ => {}
            }
            match &mut retry {
                Some((after_star, from)) if *from < key.len() => {
                    *from += 1;
                    (p, k) = (*after_star, *from);
                }
                _ => return false,
            }
        }
    }
}

/// Returns the length of the first character: a byte and the bytes that continue it in UTF-8.
fn character_len(key: &[u8]) -> usize {
    1 + key[1..].iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count()
}

/// The keys whose lists of numbers are stored as 32-bit floats.
#[derive(Debug, Clone, Default)]
pub(crate) struct F32Keys(pub(crate) Vec<Pattern>);

impl F32Keys {
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        !self.0.is_empty() && self.0.iter().any(|pattern| pattern.matches(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_keys() {
        for (pattern, key, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("*.vector", "user:1.vector", true),
            ("*.vector", "user:1.vectors", false),
            ("user:*.v?", "user:1.v2", true),
            ("user:*.v?", "user:1.v", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("**a**", "bab", true),
            ("n?t", "nüt", true),
            ("n??t", "nüt", false),
            ("*?", "ü", true),
            ("[ab]", "a", false),
        ] {
            let Ok(parsed) = Pattern::from_str(pattern);
            assert_eq!(parsed.matches(key.as_bytes()), expected, "{pattern} and {key}");
        }
    }

    #[test]
    fn many_stars_take_little_time() {
        let Ok(pattern) = Pattern::from_str(&"*a".repeat(30));
        assert!(!pattern.matches(&b"ab".repeat(20)));
    }
}
