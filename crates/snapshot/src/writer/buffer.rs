//! Memory that rows lie in.

use memmap2::MmapMut;
use std::ops::Deref;

/// Length of a buffer for rows that stay in memory: whole huge pages.
const LEN: usize = 4 << 20;

/// Where rows are written one after the other.
pub(crate) trait Room {
    /// So many bytes at the end, to be overwritten.
    fn room(&mut self, len: usize) -> &mut [u8];
}

impl Room for Vec<u8> {
    #[inline]
    fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.len();
        self.resize(start + len, 0);
        &mut self[start..]
    }
}

/// Rows in memory. Those that wait for the end of the input lie on huge pages where the system
/// grants them: a page fault takes longer than writing the rows of a small page.
pub(crate) enum Buffer {
    /// Mapped, and how many bytes of it are in use.
    Mapped(MmapMut, usize),
    Plain(Vec<u8>),
}

impl Buffer {
    /// A buffer with room for a few megabytes, and at least for so many bytes.
    pub(crate) fn with_room(len: usize) -> Self {
        let mapped = (len <= LEN).then(|| MmapMut::map_anon(LEN).ok()).flatten();
        let Some(map) = mapped else { return Self::Plain(Vec::with_capacity(len)) };
        #[cfg(target_os = "linux")]
        {
            // Advice only.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Self::Mapped(map, 0)
    }

    /// Whether so many more bytes fit.
    #[inline]
    pub(crate) fn has_room(&self, len: usize) -> bool {
        match self {
            Self::Mapped(map, used) => map.len() - used >= len,
            Self::Plain(bytes) => bytes.capacity() - bytes.len() >= len,
        }
    }

    /// Memory held, in bytes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Mapped(map, _) => map.len(),
            Self::Plain(bytes) => bytes.capacity(),
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map, used) => &map[..*used],
            Self::Plain(bytes) => bytes,
        }
    }
}

/// All rows given so far that are in memory.
#[derive(Default)]
pub(crate) struct Arena {
    buffers: Vec<Buffer>,
    memory: usize,
}

impl Arena {
    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    pub(crate) fn into_buffers(self) -> Vec<Buffer> {
        self.buffers
    }

    /// Memory held, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }
}

impl Room for Arena {
    #[inline]
    fn room(&mut self, len: usize) -> &mut [u8] {
        if !self.buffers.last().is_some_and(|buffer| buffer.has_room(len)) {
            let buffer = Buffer::with_room(len);
            self.memory += buffer.memory();
            self.buffers.push(buffer);
        }
        match self.buffers.last_mut() {
            Some(Buffer::Mapped(map, used)) => {
                *used += len;
                &mut map[*used - len..*used]
            }
            Some(Buffer::Plain(bytes)) => bytes.room(len),
            None => &mut [],
        }
    }
}
