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
    /// Number of changes that are not logged. Raised while `changes` is locked: otherwise, changes
    /// that are logged before they are counted would hide others.
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
        self.add(|changes| changes.ids.push(id));
    }

    /// Adds the hash of a key that is changed. Called while the table of the key is locked.
    pub(crate) fn add_changed(&self, hash: u64) {
        self.add(|changes| changes.hashes.push(hash));
    }

    fn add(&self, push: impl FnOnce(&mut Changes)) {
        let mut changes = lock(&self.changes);
        push(&mut changes);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::thread;

    const THREADS: u64 = 4;
    const CHANGES: u64 = 100_000;

    /// A log that is a set.
    #[derive(Default)]
    struct Log(Mutex<HashSet<u64>>);

    impl Log {
        fn has(&self, id: u64) -> bool {
            self.0.lock().expect("no panic").contains(&id)
        }
    }

    impl Records for Log {
        fn id(&self, place: u64) -> Option<u64> {
            Some(place)
        }

        fn place(&self, id: u64) -> Option<u64> {
            Some(id)
        }

        fn note_removed(&self, ids: &[u64]) {
            self.0.lock().expect("no panic").extend(ids);
        }

        fn note_all_removed(&self) {}

        fn note_changed(&self, hashes: &[u64]) {
            self.note_removed(hashes);
        }
    }

    /// A session must not continue before its own changes are logged, by any session.
    #[test]
    fn changes_are_in_the_log_when_their_session_continues() {
        let log = Arc::new(Log::default());
        let records = LoggedRecords::new(Arc::clone(&log) as _);
        thread::scope(|scope| {
            for first in (0..THREADS).map(|thread| thread * CHANGES) {
                let (log, records) = (&log, &records);
                scope.spawn(move || {
                    for id in first..first + CHANGES {
                        match id % 2 {
                            0 => records.add_removed(id),
                            _ => records.add_changed(id),
                        }
                        records.log();
                        assert!(log.has(id), "{id}");
                    }
                });
            }
        });
        assert_eq!(records.count.load(Ordering::Relaxed), 0);
    }
}
