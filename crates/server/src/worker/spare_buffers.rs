//! Buffers for answers that wait to be used again: fresh memory costs the kernel more than most
//! answers take.

/// Bytes of all buffers of a worker, at most, and as a part of the budget.
const MAX_HELD: u64 = 8 << 20;
const HELD_RATIO: u64 = 64;

/// Buffers without content, the warmest last.
pub(crate) struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    held: usize,
    max: usize,
}

impl SpareBuffers {
    /// For a worker of a cache with this budget.
    pub(crate) fn new(memory: u64) -> Self {
        let max = (memory / HELD_RATIO).min(MAX_HELD) as usize;
        Self { buffers: Vec::new(), held: 0, max }
    }

    /// Keeps a buffer, unless that is too much. Answers the bytes that are held for it.
    pub(crate) fn put(&mut self, buffer: Vec<u8>) -> isize {
        let len = buffer.capacity();
        if self.held + len > self.max {
            return 0;
        }
        self.held += len;
        self.buffers.push(buffer);
        len.cast_signed()
    }

    /// A buffer, if there is one.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop()?;
        self.held -= buffer.capacity();
        Some(buffer)
    }

    /// Lets all buffers go. Answers the bytes that were held for them.
    pub(crate) fn clear(&mut self) -> usize {
        self.buffers = Vec::new();
        std::mem::take(&mut self.held)
    }
}
