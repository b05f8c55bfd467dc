//! Memory of receive buffers, which can be returned to the system.

use super::BUFFER_LEN;
use memmap2::MmapMut;
use std::io;

/// Minimum number of buffers with memory.
const MIN_BUFFERS: usize = 16;

/// The memory of buffers, by number. The system provides it when it is first written. Each buffer
/// has its own mapping, so that it can be unmapped alone.
pub(super) struct Memory<M> {
    maps: Vec<Option<M>>,
    /// Buffers without memory, which are not to be filled.
    unmapped: Vec<u16>,
    /// Whether buffers lose their memory when they become free.
    scarce: bool,
}

impl<M: From<MmapMut>> Memory<M> {
    pub(super) fn new(count: u16) -> io::Result<Self> {
        let maps = (0..count).map(|_| map().map(Some)).collect::<io::Result<_>>()?;
        Ok(Self { maps, unmapped: Vec::new(), scarce: false })
    }

    /// Returns the memory of a buffer; `None` while it is unmapped.
    #[inline]
    pub(super) fn get(&self, id: u16) -> Option<&M> {
        self.maps.get(usize::from(id))?.as_ref()
    }

    /// Returns the memory of a buffer for writing.
    #[inline]
    pub(super) fn get_mut(&mut self, id: u16) -> Option<&mut M> {
        self.maps.get_mut(usize::from(id))?.as_mut()
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
    pub(super) fn may_be_filled(&mut self, id: u16) -> bool {
        !self.scarce || !self.try_unmap(id)
    }

    #[cold]
    fn try_unmap(&mut self, id: u16) -> bool {
        if self.maps.len() - self.unmapped.len() <= MIN_BUFFERS {
            return false;
        }
        let map = self.maps.get_mut(usize::from(id)).and_then(Option::take);
        self.unmapped.extend(map.is_some().then_some(id));
        map.is_some()
    }

    /// Maps unmapped buffers again, and returns their numbers. Buffers for which the system refuses
    /// memory stay unmapped.
    pub(super) fn become_plentiful(&mut self) -> Vec<u16> {
        self.scarce = false;
        let Self { maps, unmapped, .. } = self;
        let filled = |id: &mut u16| {
            let map = map().ok();
            let is_there = map.is_some();
            maps[usize::from(*id)] = map;
            is_there
        };
        unmapped.extract_if(.., filled).collect()
    }
}

fn map<M: From<MmapMut>>() -> io::Result<M> {
    Ok(MmapMut::map_anon(BUFFER_LEN)?.into())
}
