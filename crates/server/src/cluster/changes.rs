//! The keys that clients change while their slots move to another node.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys that are recorded at a time, and their bytes. Beyond either, writers wait until they were
/// sent.
const MAX_KEYS: usize = 64 << 10;
const MAX_BYTES: usize = 16 << 20;

/// Changed keys that were not sent since.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<Changed>);

#[derive(Debug, Default)]
struct Changed {
    keys: HashSet<Box<[u8]>>,
    bytes: usize,
    /// Whether a request waits until the keys were taken.
    is_awaited: bool,
}

impl Changes {
    /// Records keys before a request changes them. Records all of them or, if there are too many,
    /// none. Returns whether it did.
    pub(super) fn record<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> bool {
        let mut changed = self.lock();
        if changed.keys.len() >= MAX_KEYS || changed.bytes >= MAX_BYTES {
            changed.is_awaited = true;
            return false;
        }
        for key in keys {
            if changed.keys.insert(key.into()) {
                changed.bytes += key.len();
            }
        }
        true
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.lock().keys.len()
    }

    /// Takes all keys. Returns them, and whether a request waits for that.
    ///
    /// A request may still be about to change a key. Wait for the guards of other sessions before
    /// the items are read.
    pub(super) fn take(&self) -> (HashSet<Box<[u8]>>, bool) {
        let Changed { keys, is_awaited, .. } = std::mem::take(&mut *self.lock());
        (keys, is_awaited)
    }

    fn lock(&self) -> MutexGuard<'_, Changed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_wait_when_too_many_keys_are_recorded() {
        let changes = Changes::default();
        let long = vec![0; MAX_BYTES - 1];
        assert!(changes.record([&b"a"[..], &long, b"a"].into_iter()));
        assert!(!changes.record([&b"b"[..]].into_iter()));
        let (keys, is_awaited) = changes.take();
        assert!(keys.len() == 2 && is_awaited);
        assert!(changes.record((0..=MAX_KEYS).map(|_| &b"same"[..])));
        assert_eq!((changes.len(), changes.take().1), (1, false));
    }
}
