//! The removed records of a folder, in memory.

use crate::record_id::RecordId;
use crate::removal_log::entry::{Removal, shortened, without_partition};
use std::collections::{BTreeMap, HashMap};

/// The records that the removal logs of a folder name, as far as their item files exist.
///
/// Takes four bytes for each removed record until it is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedRecords {
    /// All records with lower ids are removed.
    bound: u64,
    /// All records with lower ids may be named by a damaged part of the log.
    damaged: u64,
    /// Units of removed records by the number of their file, sorted.
    units: BTreeMap<u64, Vec<u32>>,
    /// Records with this id and higher ones are not complete.
    committed: Option<u64>,
    /// The shortened hashes of changed keys. Records with ids below the number are removed.
    changed: HashMap<u64, u64>,
}

/// The removed records of an item file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedUnits<'a> {
    /// Records with lower units are removed, too.
    bound: u64,
    /// Records with lower units are removed because of damage.
    damaged: u64,
    units: &'a [u32],
    file: u64,
    /// Records with this unit and higher ones are not complete.
    committed: u64,
    changed: &'a HashMap<u64, u64>,
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
            Removal::Committed(bound) => self.committed = Some(bound),
            Removal::Changed(hash) => {
                self.changed.insert(without_partition(hash), self.committed.unwrap_or(0));
            }
        }
    }

    /// Removes all records with lower ids, since a damaged part of the log may name them.
    pub(crate) fn add_damaged(&mut self, bound: u64) {
        self.add(Removal::AllBefore(bound));
        self.damaged = bound;
    }

    /// Counts all records as complete, since the folder was closed.
    pub(crate) fn commit_all(&mut self) {
        self.committed = None;
    }

    /// Returns the id from which on records are not complete.
    pub(crate) fn committed(&self) -> Option<u64> {
        self.committed
    }

    /// Sorts the units, drops those of files that do not exist, and limits the bound to `max`.
    pub(crate) fn finish(&mut self, max: u64, exists: impl Fn(u64) -> bool) {
        self.bound = self.bound.min(max);
        self.damaged = self.damaged.min(max);
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
        RemovedUnits {
            bound: first_unit(self.bound, number),
            damaged: first_unit(self.damaged, number),
            units,
            file: number,
            committed: self.committed.map_or(u64::MAX, |bound| first_unit(bound, number)),
            changed: &self.changed,
        }
    }

    /// Returns whether a record of a key with this hash is removed.
    #[must_use]
    pub fn contains(&self, id: RecordId, hash: u64) -> bool {
        self.in_file(id.file).contains(id.unit, hash)
    }

    /// Returns whether records were committed: see [`Removals::commit`](crate::Removals::commit).
    #[must_use]
    pub fn has_commits(&self) -> bool {
        self.committed.is_some()
    }

    /// Returns the bytes of memory for the ids of records.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let capacities = self.units.values().map(|units| units.capacity() * size_of::<u32>());
        let changed = self.changed.capacity() * 2 * size_of::<u64>();
        (capacities.sum::<usize>() + changed) as u64
    }
}

impl RemovedUnits<'_> {
    /// Returns whether the record at an offset, of a key with this hash, is removed. The offset is
    /// in units of 16 bytes, as in [`Place::unit`](crate::Place::unit).
    #[must_use]
    pub fn contains(&self, unit: u32, hash: u64) -> bool {
        u64::from(unit) < self.bound
            || !self.is_committed(unit)
            || self.units.binary_search(&unit).is_ok()
            || self.is_changed(unit, hash)
    }

    /// Returns whether the record at an offset is removed only because a damaged part of the log
    /// may name it.
    #[must_use]
    pub fn is_lost(&self, unit: u32, hash: u64) -> bool {
        let without_damage = Self { bound: 0, ..*self };
        u64::from(unit) < self.damaged && !without_damage.contains(unit, hash)
    }

    /// Returns whether the record at an offset was complete when the process ended.
    #[must_use]
    pub fn is_committed(&self, unit: u32) -> bool {
        u64::from(unit) < self.committed
    }

    fn is_changed(&self, unit: u32, hash: u64) -> bool {
        let bound = self.changed.get(&shortened(hash));
        bound.is_some_and(|bound| RecordId { file: self.file, unit }.pack() < *bound)
    }

    /// Returns whether no record is removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bound == 0
            && self.units.is_empty()
            && self.committed == u64::MAX
            && self.changed.is_empty()
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
        assert!(units.contains(260, 1) && units.contains(900, 1) && !units.contains(300, 1));
        assert!(!units.is_empty() && !units.is_all() && removed.in_file(5).is_empty());
        assert!(removed.contains(RecordId { file: 4, unit: 300 }, 1));
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
        let found = [260, 499, 500, 700, 701].map(|unit| units.contains(unit, 1));
        assert_eq!(found, [true, true, false, true, false]);
        assert!(!units.is_all());
        assert_eq!(removed.memory_bytes(), 4);
    }

    #[test]
    fn records_that_are_not_committed_or_whose_keys_changed_are_removed() {
        let mut removed = RemovedRecords::default();
        let (changed, other) = (0xFEDC_BA98_7654_3210, 0xFEDC_BA98_7654_7210);
        removed.add(Removal::Committed(id(4, 500)));
        removed.add(Removal::Changed(shortened(changed)));
        removed.add(Removal::Committed(id(5, 600)));
        removed.finish(id(9, 0), |_| true);
        let contains = |file, unit, hash| removed.contains(RecordId { file, unit }, hash);
        assert!(contains(3, 900, changed) && contains(4, 499, changed));
        assert!(!contains(4, 500, changed) && !contains(4, 499, other));
        assert!(!contains(5, 599, other) && contains(5, 600, other) && contains(6, 260, other));
        removed.commit_all();
        assert!(!removed.contains(RecordId { file: 6, unit: 260 }, other));
    }

    /// A folder may have been used with partitions and without them.
    #[test]
    fn a_changed_key_is_found_with_each_partition_in_its_hash() {
        let changed = 0xFEDC_BA98_7654_3210;
        let in_partition = |partition: u64| changed & !0x3FFF | partition;
        // Earlier versions stored bits of the partition.
        for stored in [shortened(changed), changed >> 10] {
            let mut removed = RemovedRecords::default();
            removed.add(Removal::Committed(id(4, 500)));
            removed.add(Removal::Changed(stored));
            removed.finish(id(9, 0), |_| true);
            for partition in [0, 1, 0x3FFF] {
                assert!(removed.contains(RecordId { file: 3, unit: 1 }, in_partition(partition)));
            }
            assert!(!removed.contains(RecordId { file: 3, unit: 1 }, changed ^ 0x4000));
        }
    }
}
