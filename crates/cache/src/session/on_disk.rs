//! Items on disk that the operations of a guard need, and records that they replaced or removed.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::index::slot::Slot;
use crate::index::split::SlotItems;
use crate::item::Item;
use crate::records::OnDisk;
use crate::session::state::Guard;

/// Maximum number of items that an item is compared with before it is noted.
const MAX_COMPARED: usize = 16;

impl Guard<'_> {
    /// Returns the items on disk that operations under this guard needed since the last call. If
    /// there are any, the results of these operations are not valid: lookups returned nothing, and
    /// writes and removals changed nothing. An item may be there twice. Read the records,
    /// [promote](Self::promote) the items, and repeat the operations.
    ///
    /// Until this is called, all further writes under this guard fail with
    /// [`Error::OnDisk`](crate::Error::OnDisk), so that no operation of several steps is completed
    /// with a wrong result.
    #[inline]
    pub fn take_on_disk(&self) -> Vec<OnDisk> {
        if !self.session.needs_disk.replace(false) {
            return Vec::new();
        }
        self.session.on_disk.take()
    }

    /// Returns whether operations under this guard needed items on disk since the last call of
    /// [`take_on_disk`](Self::take_on_disk).
    #[inline]
    pub fn needs_disk(&self) -> bool {
        self.session.needs_disk.get()
    }

    /// Returns the number of items on disk that operations under this guard needed since the last
    /// call of [`take_on_disk`](Self::take_on_disk).
    pub fn needed_from_disk(&self) -> usize {
        self.session.on_disk.borrow().len()
    }

    /// Sets whether writes under this guard keep all items where they are: they free no memory, and
    /// so they move no item to disk. With an [exclusive](Self::begin_exclusive) guard, an operation
    /// of several steps finds the items in memory that were there before it.
    pub fn keep_items(&self, keep: bool) {
        self.session.keeps_items.set(keep);
    }

    /// Returns the item of a key if it is on disk. Does not record that an operation
    /// needs it.
    pub fn find_on_disk(&self, key: &[u8]) -> Option<OnDisk> {
        let hash = self.cache().hash(key);
        let slot = self.position(key, hash)?.slot;
        slot.is_on_disk().then(|| OnDisk::new(hash, slot.place()))
    }

    /// Returns whether the record may have the current item of its key: whether the index points to
    /// it, or to an item in memory that may have the same key.
    pub fn may_be_current(&self, record: OnDisk) -> bool {
        let Cache { arena, tables, .. } = self.cache();
        let in_memory = tables.find(arena, record.hash, |_| true);
        in_memory.is_some_and(|found| !found.slot.is_on_disk())
            || tables.lock(arena, record.hash).find_place(record.place).is_some()
    }

    /// Notes that an operation needs the item of a key, if it is on disk.
    pub fn note_if_on_disk(&self, key: &[u8]) {
        let hash = self.cache().hash(key);
        if let Some(found) = self.position(key, hash).filter(|found| found.slot.is_on_disk()) {
            self.note_on_disk(hash, found.slot);
        }
    }

    /// Notes that an operation needs the item on disk of this slot, for a key with this hash.
    #[cold]
    pub(super) fn note_on_disk(&self, hash: KeyHash, slot: Slot) {
        self.note(OnDisk::new(hash, slot.place()));
    }

    /// Notes that an operation without a key needs the item on disk of this slot, of whose hash
    /// these bits are known.
    #[cold]
    pub(super) fn note_without_key(&self, hash: KeyHash, slot: Slot) {
        self.note(OnDisk { hash, place: slot.place(), is_for_key: false });
    }

    fn note(&self, on_disk: OnDisk) {
        let mut noted = self.session.on_disk.borrow_mut();
        // The same item is usually needed again soon, or not at all.
        if !noted.iter().rev().take(MAX_COMPARED).any(|one| *one == on_disk) {
            noted.push(on_disk);
        }
        self.session.needs_disk.set(true);
    }

    /// Notes that the item on disk of this slot is replaced or removed. Called while the table of
    /// the key is locked: later, the place may be used for another record.
    #[cold]
    pub(super) fn note_record_removed(&self, slot: Slot) {
        self.note_place_removed(slot.place());
    }

    /// Notes the same of the record at a place.
    pub(super) fn note_place_removed(&self, place: u64) {
        if let Some(records) = &self.cache().records
            && let Some(id) = records.records.id(place)
        {
            records.add_removed(id);
        }
    }

    /// Notes that an item in memory is replaced or removed, if there is a record of it.
    #[inline]
    pub(super) fn note_item_removed(&self, address: u64) {
        if self.cache().records.is_some() {
            self.note_record_of(&self.item(address, 0));
        }
    }

    /// Notes that the record of an item, if it has one, is not that of its key any more. Called
    /// while the table of the key is locked, or before the index changes.
    #[inline]
    pub(super) fn note_record_of(&self, item: &Item<'_>) {
        if let Some((records, id)) = self.cache().records.as_ref().zip(item.header.metadata.record)
        {
            records.add_removed(id);
        }
    }

    /// Notes that a key is stored or removed. Called while its table is locked.
    #[inline]
    pub(super) fn note_changed(&self, hash: KeyHash) {
        if self.cache().is_restoring() {
            self.cache().note_changed(hash);
            if let Some(records) = &self.cache().records {
                records.add_changed(hash.to_u64());
            }
        }
    }

    /// Does what [`log_removed_records`](Self::log_removed_records) does, before the items of a
    /// segment may be written to disk: a record of a key must not be complete before the one that
    /// it replaces is removed.
    #[inline]
    pub(super) fn log_before_seal(&self) {
        self.log_removed_records();
    }

    /// Passes all records that were replaced or removed so far, under this guard or another, to
    /// [`Records::note_removed`](crate::Records::note_removed). Happens when a guard ends. Call it
    /// before the reply to a change under this guard is sent.
    #[inline]
    pub fn log_removed_records(&self) {
        if let Some(records) = &self.cache().records {
            records.log();
        }
    }
}

impl SlotItems for Guard<'_> {
    fn hash(&self, address: u64) -> KeyHash {
        self.cache().hash(self.item(address, 0).key())
    }

    fn note_dropped(&self, place: u64) {
        self.note_place_removed(place);
    }
}
