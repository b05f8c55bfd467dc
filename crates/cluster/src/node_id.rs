//! Identifiers of nodes.

use crate::text::InvalidText;
use std::fmt;
use std::str::FromStr;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The identifier of a node: 160 random bits, written as 40 hexadecimal digits, as in Redis
/// Cluster. A node keeps it across restarts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId([u8; 20]);

impl NodeId {
    /// Draws an identifier from the random numbers of the kernel.
    ///
    /// # Errors
    ///
    /// Fails if the kernel has no random numbers yet, early during the boot.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 20];
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = &mut bytes[filled..];
            filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
        }
        Ok(Self(bytes))
    }

    /// Returns an identifier that begins with this number, for tests and simulations.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        let mut bytes = [0; 20];
        for (byte, shift) in bytes.iter_mut().zip([24, 16, 8, 0]) {
            *byte = (number >> shift) as u8;
        }
        Self(bytes)
    }
}

impl FromStr for NodeId {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let error = || InvalidText::new("40 hexadecimal digits in lower case", text);
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(error()),
        };
        if text.len() != 40 {
            return Err(error());
        }
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 40];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.pad(str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_40_digits() {
        let id = NodeId::random().expect("random numbers");
        assert_eq!(id.to_string().len(), 40);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(NodeId::random().expect("random numbers"), id);
        assert!(NodeId::numbered(0x0102_0304).to_string().starts_with("010203040000"));
    }

    #[test]
    fn other_text_is_refused() {
        let upper = "A".repeat(40);
        for text in ["", "12", &"0".repeat(39), &"0".repeat(41), &"g".repeat(40), &upper] {
            let error = text.parse::<NodeId>().expect_err(text);
            assert!(error.to_string().starts_with("expected 40 hexadecimal digits"), "{error}");
        }
    }
}
