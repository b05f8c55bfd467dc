//! Images of partitions become the file: each gets its place in order, and is written.

use super::compare;
use super::emit::{BlobPiece, Image, Reference, Totals};
use super::places::{Place, Places};
use super::row::RowRef;
use super::rows::Buffers;
use super::spill::SpillFile;
use crate::directory::DirectoryEntry;
use crate::error::{Error, Result};
use crate::hash::{Checksum, checksum};
use crate::header::Section;
use crate::layout::{SECTION_ALIGN, directory as directory_at, limits, line as line_at, record};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The file being made.
pub(crate) struct Target<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: &'a Path,
    pub(crate) index: Section,
    pub(crate) data_start: u64,
    pub(crate) blobs: &'a SpillFile,
    /// All rows, when they are in memory.
    pub(crate) buffers: Option<Buffers<'a>>,
}

/// Gives out places in the order of the partitions.
pub(crate) struct Commits<'a> {
    target: Target<'a>,
    turn: Mutex<Turn>,
    moved_on: Condvar,
}

struct Turn {
    next: u64,
    failed: bool,
    data_end: u64,
    directory: Vec<u8>,
    totals: Totals,
    /// Where each shared value lies, once its partition is placed.
    values: Places,
}

/// What all commits together made.
pub(crate) struct Committed {
    /// Length of the data.
    pub(crate) data_len: u64,
    pub(crate) directory: Vec<u8>,
    pub(crate) totals: Totals,
}

/// What became of a commit.
pub(crate) enum Outcome {
    Done,
    /// These rows' values only share a hash with the values they would refer to: they must store
    /// their own, in a new image of the partition.
    Differ(HashSet<RowRef>),
}

impl<'a> Commits<'a> {
    pub(crate) fn new(target: Target<'a>, values: Places) -> Self {
        let turn = Turn {
            next: 0,
            failed: false,
            data_end: 0,
            directory: Vec::new(),
            totals: Totals::default(),
            values,
        };
        Self { target, turn: Mutex::new(turn), moved_on: Condvar::new() }
    }

    /// Places and writes an image, once all earlier partitions are placed.
    pub(crate) fn commit(
        &self,
        partition: u64,
        image: &mut Image,
        rows: Buffers<'_>,
    ) -> Result<Outcome> {
        let mut turn = self.lock();
        while turn.next != partition {
            if turn.failed {
                // The thread that failed answers with the error.
                return Ok(Outcome::Done);
            }
            turn = self.moved_on.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        let base = turn.data_end;
        let found = self.target.data_start + base + image.data_len();
        if found > limits::FILE_LEN {
            return Err(Error::limit("file length in bytes", limits::FILE_LEN, found));
        }
        let in_turn = !image.sources.is_empty() || !image.references.is_empty();
        if in_turn {
            for source in &image.sources {
                let place = Place::of(source, base, self.target.buffers.is_some());
                turn.values.set(source.number, place)?;
            }
            let differ = self.resolve(base, &turn.values, image, rows)?;
            if !differ.is_empty() {
                return Ok(Outcome::Differ(differ));
            }
            // A later partition may compare its values with these bytes.
            let entry = self.write(partition, base, image)?;
            turn.record(partition, entry);
            turn.move_on(partition, base, image);
            self.moved_on.notify_all();
            return Ok(Outcome::Done);
        }
        turn.move_on(partition, base, image);
        self.moved_on.notify_all();
        drop(turn);
        let entry = self.write(partition, base, image)?;
        self.lock().record(partition, entry);
        Ok(Outcome::Done)
    }

    /// Lets all waiting threads go, after an error or a panic.
    pub(crate) fn fail(&self) {
        self.lock().failed = true;
        self.moved_on.notify_all();
    }

    pub(crate) fn finish(self) -> Committed {
        let turn = self.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Turn { data_end, directory, totals, .. } = turn;
        Committed { data_len: data_end, directory, totals }
    }

    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills in the offsets of shared values in a partition whose data begins at `base`. Returns
    /// the rows whose value turns out to be another.
    fn resolve(
        &self,
        base: u64,
        values: &Places,
        image: &mut Image,
        rows: Buffers<'_>,
    ) -> Result<HashSet<RowRef>> {
        let mut differ = HashSet::new();
        for reference in &image.references {
            match values.get(reference.number)? {
                Some(source) if self.same_value((image, base), reference, rows, source)? => {
                    let bytes = &source.offset().to_le_bytes()[..record::REFERENCE_LEN];
                    let at = reference.at;
                    image.data[at..at + record::REFERENCE_LEN].copy_from_slice(bytes);
                }
                _ => {
                    differ.insert(reference.row);
                }
            }
        }
        Ok(differ)
    }

    fn same_value(
        &self,
        (image, base): (&Image, u64),
        reference: &Reference,
        rows: Buffers<'_>,
        source: Place,
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

    /// Writes a placed partition: its data, and its lines of the index.
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

    fn write_data(&self, base: u64, image: &Image) -> Result<u64> {
        let base = self.target.data_start + base;
        if image.blobs.is_empty() {
            self.write_at(&image.data, base)?;
            return Ok(checksum(&image.data));
        }
        let mut pieces =
            Pieces { commits: self, at: base, buffer: Vec::new(), sum: <_>::default() };
        let mut done = 0;
        for &BlobPiece { before, offset, len } in &image.blobs {
            pieces.put(&image.data[done..before])?;
            done = before;
            pieces.put_blob(offset, len)?;
        }
        pieces.put(&image.data[done..])?;
        pieces.flush()?;
        Ok(pieces.sum.finish())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let Target { file, path, .. } = self.target;
        file.write_all_at(bytes, offset).map_err(|e| Error::io(path, "write", e))
    }
}

/// Bytes on their way to a place in the file, gathered into larger writes.
struct Pieces<'a> {
    commits: &'a Commits<'a>,
    at: u64,
    buffer: Vec<u8>,
    sum: Checksum,
}

impl Pieces<'_> {
    /// Bytes written at a time.
    const FULL: usize = 256 << 10;

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(Self::FULL - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Puts a value that was set aside.
    fn put_blob(&mut self, mut offset: u64, mut len: u64) -> Result<()> {
        while len > 0 {
            let start = self.buffer.len();
            let now = len.min((Self::FULL - start) as u64);
            self.buffer.resize(start + now as usize, 0);
            self.commits.target.blobs.read_at(&mut self.buffer[start..], offset)?;
            (offset, len) = (offset + now, len - now);
            self.flush_if_full()?;
        }
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() == Self::FULL { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.commits.write_at(&self.buffer, self.at)?;
        self.sum.update(&self.buffer);
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Turn {
    /// Gives the place behind this image to the next partition.
    fn move_on(&mut self, partition: u64, base: u64, image: &Image) {
        self.next = partition + 1;
        self.data_end = (base + image.data_len()).next_multiple_of(SECTION_ALIGN);
        self.totals.add(&image.totals);
    }

    fn record(&mut self, partition: u64, entry: DirectoryEntry) {
        let at = partition as usize * directory_at::ENTRY_LEN;
        let end = at + directory_at::ENTRY_LEN;
        self.directory.resize(self.directory.len().max(end), 0);
        self.directory[at..end].copy_from_slice(&entry.to_bytes());
    }
}
