//! A buffer with received bytes.

/// Bytes of a receive buffer.
pub const BUFFER_LEN: usize = 16 << 10;

/// A buffer with received bytes, to be returned to its ring or pool after reading.
#[derive(Debug)]
pub struct Filled {
    /// The number of the buffer. It is unique in the process, so another ring or pool has no such
    /// buffer.
    pub(super) number: u64,
    pub(super) len: u32,
}

impl Filled {
    /// Returns the number of bytes, at least one.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a filled buffer is not empty")]
    pub fn len(&self) -> usize {
        self.len as usize
    }
}
