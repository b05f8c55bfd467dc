//! Memory of a reactor's buffers, which goes back to the system while there is little of it.

use super::BUFFER_LEN;
use memmap2::MmapMut;
use std::io;

/// So many buffers have memory in any case.
const MIN_BUFFERS: usize = 16;

/// The memory of buffers, by their numbers. It is taken from the system as they are filled. Each
/// buffer has memory of its own, so that it can go by itself.
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

    /// A buffer's memory; none while it rests.
    #[inline]
    pub(super) fn get(&self, id: u16) -> Option<&M> {
        self.maps.get(usize::from(id))?.as_ref()
    }

    /// As [`get`](Self::get), to be written to.
    #[inline]
    pub(super) fn get_mut(&mut self, id: u16) -> Option<&mut M> {
        self.maps.get_mut(usize::from(id))?.as_mut()
    }

    /// Bytes of all buffers that have memory.
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.maps.len() - self.unmapped.len()) * BUFFER_LEN
    }

    /// From here on free buffers lose their memory, but for a few.
    pub(super) fn become_scarce(&mut self) {
        self.scarce = true;
    }

    /// Whether a buffer that is free may be filled again. If not, its memory is gone.
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

    /// Buffers keep their memory from here on, and those have some again that are answered.
    /// Without it, which the system may refuse, they stay as they are.
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
