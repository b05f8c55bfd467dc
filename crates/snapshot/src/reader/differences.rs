//! The differences between two snapshots.

use super::decompress::Scratch;
use super::iter::{Entry, IterVerified};
use super::snapshot::Snapshot;
use super::stored::StoredValue;
use crate::error::Result;
use std::fmt;
use std::vec::IntoIter;

/// Number of entries of one snapshot that are looked up in the other at once.
const BATCH_ENTRIES: usize = 256;

/// An entry that differs between two snapshots.
#[derive(Clone, Copy, Debug)]
pub enum Difference<'a> {
    /// Only the old snapshot has the key.
    Removed(Entry<'a>),
    /// The value or its type differs.
    Changed {
        /// The entry of the old snapshot.
        old: Entry<'a>,
        /// The value in the new snapshot.
        new: StoredValue<'a>,
    },
    /// Only the new snapshot has the key.
    Added(Entry<'a>),
}

impl Snapshot {
    /// Returns an iterator over the entries that differ from those of a newer snapshot: first
    /// removed and changed keys in the order of this snapshot, then added keys in the order of the
    /// newer one. Compares types and values, floats by their bits; metadata, compression and shards
    /// do not count. The memory does not depend on the size of the snapshots.
    ///
    /// Checks the checksums of both, as [`iter_verified`](Self::iter_verified) does: those of this
    /// snapshot in the first pass, those of the newer one in the second. So a damaged newer
    /// snapshot can yield wrong differences before the iterator returns the error; then discard
    /// them. The iterator ends after its first error.
    pub fn differences<'a>(&'a self, newer: &'a Self) -> Differences<'a> {
        Differences {
            old: self,
            new: newer,
            pass: Pass::Start,
            batch: Vec::new().into_iter(),
            scratch: [Scratch::new(), Scratch::new()],
        }
    }
}

/// An iterator over the differences of two snapshots, from [`Snapshot::differences`].
pub struct Differences<'a> {
    old: &'a Snapshot,
    new: &'a Snapshot,
    pass: Pass<'a>,
    /// Differences that were found and not returned yet.
    batch: IntoIter<Difference<'a>>,
    scratch: [Scratch; 2],
}

/// The entries that are not compared yet.
enum Pass<'a> {
    Start,
    /// Those of the old snapshot, then all of the new one.
    Old(IterVerified<'a>),
    /// Those of the new snapshot.
    New(IterVerified<'a>),
    End,
}

impl<'a> Iterator for Differences<'a> {
    type Item = Result<Difference<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(difference) = self.batch.next() {
                return Some(Ok(difference));
            }
            if matches!(self.pass, Pass::End) {
                return None;
            }
            match self.next_batch() {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => {
                    self.pass = Pass::End;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<'a> Differences<'a> {
    /// Compares the next entries of the current pass, and begins the next one at its end.
    fn next_batch(&mut self) -> Result<Vec<Difference<'a>>> {
        let (entries, other) = match &mut self.pass {
            Pass::Start => {
                self.pass = Pass::Old(self.old.iter_verified()?);
                return Ok(Vec::new());
            }
            Pass::Old(entries) => (entries, self.new),
            Pass::New(entries) => (entries, self.old),
            Pass::End => return Ok(Vec::new()),
        };
        let batch = entries.take(BATCH_ENTRIES).collect::<Result<Vec<_>>>()?;
        let keys: Vec<_> = batch.iter().map(|entry| entry.key).collect();
        let mut found = vec![None; keys.len()];
        other.find_many(&keys, &mut found)?;
        let mut differences = Vec::new();
        for (entry, found) in batch.iter().zip(found) {
            differences.extend(self.compare(*entry, found)?);
        }
        self.old.check_readable()?;
        self.new.check_readable()?;
        if batch.len() < BATCH_ENTRIES {
            self.pass = match self.pass {
                Pass::Old(_) => Pass::New(self.new.iter_verified()?),
                _ => Pass::End,
            };
        }
        Ok(differences)
    }

    fn compare(
        &mut self,
        entry: Entry<'a>,
        other: Option<StoredValue<'a>>,
    ) -> Result<Option<Difference<'a>>> {
        let is_of_old = matches!(self.pass, Pass::Old(_));
        Ok(match other {
            None if is_of_old => Some(Difference::Removed(entry)),
            None => Some(Difference::Added(entry)),
            Some(new) if is_of_old && !self.is_equal(entry.value, new)? => {
                Some(Difference::Changed { old: entry, new })
            }
            Some(_) => None,
        })
    }

    /// Returns whether two values have the same type and the same bytes.
    fn is_equal(&mut self, old: StoredValue<'a>, new: StoredValue<'a>) -> Result<bool> {
        if old.value_type() != new.value_type() {
            return Ok(false);
        }
        let [of_old, of_new] = &mut self.scratch;
        Ok(old.uncompressed_bytes(of_old)? == new.uncompressed_bytes(of_new)?)
    }
}

impl fmt::Debug for Differences<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Differences")
            .field("old", self.old)
            .field("new", self.new)
            .finish_non_exhaustive()
    }
}
