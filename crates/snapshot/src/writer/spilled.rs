//! Spilled rows: rows in a temporary file, grouped by slice of the key hash.
//!
//! The memory for reading a slice is bounded by the rows that are kept, not by all rows: after a
//! limited number of bytes, duplicates are resolved before more rows are read.

use super::buffer::{Buffer, Buffers};
use super::duplicates::{self, DuplicatesFound, OnDuplicate};
use super::row::{self, MIN_SPILLED_BLOB_LEN, Payload, RowRef};
use super::scatter::Scattered;
use super::spill::SpillFile;
use crate::error::Result;
use std::ops::Range;
use std::path::Path;

/// Number of neighbouring slices that are written as one group.
pub(crate) const SLICES_PER_GROUP: usize = 64;
/// Rows of a group are written when they have this many bytes.
const WRITE_BYTES: usize = 1 << 20;

/// Limits of the memory for reading a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of bytes of one read.
    pub(crate) piece_len: usize,
    /// Maximum length of a buffer in bytes. Offsets of rows in a buffer have 32 bits.
    pub(crate) buffer_len: usize,
    /// Number of bytes of rows after which duplicates are resolved before more rows are read.
    pub(crate) resolve_bytes: usize,
}

impl Limits {
    /// Returns the limits of one thread, if `threads` threads share `memory` bytes.
    pub(crate) fn new(memory: usize, threads: usize) -> Self {
        let resolve_bytes = (memory / threads.max(1) / 2).max(1 << 20);
        Self { piece_len: 1 << 20, buffer_len: 1 << 30, resolve_bytes }
    }
}

/// Neighbouring slices that were written in one or several pieces. Every piece is whole rows.
pub(crate) struct Group {
    /// Offset in the group at which each slice begins, and the length of the group.
    slice_starts: Vec<u64>,
    /// Offsets at which each piece begins: in the group and in the file.
    pieces: Vec<(u64, u64)>,
}

impl Group {
    /// Writes the rows of some slices. Moves long values to the blob file.
    pub(crate) fn write(
        (file, blobs): (&SpillFile, &SpillFile),
        scattered: &Scattered,
        buffers: Buffers<'_>,
        slices: Range<usize>,
    ) -> Result<Self> {
        let mut group = Self { slice_starts: vec![0], pieces: Vec::new() };
        let (mut bytes, mut written) = (Vec::new(), 0);
        for slice in slices {
            for at in scattered.slice(slice) {
                let row = buffers.row(*at);
                match row.payload {
                    Payload::Bytes(value) if value.len() >= MIN_SPILLED_BLOB_LEN => {
                        let hash_and_position = (row.hash, row.position);
                        let value = (row.value_type, value);
                        row::write_with_blob(&mut bytes, hash_and_position, row.key, value, blobs)?;
                    }
                    _ => bytes.extend_from_slice(buffers.bytes(*at)),
                }
                if bytes.len() >= WRITE_BYTES {
                    group.pieces.push((written, file.append(&bytes)?));
                    written += bytes.len() as u64;
                    bytes.clear();
                }
            }
            group.slice_starts.push(written + bytes.len() as u64);
        }
        group.pieces.push((written, file.append(&bytes)?));
        Ok(group)
    }

    /// Calls `read` with the offset in the file and the length of each part of a slice, in order.
    fn for_each_part(
        &self,
        slice: usize,
        mut read: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let (start, end) = (self.slice_starts[slice], self.slice_starts[slice + 1]);
        for (number, (begin, offset)) in self.pieces.iter().enumerate() {
            let piece_end = self.pieces.get(number + 1).map_or(end, |next| next.0);
            let (from, to) = (start.max(*begin), end.min(piece_end));
            if from < to {
                read(offset + (from - begin), to - from)?;
            }
        }
        Ok(())
    }
}

