//! Entries of the slow log.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A slow request.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) time_s: u64,
    pub(crate) us: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) peer: String,
    pub(crate) name: String,
}

/// Entries, the newest first, and the number of the next one.
#[derive(Debug, Default)]
pub(crate) struct SlowLog(Mutex<(VecDeque<Entry>, i64)>);

impl SlowLog {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<Entry>, i64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of requests that were logged, and the number of entries.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let log = self.lock();
        (log.1.unsigned_abs(), log.0.len() as u64)
    }

    /// Adds an entry in front, and drops the oldest ones beyond `max_len`.
    pub(crate) fn add(&self, entry: impl FnOnce(i64) -> Entry, max_len: usize) {
        let mut log = self.lock();
        let (entries, next) = &mut *log;
        let id = *next;
        *next += 1;
        entries.push_front(entry(id));
        entries.truncate(max_len);
    }

    /// Returns the newest entries, at most this many.
    pub(crate) fn newest(&self, max: usize) -> Vec<Entry> {
        self.lock().0.iter().take(max).cloned().collect()
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.lock().0.len()
    }

    /// Removes all entries.
    pub(crate) fn clear(&self) {
        self.lock().0.clear();
    }
}
