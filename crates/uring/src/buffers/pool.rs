//! Receive buffers for a backend that does not provide them to the kernel.

use super::filled::{BUFFER_LEN, Filled};
use super::memory::Memory;
use memmap2::MmapMut;
use std::io;

/// A pool of buffers that the caller fills. The last one that was returned is used first, since it
/// is likely to be in the processor's cache.
pub struct BufferPool {
    memory: Memory<MmapMut>,
    free: Vec<u16>,
}

impl BufferPool {
    /// Creates this many buffers.
    ///
    /// # Errors
    ///
    /// Fails if the system has no memory for them.
    pub fn new(count: u16) -> io::Result<Self> {
        let free = (0..count).rev().collect();
        Ok(Self { memory: Memory::new(count)?, free })
    }

    /// Fills a free buffer. The outer `None` means that no buffer is free, the inner one that
    /// nothing was received.
    #[inline]
    pub fn fill<E>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Option<Result<Option<Filled>, E>> {
        let index = *self.free.last()?;
        let len = match fill(self.memory.get_mut(usize::from(index))?) {
            Ok(0) => return Some(Ok(None)),
            Ok(len) => len.min(BUFFER_LEN) as u32,
            Err(error) => return Some(Err(error)),
        };
        self.free.pop();
        Some(Ok(Some(self.memory.filled(index, len))))
    }

    /// Returns received bytes, until their buffer is returned. Those of a buffer of another pool
    /// are empty.
    #[inline]
    pub fn bytes(&self, filled: &Filled) -> &[u8] {
        let memory = self.memory.get(self.memory.index(filled));
        memory.map_or(&[], |memory| &memory[..filled.len()])
    }

    /// Returns a buffer to the pool that has filled it.
    #[inline]
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is returned only once")]
    pub fn give_back(&mut self, filled: Filled) {
        let index = self.memory.index(&filled);
        debug_assert!(self.memory.get(index).is_some(), "a buffer of another pool");
        if self.memory.may_be_filled(index) {
            self.free.push(index as u16);
        }
    }

    /// Returns the bytes of memory of all buffers.
    #[inline]
    pub fn memory_len(&self) -> usize {
        self.memory.len()
    }

    /// Limits the memory of buffers, or ends the limit. A buffer in use keeps its memory until it
    /// is returned.
    pub fn save_memory(&mut self, is_scarce: bool) {
        let Self { memory, free } = self;
        if is_scarce {
            memory.become_scarce();
            // Those that were used least recently come first.
            free.retain(|index| memory.may_be_filled(usize::from(*index)));
        } else {
            let cold = memory.become_plentiful();
            free.splice(0..0, cold);
        }
    }
}
