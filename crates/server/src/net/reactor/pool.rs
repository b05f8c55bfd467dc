//! Memory to receive into, where the kernel takes no buffers by itself.

use super::memory::Memory;
use super::{BUFFER_LEN, Filled};
use memmap2::MmapMut;
use std::io;

/// A number of buffers. The one that came back last is given out first, as it is likely to be in
/// the processor's cache.
pub(crate) struct Pool {
    memory: Memory<MmapMut>,
    free: Vec<u16>,
}

impl Pool {
    pub(crate) fn new(count: u16) -> io::Result<Self> {
        let free = (0..count).rev().collect();
        Ok(Self { memory: Memory::new(count)?, free })
    }

    /// Fills a free buffer. None if there is none, or if nothing was put into it.
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

    /// Makes a buffer free again.
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is given back only once")]
    pub(crate) fn put(&mut self, filled: Filled) {
        if self.memory.may_be_filled(filled.id) {
            self.free.push(filled.id);
        }
    }

    /// Bytes of memory.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// Does with little memory, or with all again.
    pub(crate) fn spare(&mut self, little: bool) {
        let Self { memory, free } = self;
        if little {
            memory.become_scarce();
            // The coldest first.
            free.retain(|id| memory.may_be_filled(*id));
        } else {
            let cold = memory.become_plentiful();
            free.splice(0..0, cold);
        }
    }
}
