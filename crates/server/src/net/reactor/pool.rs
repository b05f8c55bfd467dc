//! Receive buffers for a backend that does not provide them to the kernel.

use super::memory::Memory;
use super::{BUFFER_LEN, Filled};
use memmap2::MmapMut;
use std::io;

/// A pool of buffers. The last one that was returned is used first, since it is likely to be in the
/// processor's cache.
pub(crate) struct Pool {
    memory: Memory<MmapMut>,
    free: Vec<u16>,
}

impl Pool {
    pub(crate) fn new(count: u16) -> io::Result<Self> {
        let free = (0..count).rev().collect();
        Ok(Self { memory: Memory::new(count)?, free })
    }

    /// Fills a free buffer. The outer `None` means that no buffer is free, the inner one that
    /// nothing was received.
    pub(crate) fn fill<E>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Option<Result<Option<Filled>, E>> {
        let id = *self.free.last()?;
        let len = match fill(self.memory.get_mut(id)?) {
            Ok(0) => return Some(Ok(None)),
            Ok(len) => len.min(BUFFER_LEN) as u32,
            Err(error) => return Some(Err(error)),
        };
        self.free.pop();
        Some(Ok(Some(Filled { id, len })))
    }

    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        self.memory.get(filled.id).map_or(&[], |memory| &memory[..filled.len()])
    }

    /// Returns a buffer.
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is given back only once")]
    pub(crate) fn put(&mut self, filled: Filled) {
        if self.memory.may_be_filled(filled.id) {
            self.free.push(filled.id);
        }
    }

    /// Returns the bytes of memory.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Limits the memory, or ends the limit.
    pub(crate) fn save_memory(&mut self, little: bool) {
        let Self { memory, free } = self;
        if little {
            memory.become_scarce();
            // Those that were used least recently come first.
            free.retain(|id| memory.may_be_filled(*id));
        } else {
            let cold = memory.become_plentiful();
            free.splice(0..0, cold);
        }
    }
}
