//! Items on disk that the operations of a guard need, and records that they replaced or removed.

use crate::hash::KeyHash;
use crate::index::slot::Slot;
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

    /// Returns the item of a key if it is on disk. No operation counts.
    pub fn find_on_disk(&self, key: &[u8]) -> Option<OnDisk> {
        let hash = self.cache().hash(key);
        let slot = self.position(key, hash)?.slot;
        slot.is_on_disk().then(|| OnDisk { hash, place: slot.place() })
    }

    /// Notes that an operation needs the item of a key, if it is on disk.
    pub fn note_if_on_disk(&self, key: &[u8]) {
        let hash = self.cache().hash(key);
        if let Some(found) = self.position(key, hash).filter(|found| found.slot.is_on_disk()) {
            self.note_on_disk(hash, found.slot);
        }
    }

    /// Notes that an operation needs the item on disk of this slot.
    #[cold]
    pub(super) fn note_on_disk(&self, hash: KeyHash, slot: Slot) {
        let on_disk = OnDisk { hash, place: slot.place() };
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
        let records = self.cache().records.as_ref();
        let id = records.and_then(|records| records.id(slot.place()));
        self.session.removed_records.borrow_mut().extend(id);
        self.session.has_removed_records.set(true);
    }

    /// Notes that an item in memory is replaced or removed, if there is a record of it.
    #[inline]
    pub(super) fn note_item_removed(&self, address: u64) {
        if self.cache().records.is_some() {
            self.note_record_of(&self.item(address, 0));
        }
    }

    #[cold]
    fn note_record_of(&self, item: &Item<'_>) {
        if let Some(id) = item.header.metadata.record {
            self.note_removed_id(id);
        }
    }

    /// Notes that the record with this identifier is out of date.
    pub(super) fn note_removed_id(&self, id: u64) {
        self.session.removed_records.borrow_mut().push(id);
        self.session.has_removed_records.set(true);
    }

    /// Notes that a key is stored or removed. Called while its table is locked.
    #[inline]
    pub(super) fn note_changed(&self, hash: KeyHash) {
        if self.cache().is_restoring() {
            self.cache().note_changed(hash);
            if self.cache().records.is_some() {
                self.session.changed_hashes.borrow_mut().push(hash.to_u64());
                self.session.has_removed_records.set(true);
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

    /// Passes the identifiers of all records that were replaced or removed under this guard to
    /// [`Records::note_removed`](crate::Records::note_removed). Happens when the guard ends. Call
    /// it before, if a client is told of the change before.
    #[inline]
    pub fn log_removed_records(&self) {
        if self.session.has_removed_records.replace(false) {
            self.session.log_removed_records();
        }
    }
}
