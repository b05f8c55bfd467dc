//! Replies to `GET` and `GETZ`. Other requests have none.

use super::layout::REPLY_PREFIX;
use crate::protocol::Framing;

impl Framing {
    /// Writes the header of a value of `len` bytes. The caller appends the value. Returns `None`
    /// and writes nothing if the length exceeds the field.
    #[inline]
    #[must_use = "a value without its length cannot be sent"]
    pub fn value_header(self, out: &mut Vec<u8>, len: usize) -> Option<()> {
        let len = i32::try_from(len).ok()?;
        if self == Self::Ver6 {
            out.extend_from_slice(&REPLY_PREFIX);
        }
        out.extend_from_slice(&len.to_le_bytes());
        Some(())
    }

    /// Writes the reply for a missing key: length 0. Clients cannot distinguish it from an empty
    /// value.
    #[inline]
    pub fn miss(self, out: &mut Vec<u8>) {
        let prefix: &[u8] = if self == Self::Ver6 { &REPLY_PREFIX } else { &[] };
        out.extend_from_slice(prefix);
        out.extend_from_slice(&[0; 4]);
    }
}
