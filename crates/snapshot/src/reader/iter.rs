//! Iteration over all entries, in the order of the file.

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
    /// in wrong entries without an error. [`iter_verified`](Self::iter_verified) detects it. After
    /// an error, which only a damaged file causes, iteration continues with the next entry.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_lines(0..self.map.index().len() as u64)
    }

    /// Returns an iterator over all entries in the order of the file that checks the checksums of
    /// each partition before it returns the first entry of the partition. Use it to copy entries:
    /// damage then is an error, not a wrong value. Reads every byte of the index and of the data
    /// once more than [`iter`](Self::iter).
    ///
    /// The iterator ends after its first error.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] if the checksum of the directory is wrong.
    pub fn iter_verified(&self) -> Result<IterVerified<'_>> {
        self.verify_directory_hash()?;
        Ok(IterVerified { snapshot: self, next_partition: 0, entries: self.iter_lines(0..0) })
    }

    /// Returns an iterator over the entries of these lines of the index.
    fn iter_lines(&self, lines: Range<u64>) -> Iter<'_> {
        Iter { snapshot: self, lines, line: 0, slots: Slots::default() }
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
    snapshot: &'a Snapshot,
    /// Lines that are not read yet.
    lines: Range<u64>,
    /// Current line, and its slots that are not read yet.
    line: u64,
    slots: Slots,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(slot) = self.slots.next() {
                let at = self.snapshot.line(self.line).ok()?.record(slot);
                return Some(self.snapshot.record(at).map(|record| Entry {
                    key: record.key,
                    value: StoredValue::new(self.snapshot, &record),
                }));
            }
            self.line = self.lines.next()?;
            self.slots = self.snapshot.line(self.line).ok()?.used();
        }
    }
}

/// An iterator over the entries of a snapshot that checks its checksums, from
/// [`Snapshot::iter_verified`].
#[derive(Clone, Debug)]
pub struct IterVerified<'a> {
    snapshot: &'a Snapshot,
    next_partition: u64,
    /// Entries of the partition before `next_partition`.
    entries: Iter<'a>,
}

impl<'a> Iterator for IterVerified<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next() {
                None if self.next_partition < self.snapshot.header.partitions() => {
                    let partition = self.next_partition;
                    self.next_partition += 1;
                    match self.snapshot.verify_partition_hashes(partition) {
                        Ok(()) => {
                            let lines = self.snapshot.lines_of(partition);
                            self.entries = self.snapshot.iter_lines(lines);
                        }
                        Err(error) => return Some(Err(self.end(error))),
                    }
                }
                Some(Err(error)) => return Some(Err(self.end(error))),
                next => return next,
            }
        }
    }
}

impl IterVerified<'_> {
    /// Ends the iteration. Returns the error.
    fn end(&mut self, error: Error) -> Error {
        self.next_partition = self.snapshot.header.partitions();
        self.entries = self.snapshot.iter_lines(0..0);
        error
    }
}
