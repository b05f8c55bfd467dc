//! Writing of encoded partitions: assigns each an offset, in order, and writes it to the file.

use super::buffer::Buffers;
use super::compare;
use super::emit::{BlobPiece, Image, Reference};
use super::locations::{ValueLocation, ValueLocations};
use super::row::RowRef;
use super::spill::SpillFile;
use super::writeback::Writeback;
use crate::error::{Error, Result};
use crate::format::directory::DirectoryEntry;
use crate::format::hash::{Checksum, checksum};
use crate::format::header::Section;
use crate::format::layout::{
    SECTION_ALIGN, directory as directory_at, limits, line as line_at, record,
};
use crate::format::totals::Totals;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The file that is written.
pub(crate) struct Target<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: &'a Path,
    pub(crate) index: Section,
    pub(crate) data_start: u64,
    pub(crate) blobs: &'a SpillFile,
    /// All rows, if they are in memory.
    pub(crate) buffers: Option<Buffers<'a>>,
    /// Counts the bytes, if the file is synced while it is written.
    pub(crate) writeback: Option<&'a Writeback>,
}

/// Writes partitions from several threads. Assigns offsets in the order of the partitions, so that
/// the bytes of the file do not depend on the threads.
pub(crate) struct Committer<'a> {
    target: Target<'a>,
    state: Mutex<State>,
    /// Signals that `State::next` or `State::failed` changed.
    advanced: Condvar,
}

/// The state of a committer.
struct State {
    /// The partition that is assigned an offset next.
    next: u64,
    failed: bool,
    /// Offset in the data section of the next partition.
    data_end: u64,
    /// The directory section so far.
    directory: Vec<u8>,
    totals: Totals,
    /// The locations of the shared values in partitions before `next`.
    values: ValueLocations,
}

/// The result of all commits.
pub(crate) struct Committed {
    /// Length of the data of all partitions.
    pub(crate) data_len: u64,
    /// The directory section.
    pub(crate) directory: Vec<u8>,
    pub(crate) totals: Totals,
}

/// The result of a commit.
pub(crate) enum Outcome {
    /// The partition is written, or another thread failed.
    Done,
    /// The values of these rows differ from the shared values to which they would refer; only their
    /// hashes are equal. The partition must be encoded again, with these rows storing their values.
    HashCollisions(HashSet<RowRef>),
}

impl<'a> Committer<'a> {
    /// Returns a committer that starts with partition 0.
    pub(crate) fn new(target: Target<'a>, values: ValueLocations) -> Self {
        let state = State {
            next: 0,
            failed: false,
            data_end: 0,
            directory: Vec::new(),
            totals: Totals::default(),
            values,
        };
        Self { target, state: Mutex::new(state), advanced: Condvar::new() }
    }