/// All rows of a build, in a temporary file.
pub(crate) struct SpilledRows {
    pub(crate) file: SpillFile,
    /// The groups of each spill, in the order of the spills.
    pub(crate) runs: Vec<Vec<Group>>,
    pub(crate) limits: Limits,
}

impl SpilledRows {
    pub(crate) fn create(folder: &Path, limits: Limits) -> Result<Self> {
        Ok(Self { file: SpillFile::create(folder)?, runs: Vec::new(), limits })
    }

    /// Reads the rows of a slice and resolves duplicates. Returns the buffers, references to the
    /// kept rows in the order of the file, and the duplicates.
    pub(crate) fn read(
        &self,
        slice: usize,
        on_duplicate: OnDuplicate,
    ) -> Result<(Vec<Buffer>, Vec<RowRef>, DuplicatesFound)> {
        let mut rows = SliceRows::new(self.limits, on_duplicate);
        for groups in &self.runs {
            let group = &groups[slice / SLICES_PER_GROUP];
            group.for_each_part(slice % SLICES_PER_GROUP, |offset, len| {
                rows.read(&self.file, offset, len)
            })?;
        }
        rows.close_buffer();
        let refs = rows.resolve();
        Ok((rows.closed, refs, rows.found))
    }
}

/// The rows of a slice that are read so far.
struct SliceRows {
    limits: Limits,
    on_duplicate: OnDuplicate,
    /// Complete buffers.
    closed: Vec<Buffer>,
    closed_bytes: usize,
    /// The buffer that rows are read into.
    open: Vec<u8>,
    /// Number of bytes of rows at which duplicates are resolved next.
    resolve_at: usize,
    found: DuplicatesFound,
}

impl SliceRows {
    fn new(limits: Limits, on_duplicate: OnDuplicate) -> Self {
        let resolve_at = limits.resolve_bytes;
        let (closed, open, found) = <_>::default();
        Self { limits, on_duplicate, closed, closed_bytes: 0, open, resolve_at, found }
    }

    /// Reads the whole rows in this range of the file.
    fn read(&mut self, file: &SpillFile, mut offset: u64, len: u64) -> Result<()> {
        let end = offset + len;
        while offset < end {
            let piece = (end - offset).min(self.limits.piece_len as u64);
            let from = self.open.len();
            self.open.resize(from + piece as usize, 0);
            file.read_at(&mut self.open[from..], offset)?;
            offset += piece;
            let is_full = self.open.len() + self.limits.piece_len > self.limits.buffer_len;
            let must_resolve = self.closed_bytes + self.open.len() >= self.resolve_at;
            if is_full || must_resolve {
                let rest = self.open.split_off(row::whole_rows_len(&self.open));
                self.close_buffer();
                if must_resolve {
                    self.drop_duplicates();
                }
                self.open = rest;
            }
        }
        Ok(())
    }

    /// Completes the open buffer, which must end with a whole row.
    fn close_buffer(&mut self) {
        self.closed_bytes += self.open.len();
        self.closed.push(Buffer::Plain(std::mem::take(&mut self.open)));
    }

    /// Resolves duplicates among the closed buffers and returns the rows that are kept.
    fn resolve(&mut self) -> Vec<RowRef> {
        let numbered = self.closed.iter().enumerate();
        let mut refs = numbered.flat_map(|(number, rows)| row::refs_of(number, rows, 0)).collect();
        let buffers = Buffers::of(&self.closed);
        self.found.add(duplicates::sort_and_resolve(&mut refs, buffers, self.on_duplicate));
        refs
    }

