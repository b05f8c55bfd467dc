//! All entries, in the order of the file.

use crate::bucket::Slots;
use crate::error::{Error, Result};
use crate::reader::Snapshot;
use crate::stored::Stored;
use std::ops::Range;

/// An entry of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value as it lies in the file.
    pub value: Stored<'a>,
}

impl Snapshot {
    /// Returns all entries in the order of the file, which looks random and is the same each time.
    ///
    /// Checks the structure of what it reads, as lookups do, and no checksums: other damage reads
    /// as other entries ([`iter_verified`](Self::iter_verified) finds it). After an error, which
    /// only a damaged file gives, the next entry follows.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_lines(0..self.map.index().len() as u64)
    }

    /// Returns all entries in the order of the file, and checks the checksums of each partition
    /// before its first entry: for what copies the entries, so that damage is an error and not
    /// another value. This reads every byte of the index and of the data once more than
    /// [`iter`](Self::iter).
    ///
    /// The iterator ends after its first error.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`](crate::Error::Corrupt) if the checksum of the directory is wrong.
    pub fn iter_verified(&self) -> Result<IterVerified<'_>> {
        self.verify_directory_hash()?;
        Ok(IterVerified { snapshot: self, next_partition: 0, entries: self.iter_lines(0..0) })
    }

    /// Returns the entries of these lines of the index.
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

/// Iterator over the entries of a snapshot, from [`Snapshot::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    snapshot: &'a Snapshot,
    /// The lines to read next.
    lines: Range<u64>,
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
                    value: Stored::new(self.snapshot, &record),
                }));
            }
            self.line = self.lines.next()?;
            self.slots = self.snapshot.line(self.line).ok()?.used();
        }
    }
}

/// Iterator over the entries of a snapshot whose checksums it checks, from
/// [`Snapshot::iter_verified`].
#[derive(Clone, Debug)]
pub struct IterVerified<'a> {
    snapshot: &'a Snapshot,
    next_partition: u64,
    /// The entries of the partition before it.
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
    /// Ends the iterator with this error.
    fn end(&mut self, error: Error) -> Error {
        self.next_partition = self.snapshot.header.partitions();
        self.entries = self.snapshot.iter_lines(0..0);
        error
    }
}
