//! Replies to GET and GETZ; the other requests have none.

use super::layout::REPLY_PREFIX;
use crate::protocol::Framing;

impl Framing {
    /// Writes what is before a value of `len` bytes. The value must follow, from wherever it is.
    /// `None` is a value of more bytes than a length can tell; then nothing is written.
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

    /// Writes that there is no value, which looks like an empty one: clients cannot tell them
    /// apart.
    #[inline]
    pub fn miss(self, out: &mut Vec<u8>) {
        let prefix: &[u8] = if self == Self::Ver6 { &REPLY_PREFIX } else { &[] };
        out.extend_from_slice(prefix);
        out.extend_from_slice(&[0; 4]);
    }
}
