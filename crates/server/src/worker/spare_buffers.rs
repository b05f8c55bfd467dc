//! Output buffers that are used again, since fresh memory costs more than most replies.

/// Maximum bytes of all spare buffers of a worker, whatever the budget.
const MAX_HELD: u64 = 8 << 20;
/// The spare buffers of a worker hold at most one of this many bytes of the budget.
const HELD_RATIO: u64 = 64;

/// Empty buffers. The last one is the most recently used.
pub(crate) struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    held: usize,
    max: usize,
}

impl SpareBuffers {
    /// Creates the pool of a worker for a cache with this budget.
    pub(crate) fn new(memory: u64) -> Self {
        let max = (memory / HELD_RATIO).min(MAX_HELD) as usize;
        Self { buffers: Vec::new(), held: 0, max }
    }

    /// Adds an empty buffer unless the maximum would be exceeded. Returns the bytes by which the
    /// memory of spare buffers grows.
    pub(crate) fn put(&mut self, buffer: Vec<u8>) -> isize {
        let len = buffer.capacity();
        if self.held + len > self.max {
            return 0;
        }
        self.held += len;
        self.buffers.push(buffer);
        len.cast_signed()
    }

    /// Takes a buffer, if there is one.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop()?;
        self.held -= buffer.capacity();
        Some(buffer)
    }

    /// Frees all buffers. Returns the bytes that were held.
    pub(crate) fn clear(&mut self) -> usize {
        self.buffers = Vec::new();
        std::mem::take(&mut self.held)
    }
}
