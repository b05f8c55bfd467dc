//! Buffers of encoded rows in memory.

use super::row::{self, Row, RowRef, RowSpace};
use crate::prefetch::prefetch;
use memmap2::MmapMut;
use std::ops::Deref;

/// Length in bytes of a mapped buffer: a multiple of the huge page size.
const MAPPED_LEN: usize = 4 << 20;

/// A buffer of rows. Rows that stay in memory until the end of the input use huge pages if the
/// system provides them: a page fault takes longer than writing the rows of a small page.
pub(crate) enum Buffer {
    /// A mapping, and the number of its bytes that are in use.
    Mapped(MmapMut, usize),
    Plain(Vec<u8>),
}

impl Buffer {
    /// Returns an empty buffer of at least `min_len` bytes, usually 4 MiB.
    fn with_capacity(min_len: usize) -> Self {
        let mapped = (min_len <= MAPPED_LEN).then(|| MmapMut::map_anon(MAPPED_LEN).ok()).flatten();
        let Some(map) = mapped else { return Self::Plain(Vec::with_capacity(min_len)) };
        #[cfg(target_os = "linux")]
        {
            // Only advice: without huge pages the build is slower.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Self::Mapped(map, 0)
    }

    /// Returns whether `len` more bytes fit.
    #[inline]
    fn has_space(&self, len: usize) -> bool {
        match self {
            Self::Mapped(map, used) => map.len() - used >= len,
            Self::Plain(bytes) => bytes.capacity() - bytes.len() >= len,
        }
    }

    /// Returns the allocated number of bytes.
    fn memory(&self) -> usize {
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

/// A view of the buffers that row references refer to.
#[derive(Clone, Copy)]
pub(crate) struct Buffers<'a>(&'a [Buffer]);

impl<'a> Buffers<'a> {
    /// Returns a view of these buffers.
    pub(crate) fn of(buffers: &'a [Buffer]) -> Self {
        Self(buffers)
    }

    /// Returns the bytes of an encoded row.
    pub(crate) fn bytes(self, at: RowRef) -> &'a [u8] {
        row::bytes_at(&self.0[at.buffer()], at.offset())
    }

    /// Decodes a row.
    #[inline]
    pub(crate) fn row(self, at: RowRef) -> Row<'a> {
        row::read(&self.0[at.buffer()][at.offset()..])
    }

    /// Prefetches a row.
    #[inline]
    pub(crate) fn prefetch(self, at: RowRef) {
        let row = &self.0[at.buffer()][at.offset()..];
        prefetch(&row[0]);
        // Most rows extend into the next cache line.
        if let Some(byte) = row.get(64) {
            prefetch(byte);
        }
    }
}

/// The rows in memory that are not spilled yet.
#[derive(Default)]
pub(crate) struct Arena {
    buffers: Vec<Buffer>,
    memory: usize,
    /// Offset of the bytes that were allocated last, in the last buffer.
    last_start: usize,
}

impl Arena {
    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    pub(crate) fn into_buffers(self) -> Vec<Buffer> {
        self.buffers
    }

    /// Returns the allocated number of bytes.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Appends `len` bytes and returns them, to be overwritten.
    #[inline]
    pub(crate) fn allocate(&mut self, len: usize) -> &mut [u8] {
        if !self.buffers.last().is_some_and(|buffer| buffer.has_space(len)) {
            let buffer = Buffer::with_capacity(len);
            self.memory += buffer.memory();
            self.buffers.push(buffer);
        }
        self.last_start = self.buffers.last().map_or(0, |buffer| buffer.len());
        match self.buffers.last_mut() {
            Some(Buffer::Mapped(map, used)) => {
                *used += len;
                &mut map[*used - len..*used]
            }
            Some(Buffer::Plain(bytes)) => {
                bytes.resize(self.last_start + len, 0);
                &mut bytes[self.last_start..]
            }
            None => &mut [],
        }
    }

    /// Returns references to the rows in the bytes that were allocated last.
    #[inline]
    pub(crate) fn last_rows(&self) -> impl Iterator<Item = RowRef> {
        let last = self.buffers.last().map_or(&[][..], |buffer| buffer);
        row::refs_of(self.buffers.len().saturating_sub(1), last, self.last_start)
    }
}

impl RowSpace for Arena {
    #[inline]
    fn append_row(&mut self, parts: [&[u8]; 3]) {
        let [head, key, payload] = parts;
        let row = self.allocate(head.len() + key.len() + payload.len());
        let (to_head, rest) = row.split_at_mut(head.len());
        let (to_key, to_payload) = rest.split_at_mut(key.len());
        to_head.copy_from_slice(head);
        to_key.copy_from_slice(key);
        to_payload.copy_from_slice(payload);
    }
}
