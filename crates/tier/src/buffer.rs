//! Buffers whose memory begins at a multiple of a block, as direct I/O requires.

use crate::layout::BLOCK;
use std::fmt;

/// A buffer whose bytes begin at a multiple of a block in memory.
pub struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// Creates a buffer of `len` zeros.
    #[must_use]
    pub fn new(len: usize) -> Self {
        // Zeroed pages come from the system as they are used, and the vector is never enlarged, so
        // it does not move.
        let bytes = vec![0; len + BLOCK];
        let start = bytes.as_ptr().align_offset(BLOCK);
        Self { bytes, start, len }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// Returns the bytes, to be changed.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    /// Returns the length.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the buffer has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Enlarges the buffer to at least `len` bytes. The bytes are not kept.
    pub fn reserve(&mut self, len: usize) {
        if self.len < len {
            *self = Self::new(len);
        }
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned() {
        for len in [0, 1, 4096, 100_000] {
            let mut buffer = AlignedBuffer::new(len);
            assert_eq!(buffer.as_slice().len(), len);
            buffer.reserve(len * 2);
            assert_eq!(buffer.as_mut_slice().as_ptr().align_offset(BLOCK), 0);
            assert_eq!(buffer.len(), len * 2);
        }
    }
}
