//! Memory of receive buffers, which can be returned to the system.

use super::filled::{BUFFER_LEN, Filled};
use memmap2::MmapMut;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum number of buffers with memory.
const MIN_BUFFERS: usize = 16;

/// The number of the next buffer of this process.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The memory of buffers, by index. The system provides it when it is first written. Each buffer
/// has its own mapping, so that it can be unmapped alone.
pub(super) struct Memory<M> {
    maps: Vec<Option<M>>,
    /// The number of the first buffer. Those of the others follow.
    first_number: u64,
    /// Buffers without memory, which are not to be filled.
    unmapped: Vec<u16>,
    /// Whether buffers lose their memory when they become free.
    scarce: bool,
}

impl<M: From<MmapMut>> Memory<M> {
    pub(super) fn new(count: u16) -> io::Result<Self> {
        let maps = (0..count).map(|_| map().map(Some)).collect::<io::Result<_>>()?;
        let first_number = NEXT_NUMBER.fetch_add(u64::from(count), Ordering::Relaxed);
        Ok(Self { maps, first_number, unmapped: Vec::new(), scarce: false })
    }

    /// Returns a buffer with received bytes.
    #[inline]
    pub(super) fn filled(&self, index: u16, len: u32) -> Filled {
        let number = self.first_number + u64::from(index);
        Filled { number, len: len.min(BUFFER_LEN as u32) }
    }

    /// Returns the index of a buffer. That of a buffer from elsewhere is too large.
    #[inline]
    pub(super) fn index(&self, filled: &Filled) -> usize {
        usize::try_from(filled.number.wrapping_sub(self.first_number)).unwrap_or(usize::MAX)
    }

    /// Returns the memory of a buffer; `None` while it is unmapped.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&M> {
        self.maps.get(index)?.as_ref()
    }

    /// Returns the memory of a buffer for writing.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut M> {
        self.maps.get_mut(index)?.as_mut()
    }

    /// Returns the bytes of all buffers that have memory.
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.maps.len() - self.unmapped.len()) * BUFFER_LEN
    }

    /// Releases the memory of buffers as they become free from now on, except for a minimum.
    pub(super) fn become_scarce(&mut self) {
        self.scarce = true;
    }

    /// Returns whether a free buffer may be filled again. If not, it has lost its memory.
    #[inline]
    pub(super) fn may_be_filled(&mut self, index: usize) -> bool {
        !self.scarce || !self.try_unmap(index)
    }

    #[cold]
    fn try_unmap(&mut self, index: usize) -> bool {
        if self.maps.len() - self.unmapped.len() <= MIN_BUFFERS {
            return false;
        }
        let map = self.maps.get_mut(index).and_then(Option::take);
        self.unmapped.extend(map.is_some().then_some(index as u16));
        map.is_some()
    }

    /// Maps unmapped buffers again, and returns their indexes. Buffers for which the system refuses
    /// memory stay unmapped.
    pub(super) fn become_plentiful(&mut self) -> Vec<u16> {
        self.scarce = false;
        let Self { maps, unmapped, .. } = self;
        let mapped = |index: &mut u16| {
            let map = map().ok();
            let is_there = map.is_some();
            maps[usize::from(*index)] = map;
            is_there
        };
        unmapped.extract_if(.., mapped).collect()
    }
}

fn map<M: From<MmapMut>>() -> io::Result<M> {
    Ok(MmapMut::map_anon(BUFFER_LEN)?.into())
}
