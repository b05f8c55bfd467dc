//! All entries, in the order of the file.

use crate::bucket::Slots;
use crate::error::Result;
use crate::reader::Snapshot;
use crate::stored::Stored;

/// An entry of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value as it lies in the file.
    pub value: Stored<'a>,
}

impl Snapshot {
    /// All entries in the order of the file, which looks random and is the same each time.
    ///
    /// After an error, which only a damaged file gives, the next entry follows.
    pub fn iter(&self) -> Iter<'_> {
        Iter { snapshot: self, next_line: 0, line: 0, slots: Slots::default() }
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
    next_line: u64,
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
            self.line = self.next_line;
            self.slots = self.snapshot.line(self.line).ok()?.used();
            self.next_line += 1;
        }
    }
}
