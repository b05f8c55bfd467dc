//! The records on disk, as the cache sees them.

use crate::state::State;
use nuthatch_cache::Records;
use nuthatch_tier::{Error, Place, Reader, RecordId, Removals};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Connects the cache to the item files.
pub(crate) struct ItemRecords {
    reader: Reader,
    removals: Removals,
    /// The number of the item file that is being removed; 0 if there is none. No slot of the index
    /// may be pointed to a record in it.
    leaving: AtomicU64,
    /// Since all items were removed, no item is in item files with lower numbers.
    cleared_before: AtomicU64,
    state: Arc<State>,
}

impl ItemRecords {
    pub(crate) fn new(reader: Reader, removals: Removals, state: Arc<State>) -> Self {
        Self {
            reader,
            removals,
            leaving: AtomicU64::new(0),
            cleared_before: AtomicU64::new(0),
            state,
        }
    }

    /// Returns the number below which item files have no items, since all items were removed after
    /// the last call; 0 if they were not.
    pub(crate) fn take_cleared(&self) -> u64 {
        self.cleared_before.swap(0, Ordering::SeqCst)
    }

    /// Records that all records written so far are complete. Not before all records of the last run
    /// that are not complete were removed.
    pub(crate) fn commit(&self) {
        if !self.state.is_recovering.load(Ordering::SeqCst) {
            self.check(self.removals.commit());
        }
    }

    /// Reports that the removal log could not be written: the items that are on disk now are found
    /// until the process ends, and not after it.
    fn check(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.state.report_log_failure(&error);
        }
    }

    /// Sets the item file that is being removed, or 0.
    pub(crate) fn set_leaving(&self, file: u64) {
        self.leaving.store(file, Ordering::SeqCst);
    }
}

impl Records for ItemRecords {
    fn id(&self, place: u64) -> Option<u64> {
        self.reader.record_id(Place::unpack(place, 0)).map(RecordId::pack)
    }

    fn place(&self, id: u64) -> Option<u64> {
        let id = RecordId::unpack(id);
        if id.file == self.leaving.load(Ordering::SeqCst) {
            return None;
        }
        self.reader.place(id, 0).map(Place::pack)
    }

    fn note_removed(&self, ids: &[u64]) {
        let ids: Vec<_> = ids.iter().map(|id| RecordId::unpack(*id)).collect();
        self.check(self.removals.append(&ids));
    }

    fn note_all_removed(&self) {
        // The newest file may be open, and get items from now on.
        let newest = self.reader.numbers().last().copied().unwrap_or(0);
        self.cleared_before.fetch_max(newest, Ordering::SeqCst);
        self.check(self.removals.append_all());
    }

    fn note_changed(&self, hashes: &[u64]) {
        self.check(self.removals.append_changed(hashes));
    }
}