    /// Waits until all earlier partitions have an offset, then assigns one to this partition and
    /// writes it.
    ///
    /// # Errors
    /// Returns [`Error::Limit`] if the file becomes too long, or [`Error::Io`].
    pub(crate) fn commit(
        &self,
        partition: u64,
        image: &mut Image,
        rows: Buffers<'_>,
    ) -> Result<Outcome> {
        let mut state = self.lock();
        while state.next != partition {
            if state.failed {
                // The thread that failed returns the error.
                return Ok(Outcome::Done);
            }
            state = self.advanced.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let base = state.data_end;
        let found = self.target.data_start + base + image.data_len();
        if found > limits::MAX_FILE_LEN {
            return Err(Error::limit("file length in bytes", limits::MAX_FILE_LEN, found));
        }
        let shares_values = !image.sources.is_empty() || !image.references.is_empty();
        if shares_values {
            for source in &image.sources {
                let location = ValueLocation::of(source, base, self.target.buffers.is_some());
                state.values.set(source.number, location)?;
            }
            let collisions = self.resolve(base, &state.values, image, rows)?;
            if !collisions.is_empty() {
                return Ok(Outcome::HashCollisions(collisions));
            }
            // Written under the lock: a later partition may compare its values with these bytes.
            let entry = self.write(partition, base, image)?;
            state.record(partition, entry);
            state.advance(partition, base, image);
            self.advanced.notify_all();
            return Ok(Outcome::Done);
        }
        state.advance(partition, base, image);
        self.advanced.notify_all();
        drop(state);
        let entry = self.write(partition, base, image)?;
        self.lock().record(partition, entry);
        Ok(Outcome::Done)
    }

    /// Releases all waiting threads after an error or a panic.
    pub(crate) fn fail(&self) {
        self.lock().failed = true;
        self.advanced.notify_all();
    }

    /// Returns the result of all commits.
    pub(crate) fn finish(self) -> Committed {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let State { data_end, directory, totals, .. } = state;
        Committed { data_len: data_end, directory, totals }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills in the references of a partition whose data begins at `base`. Returns the rows whose
    /// values differ from the shared values.
    fn resolve(
        &self,
        base: u64,
        values: &ValueLocations,
        image: &mut Image,
        rows: Buffers<'_>,
    ) -> Result<HashSet<RowRef>> {
        let mut collisions = HashSet::new();
        for reference in &image.references {
            match values.get(reference.number)? {
                Some(source) if self.same_value((image, base), reference, rows, source)? => {
                    let bytes = &source.offset().to_le_bytes()[..record::REFERENCE_LEN];
                    let at = reference.at;
                    image.data[at..at + record::REFERENCE_LEN].copy_from_slice(bytes);
                }
                _ => {
                    collisions.insert(reference.row);
                }
            }
        }
        Ok(collisions)
    }

    /// Returns whether the value of a reference's row equals the shared value at `source`.
    fn same_value(
        &self,
        (image, base): (&Image, u64),
        reference: &Reference,
        rows: Buffers<'_>,
        source: ValueLocation,
    ) -> Result<bool> {
        let row = rows.row(reference.row);
        let in_memory = match self.target.buffers {
            Some(buffers) => Some(buffers.row(source.row())),
            None => image.source_at(source.offset().checked_sub(base)).map(|at| rows.row(at)),
        };
        if let Some(source) = in_memory {
            return compare::same_value(&row, &source, self.target.blobs);
        }
        let (stored, len) = match &reference.frame {
            Some(frame) => (frame.bytes(self.target.blobs), frame.len()),
            None => (compare::bytes_of(&row, self.target.blobs), row.value_len),
        };
        if !source.is_stored_as(row.value_type, reference.frame.is_some(), len) {
            return Ok(false);
        }
        let target = (self.target.file, self.target.path);
        let offset = self.target.data_start + source.offset();
        compare::same_bytes((&stored, len), &compare::Bytes::Target(target, offset))
    }

    /// Writes the data and the index lines of a partition. Returns its directory entry.
    fn write(&self, partition: u64, base: u64, image: &mut Image) -> Result<DirectoryEntry> {
        for line in image.lines.as_chunks_mut::<{ line_at::LEN }>().0 {
            let field = &mut line[line_at::BASE..];
            let mut relative = [0; 8];
            relative[..6].copy_from_slice(field);
            let absolute = base + u64::from_le_bytes(relative);
            field.copy_from_slice(&absolute.to_le_bytes()[..6]);
        }
        let index_at = self.target.index.offset + partition * image.lines.len() as u64;
        self.write_at(&image.lines, index_at)?;
        Ok(DirectoryEntry {
            data: Section { offset: base, len: image.data_len() },
            index_hash: checksum(&image.lines),
            data_hash: self.write_data(base, image)?,
        })
    }

    /// Writes the data of a partition. Returns its checksum.
    fn write_data(&self, base: u64, image: &Image) -> Result<u64> {
        let base = self.target.data_start + base;
        if image.blobs.is_empty() {
            self.write_at(&image.data, base)?;
            return Ok(checksum(&image.data));
        }
        let mut data =
            DataWriter { committer: self, at: base, buffer: Vec::new(), sum: <_>::default() };
        let mut done = 0;
        for &BlobPiece { before, offset, len } in &image.blobs {
            data.put(&image.data[done..before])?;
            done = before;
            data.put_blob(offset, len)?;
        }
        data.put(&image.data[done..])?;
        data.flush()?;
        Ok(data.sum.finish())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let Target { file, path, writeback, .. } = self.target;
        file.write_all_at(bytes, offset).map_err(|e| Error::io(path, "write", e))?;
        if let Some(writeback) = writeback {
            writeback.add(bytes.len() as u64);
        }
        Ok(())
    }
}

/// A buffered writer of a partition's data that computes its checksum.
struct DataWriter<'a> {
    committer: &'a Committer<'a>,
    /// Offset in the file of the next write.
    at: u64,
    buffer: Vec<u8>,
    sum: Checksum,
}

impl DataWriter<'_> {
    /// Number of bytes of one write.
    const WRITE_BYTES: usize = 256 << 10;

    /// Appends bytes.
    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) =
                bytes.split_at(bytes.len().min(Self::WRITE_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Appends a blob.
    fn put_blob(&mut self, mut offset: u64, mut len: u64) -> Result<()> {
        while len > 0 {
            let start = self.buffer.len();
            let now = len.min((Self::WRITE_BYTES - start) as u64);
            self.buffer.resize(start + now as usize, 0);
            self.committer.target.blobs.read_at(&mut self.buffer[start..], offset)?;
            (offset, len) = (offset + now, len - now);
            self.flush_if_full()?;
        }
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() == Self::WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.committer.write_at(&self.buffer, self.at)?;
        self.sum.update(&self.buffer);
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl State {
    /// Assigns the offset after this partition to the next one.
    fn advance(&mut self, partition: u64, base: u64, image: &Image) {
        self.next = partition + 1;
        self.data_end = (base + image.data_len()).next_multiple_of(SECTION_ALIGN);
        self.totals.add(&image.totals);
    }

    /// Sets the directory entry of a partition.
    fn record(&mut self, partition: u64, entry: DirectoryEntry) {
        let at = partition as usize * directory_at::ENTRY_LEN;
        let end = at + directory_at::ENTRY_LEN;
        self.directory.resize(self.directory.len().max(end), 0);
        self.directory[at..end].copy_from_slice(&entry.to_bytes());
    }
}
