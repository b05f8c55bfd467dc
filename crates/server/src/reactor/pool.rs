//! Memory to receive into, where the kernel takes no buffers by itself.

use super::{BUFFER_LEN, Filled};

/// A number of buffers. Memory is taken from the system as buffers are filled; the one that came
/// back last is given out first, as it is likely to be in the processor's cache.
pub(crate) struct Pool {
    memory: Vec<u8>,
    free: Vec<u16>,
}

impl Pool {
    pub(crate) fn new(count: u16) -> Self {
        let free = (0..count).rev().collect();
        Self { memory: vec![0; usize::from(count) * BUFFER_LEN], free }
    }

    /// Fills a free buffer. None if there is none, or if nothing was put into it.
    pub(crate) fn fill<E>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Option<Result<Option<Filled>, E>> {
        let id = *self.free.last()?;
        let start = usize::from(id) * BUFFER_LEN;
        let len = match fill(&mut self.memory[start..start + BUFFER_LEN]) {
            Ok(0) => return Some(Ok(None)),
            Ok(len) => len.min(BUFFER_LEN) as u32,
            Err(error) => return Some(Err(error)),
        };
        self.free.pop();
        Some(Ok(Some(Filled { id, len })))
    }

    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        let start = usize::from(filled.id) * BUFFER_LEN;
        &self.memory[start..start + filled.len()]
    }

    /// Makes a buffer free again.
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is given back only once")]
    pub(crate) fn put(&mut self, filled: Filled) {
        self.free.push(filled.id);
    }
}
