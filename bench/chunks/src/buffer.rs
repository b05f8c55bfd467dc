//! The destination buffer of hits.

use std::ops::{Deref, DerefMut};

const PAGE: usize = 4096;
/// The offset of a buffer in its page. On some processors, a copy is several times slower if the
/// destination has a slightly higher page offset than the source. A fixed offset makes this
/// independent of the allocator and of the layout of the cache's entries.
const PAGE_OFFSET: usize = PAGE / 4;

/// A buffer for one entry.
pub struct Buffer {
    bytes: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Buffer {
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + PAGE];
        let begin = (PAGE_OFFSET + PAGE - bytes.as_ptr().addr() % PAGE) % PAGE;
        Self { bytes, begin, len }
    }

    /// Replaces the buffer by an entry that the cache has returned in its own allocation.
    #[cfg(feature = "rivals")]
    pub fn take(&mut self, bytes: Vec<u8>) {
        *self = Self { begin: 0, len: bytes.len(), bytes };
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.begin..self.begin + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..self.begin + self.len]
    }
}
