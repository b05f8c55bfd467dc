//! Where hits are copied to.

use std::ops::{Deref, DerefMut};

const PAGE: usize = 4096;
/// Where in a page buffers begin. On some processors a copy takes several times as long if its
/// destination lies a little further on in its page than its source does; where an allocator puts
/// buffers, and a cache its entries, would decide who is hit by that.
const BEGIN: usize = PAGE / 4;

/// Memory for one entry.
pub struct Buffer {
    bytes: Vec<u8>,
    begin: usize,
    len: usize,
}

impl Buffer {
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + PAGE];
        let begin = (BEGIN + PAGE - bytes.as_ptr().addr() % PAGE) % PAGE;
        Self { bytes, begin, len }
    }

    /// Takes an entry that a cache answered in memory of its own.
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
