//! Iteration over all entries, in the order of the file.

use super::file::SnapshotFile;
use super::snapshot::Snapshot;
use super::stored::StoredValue;
use crate::error::{Error, Result};
use crate::format::line::Slots;
use std::ops::Range;

/// An entry of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The stored value.
    pub value: StoredValue<'a>,
}

impl Snapshot {
    /// Returns an iterator over all entries in the order of the file. The order follows from the
    /// hashes of the keys: it is unrelated to the order of the keys, and the same each time.
    ///
    /// Validates the structure of each record, as lookups do, but no checksums: damage may result
    /// in wrong entries without an error. [`iter_verified`](Self::iter_verified) detects it. Only a
    /// damaged or unreadable file causes an error. After an error, iteration continues with the
    /// next entry.
    pub fn iter(&self) -> Iter<'_> {
        let (first, others) = self.files();
        Iter { lines: first.lines(), ..Iter::new(first, others) }
    }

    /// Returns an iterator over all entries in the order of the file that checks the checksums of
    /// each partition before it returns the first entry of the partition. Use it to copy entries:
    /// damage is then an error, not a wrong value. Reads every byte of the index and of the data
    /// once more than [`iter`](Self::iter).
    ///
    /// The iterator ends after its first error.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the checksum of the directory is wrong.
    pub fn iter_verified(&self) -> Result<IterVerified<'_>> {
        self.each_file().try_for_each(SnapshotFile::verify_directory_hash)?;
        let (file, others) = self.files();
        Ok(IterVerified { file, others, next_partition: 0, entries: Iter::new(file, &[]) })
    }
}

impl SnapshotFile {
    /// Returns the numbers of all lines of the index.
    fn lines(&self) -> Range<u64> {
        0..self.map.index().len() as u64
    }
}

impl<'a> IntoIterator for &'a Snapshot {
    type Item = Result<Entry<'a>>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// An iterator over the entries of a snapshot, from [`Snapshot::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    file: &'a SnapshotFile,
    /// Files that are not read yet.
    others: &'a [SnapshotFile],
    /// Lines of the current file that are not read yet.
    lines: Range<u64>,
    /// Current line, and its slots that are not read yet.
    line: u64,
    slots: Slots,
}

impl<'a> Iter<'a> {
    /// Returns an iterator over no lines of a file and all lines of others.
    fn new(file: &'a SnapshotFile, others: &'a [SnapshotFile]) -> Self {
        Self { file, others, lines: 0..0, line: 0, slots: Slots::default() }
    }

    /// Moves to the next file, if there is one.
    fn next_file(&mut self) -> Option<()> {
        (self.file, self.others) = self.others.split_first()?;
        self.lines = self.file.lines();
        Some(())
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(slot) = self.slots.next() {
                let at = self.file.line(self.line).ok()?.record(slot);
                return Some(self.file.record(at).map(|record| Entry {
                    key: record.key,
                    value: StoredValue::new(self.file, &record),
                }));
            }
            match self.lines.next() {
                Some(line) => {
                    self.file.will_read_line(line);
                    self.line = line;
                    self.slots = self.file.line(line).ok()?.used();
                }
                None => self.next_file()?,
            }
        }
    }
}

/// An iterator over the entries of a snapshot that checks its checksums, from
/// [`Snapshot::iter_verified`].
#[derive(Clone, Debug)]
pub struct IterVerified<'a> {
    file: &'a SnapshotFile,
    /// Files that are not read yet.
    others: &'a [SnapshotFile],
    next_partition: u64,
    /// Entries of the partition before `next_partition`.
    entries: Iter<'a>,
}

impl<'a> Iterator for IterVerified<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next() {
                None if self.next_partition < self.file.header.partitions() => {
                    let partition = self.next_partition;
                    if partition == 0 {
                        self.file.will_read(0);
                    }
                    self.file.will_read(partition + 1);
                    self.next_partition += 1;
                    match self.file.verify_partition_hashes(partition) {
                        Ok(()) => self.entries.lines = self.file.lines_of(partition),
                        Err(error) => return Some(Err(self.end(error))),
                    }
                }
                None => {
                    (self.file, self.others) = self.others.split_first()?;
                    self.next_partition = 0;
                    self.entries = Iter::new(self.file, &[]);
                }
                Some(Err(error)) => return Some(Err(self.end(error))),
                entry => return entry,
            }
        }
    }
}

impl IterVerified<'_> {
    /// Ends the iteration. Returns the error.
    fn end(&mut self, error: Error) -> Error {
        self.next_partition = self.file.header.partitions();
        self.others = &[];
        self.entries = Iter::new(self.file, &[]);
        error
    }
}