    /// Removes duplicates from the closed buffers.
    fn drop_duplicates(&mut self) {
        let refs = self.resolve();
        let closed = std::mem::take(&mut self.closed);
        self.closed_bytes = 0;
        for at in &refs {
            let row = Buffers::of(&closed).bytes(*at);
            if self.open.len() + row.len() > self.limits.buffer_len {
                self.close_buffer();
            }
            self.open.extend_from_slice(row);
        }
        self.close_buffer();
        self.resolve_at = self.limits.resolve_bytes.max(2 * self.closed_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Duplicate;
    use crate::format::hash::KeyHash;
    use crate::values::Value;
    use crate::writer::row::Encoder;
    use crate::writer::rows::Rows;
    use crate::writer::scatter::SLICE_BITS;
    use std::sync::Arc;

    const KEYS: u64 = 700;
    const ROWS: u64 = 5000;

    type ReadBack = (usize, Vec<(u64, u64)>, Option<Duplicate>);

    /// Spills numbered rows, each key several times, and reads all slices. Returns the maximum
    /// number of buffers of a slice, the kept rows as pairs of key and position, and the first
    /// duplicate.
    fn spill_and_read(limits: Limits, on_duplicate: OnDuplicate) -> Result<ReadBack> {
        let directory = std::env::temp_dir();
        let blobs = Arc::new(SpillFile::create(&directory)?);
        let encoder = Encoder::new(0, Arc::clone(&blobs));
        let mut rows = Rows::new(&directory, (4 << 20) + 64_000, 2, blobs).with_limits(limits);
        for row in 0..ROWS {
            let key = (row % KEYS).to_le_bytes();
            rows.push(&encoder, row, &key, Value::I64(i64::try_from(row).unwrap_or(0)))?;
        }
        let spilled = rows.into_spilled()?;
        assert!(spilled.runs.len() > 2, "{} runs", spilled.runs.len());
        let (mut max_buffers, mut kept, mut found) = (0, Vec::new(), DuplicatesFound::default());
        for slice in 0..1 << SLICE_BITS {
            let (buffers, refs, in_slice) = spilled.read(slice, on_duplicate)?;
            max_buffers = max_buffers.max(buffers.len());
            found.add(in_slice);
            for at in refs {
                let row = Buffers::of(&buffers).row(at);
                assert_eq!(row.hash, KeyHash::of(row.key, 0));
                let key = row.key.first_chunk().map_or(0, |key| u64::from_le_bytes(*key));
                kept.push((key, row.position));
            }
        }
        kept.sort_unstable();
        Ok((max_buffers, kept, found.earliest))
    }

    /// Regression: the reference to a row beyond 4 GiB of a slice referred to another row.
    #[test]
    fn a_slice_longer_than_a_buffer_is_read_into_several() -> Result<()> {
        let plenty = 1 << 20;
        let limits = Limits { piece_len: 100, buffer_len: 200, resolve_bytes: plenty };
        for policy in [OnDuplicate::First, OnDuplicate::Last, OnDuplicate::Error] {
            let (buffers, kept, earliest) = spill_and_read(limits, policy)?;
            assert!(buffers > 3, "{buffers} buffers");
            let long = Limits { piece_len: plenty, buffer_len: 2 * plenty, ..limits };
            assert_eq!(spill_and_read(long, policy)?, (1, kept, earliest));
        }
        Ok(())
    }

    #[test]
    fn duplicates_resolved_early_give_the_same_rows_and_the_same_earliest_one() -> Result<()> {
        for resolve_bytes in [1, 150, 1000] {
            let limits = Limits { piece_len: 100, buffer_len: 1 << 20, resolve_bytes };
            for policy in [OnDuplicate::First, OnDuplicate::Last, OnDuplicate::Error] {
                let (_, kept, earliest) = spill_and_read(limits, policy)?;
                let last = |key| ROWS - 1 - (ROWS - 1 - key) % KEYS;
                let is_last = policy == OnDuplicate::Last;
                let expected = (0..KEYS).map(|key| (key, if is_last { last(key) } else { key }));
                assert!(kept.iter().copied().eq(expected), "{policy:?}");
                if policy == OnDuplicate::Error {
                    let found = earliest.expect("a duplicate");
                    assert_eq!((found.first, found.second), (0, KEYS));
                }
            }
        }
        Ok(())
    }
}
