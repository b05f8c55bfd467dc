//! The removed records of a folder, in memory.

use crate::record_id::RecordId;
use crate::removal_log::entry::Removal;
use std::collections::BTreeMap;

/// The records that the removal logs of a folder name, as far as their item files exist.
///
/// Takes four bytes for each removed record until it is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedRecords {
    /// All records with lower ids are removed.
    bound: u64,
    /// Units of removed records by the number of their file, sorted.
    units: BTreeMap<u64, Vec<u32>>,
}

/// The removed records of an item file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedUnits<'a> {
    /// Records with lower units are removed, too.
    bound: u64,
    units: &'a [u32],
}

impl RemovedRecords {
    /// Adds an entry of a log.
    pub(crate) fn add(&mut self, removal: Removal) {
        match removal {
            Removal::Record(id) => {
                let id = RecordId::unpack(id);
                self.units.entry(id.file).or_default().push(id.unit);
            }
            Removal::AllBefore(bound) => self.bound = self.bound.max(bound),
        }
    }

    /// Sorts the units, drops those of files that do not exist, and limits the bound to `max`.
    pub(crate) fn finish(&mut self, max: u64, exists: impl Fn(u64) -> bool) {
        self.bound = self.bound.min(max);
        let bound = self.bound;
        self.units.retain(|file, units| {
            if !exists(*file) {
                return false;
            }
            let first = first_unit(bound, *file);
            units.retain(|unit| u64::from(*unit) >= first);
            units.sort_unstable();
            units.dedup();
            units.shrink_to_fit();
            !units.is_empty()
        });
    }

    /// Returns the removed records of the item file with a number.
    #[must_use]
    pub fn in_file(&self, number: u64) -> RemovedUnits<'_> {
        let units = self.units.get(&number).map_or(&[][..], Vec::as_slice);
        RemovedUnits { bound: first_unit(self.bound, number), units }
    }

    /// Returns whether a record is removed.
    #[must_use]
    pub fn contains(&self, id: RecordId) -> bool {
        self.in_file(id.file).contains(id.unit)
    }

    /// Returns the bytes of memory for the ids of records.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let capacities = self.units.values().map(|units| units.capacity() * size_of::<u32>());
        capacities.sum::<usize>() as u64
    }
}

impl RemovedUnits<'_> {
    /// Returns whether the record at an offset is removed. The offset is in units of 16 bytes, as in
    /// [`Place::unit`](crate::Place::unit).
    #[must_use]
    pub fn contains(&self, unit: u32) -> bool {
        u64::from(unit) < self.bound || self.units.binary_search(&unit).is_ok()
    }

    /// Returns whether no record is removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bound == 0 && self.units.is_empty()
    }

    /// Returns whether all records are removed, whatever the file contains.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.bound == u64::MAX
    }
}

/// Returns the first unit of a file that is not below a packed id; `u64::MAX` if all units are.
fn first_unit(bound: u64, file: u64) -> u64 {
    let bound = RecordId::unpack(bound);
    match bound.file.cmp(&file) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => bound.unit.into(),
        std::cmp::Ordering::Greater => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::UNIT_BITS;

    const fn id(file: u64, unit: u32) -> u64 {
        file << UNIT_BITS | unit as u64
    }

    #[test]
    fn records_are_found_by_file_and_unit() {
        let mut removed = RemovedRecords::default();
        for packed in [id(3, 900), id(3, 260), id(3, 900), id(4, 300), id(5, 260)] {
            removed.add(Removal::Record(packed));
        }
        removed.finish(id(9, 0), |file| file != 5);
        let units = removed.in_file(3);
        assert!(units.contains(260) && units.contains(900) && !units.contains(300));
        assert!(!units.is_empty() && !units.is_all() && removed.in_file(5).is_empty());
        assert!(removed.contains(RecordId { file: 4, unit: 300 }));
        assert_eq!(removed.memory_bytes(), 12);
    }

    #[test]
    fn a_bound_removes_the_records_before_it_alone() {
        let mut removed = RemovedRecords::default();
        removed.add(Removal::AllBefore(id(4, 500)));
        removed.add(Removal::AllBefore(id(2, 1)));
        removed.add(Removal::Record(id(4, 260)));
        removed.add(Removal::Record(id(4, 700)));
        removed.finish(id(9, 0), |_| true);
        assert!(removed.in_file(3).is_all() && removed.in_file(5).is_empty());
        let units = removed.in_file(4);
        let found = [260, 499, 500, 700, 701].map(|unit| units.contains(unit));
        assert_eq!(found, [true, true, false, true, false]);
        assert!(!units.is_all());
        assert_eq!(removed.memory_bytes(), 4);
    }
}
