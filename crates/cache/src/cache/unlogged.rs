//! Changes that the log of the records on disk does not have yet.

use crate::records::Records;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The records on disk, and the changes that were not passed to them yet.
///
/// A session that changes a key adds the change while the table of the key is locked. So a session
/// that changes the same key later finds the earlier change here, or in the log. It logs both when
/// its guard ends, or waits until the other session has: no client is told of a change before the
/// log has all changes on which it builds.
pub(crate) struct LoggedRecords {
    pub(crate) records: Arc<dyn Records>,
    /// Number of changes that are not logged.
    count: AtomicU64,
    changes: Mutex<Changes>,
    /// Held while changes are logged. It has the buffers for them.
    logging: Mutex<Changes>,
}

#[derive(Default)]
struct Changes {
    /// Identifiers of records whose items were replaced or removed.
    ids: Vec<u64>,
    /// Hashes of keys that were changed while items are restored.
    hashes: Vec<u64>,
}

fn lock(changes: &Mutex<Changes>) -> MutexGuard<'_, Changes> {
    changes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoggedRecords {
    pub(crate) fn new(records: Arc<dyn Records>) -> Self {
        let (changes, logging) = Default::default();
        Self { records, count: AtomicU64::new(0), changes, logging }
    }

    /// Adds a record whose item is replaced or removed. Called while the table of the key is
    /// locked, unless no session can find the item.
    pub(crate) fn add_removed(&self, id: u64) {
        lock(&self.changes).ids.push(id);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Adds the hash of a key that is changed. Called while the table of the key is locked.
    pub(crate) fn add_changed(&self, hash: u64) {
        lock(&self.changes).hashes.push(hash);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Returns once all changes are logged that were added before.
    #[inline]
    pub(crate) fn log(&self) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.log_all();
        }
    }

    #[cold]
    fn log_all(&self) {
        let mut logging = lock(&self.logging);
        std::mem::swap(&mut *logging, &mut *lock(&self.changes));
        let Changes { ids, hashes } = &mut *logging;
        if !ids.is_empty() {
            self.records.note_removed(ids);
        }
        if !hashes.is_empty() {
            self.records.note_changed(hashes);
        }
        // Until here, other sessions wait.
        self.count.fetch_sub((ids.len() + hashes.len()) as u64, Ordering::Release);
        ids.clear();
        hashes.clear();
    }
}
