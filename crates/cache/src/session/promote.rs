//! Moving items between memory and disk: the index points to the copy in memory or to the record.

use crate::cache::Cache;
use crate::error::Result;
use crate::hash::KeyHash;
use crate::index::slot::Slot;
use crate::item::Metadata;
use crate::records::OnDisk;
use crate::session::state::{Expect, Guard};
use crate::write::Write;

impl Guard<'_> {
    /// Stores the item of a record in memory, if the index still points to the record. `id` is the
    /// identifier of the record: while the item does not change, it can be evicted without writing
    /// it again. The condition of the write is ignored.
    ///
    /// Returns whether the index points to memory now. If the item has expired, the index does not
    /// point to the record any more.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn promote(
        &self,
        place: u64,
        id: u64,
        (key, value): (&[u8], &[u8]),
        write: &Write<'_>,
    ) -> Result<bool> {
        let hash = self.cache().hash(key);
        let metadata = Metadata { record: Some(id), ..write.metadata(self.now_ms(), None) };
        if metadata.expires_ms.is_some_and(|at_ms| at_ms <= self.now_ms()) {
            if self.forget(OnDisk::new(hash, place)) {
                self.session.counters.expired.add(1);
                // The miss that follows is not one of an evicted item.
                self.cache().ghost.remove(hash);
            }
            return Ok(false);
        }
        self.put((key, hash), value, metadata, Expect::Place(place))
    }

    /// Returns whether the index points to the place of an item on disk.
    pub fn points_to(&self, on_disk: OnDisk) -> bool {
        let Cache { arena, tables, .. } = self.cache();
        tables.lock(arena, on_disk.hash).find_place(on_disk.place).is_some()
    }

    /// Removes an item on disk from the index, for example since its record cannot be read. Returns
    /// whether the index pointed to the record. The record is noted as removed, if it still exists:
    /// the key may be stored again.
    pub fn forget(&self, on_disk: OnDisk) -> bool {
        self.remove_on_disk(on_disk, |slot| self.note_record_removed(slot))
    }

    /// Removes an item on disk from the index as [`forget`](Self::forget) does, without noting that
    /// its record is removed: the record must be one that is not found after the process ends.
    pub fn forget_invalid(&self, on_disk: OnDisk) -> bool {
        self.remove_on_disk(on_disk, |_| {})
    }

    fn remove_on_disk(&self, on_disk: OnDisk, note: impl FnOnce(Slot)) -> bool {
        let Cache { arena, tables, .. } = self.cache();
        let mut table = tables.lock(arena, on_disk.hash);
        let Some(position) = table.find_place(on_disk.place) else { return false };
        note(position.slot);
        table.remove(position);
        true
    }

    /// Prepares the index for this many items, which are then added in any order. Without that,
    /// items in the order of their hashes would fill one part of the index after the other.
    pub fn prepare_index(&self, items: u64) {
        let Cache { arena, tables, .. } = self.cache();
        let mut state = self.session.state.borrow_mut();
        loop {
            self.reclaim_for_write(&mut state, 0);
            if !tables.split(arena, items, self) {
                return;
            }
        }
    }

    /// Points the index to a record of an earlier run, whose item had this frequency. Returns
    /// `false` if the key was changed since
    /// [`Cache::begin_restore`](crate::Cache::begin_restore), or, rarely, if that cannot be ruled
    /// out: the record is noted as removed then.
    ///
    /// # Errors
    ///
    /// [`Full`](crate::Error::Full) if the index has no room for another key.
    pub fn recover(&self, hash: KeyHash, place: u64, frequency: u32) -> Result<bool> {
        let mut state = self.session.state.borrow_mut();
        self.reclaim_for_write(&mut state, 0);
        drop(state);
        self.publish_on_disk(hash, place, frequency)
    }
}
