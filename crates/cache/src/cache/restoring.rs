//! Restoring items of an earlier run: from its begin to its end, the cache records changed keys.

use crate::cache::Cache;
use crate::cache::changed_keys::ChangedKeys;
use crate::hash::KeyHash;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Cache {
    /// Begins to restore items of an earlier run: from now on, the cache records which keys are
    /// stored or removed, so that [`Guard::restore`](crate::Guard::restore) does not restore items
    /// of those. Call it before other sessions use the cache, and
    /// [`end_restore`](Self::end_restore) after the last item.
    ///
    /// Until then, each write costs a little more, and 1/256 to 1/128 of the budget is used, at
    /// most 16 MiB.
    pub fn begin_restore(&self) {
        let keys = ChangedKeys::new(self.memory());
        *self.changed_keys.write().unwrap_or_else(PoisonError::into_inner) = Some(keys);
        self.is_restoring.store(true, Ordering::Release);
        self.update_reserved();
    }

    /// Ends restoring items. Later calls of [`Guard::restore`](crate::Guard::restore) restore
    /// nothing.
    pub fn end_restore(&self) {
        self.is_restoring.store(false, Ordering::Release);
        *self.changed_keys.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.update_reserved();
    }

    /// Returns whether items of an earlier run are being restored.
    #[inline]
    pub fn is_restoring(&self) -> bool {
        self.is_restoring.load(Ordering::Relaxed)
    }

    /// Records that a key is stored or removed. Called while its table is locked, so that an item
    /// is restored before or not at all.
    #[inline]
    pub(crate) fn note_changed(&self, hash: KeyHash) {
        if self.is_restoring() {
            self.with_changed_keys(|keys| keys.add(hash));
        }
    }

    /// Records that all keys are removed. Called before they are.
    pub(crate) fn note_all_changed(&self) {
        if self.is_restoring() {
            self.with_changed_keys(|keys| keys.all.store(true, Ordering::Relaxed));
        }
    }

    /// Returns whether the item of a key may be restored, as far as the key was not changed.
    pub(crate) fn may_restore(&self, hash: KeyHash) -> bool {
        self.with_changed_keys(|keys| !keys.has(hash)).unwrap_or(false)
    }

    #[cold]
    fn with_changed_keys<R>(&self, work: impl FnOnce(&ChangedKeys) -> R) -> Option<R> {
        let keys = self.changed_keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.as_ref().map(work)
    }

    /// Returns the bytes that the record of changed keys takes.
    pub(crate) fn restore_memory(&self) -> u64 {
        self.with_changed_keys(ChangedKeys::memory).unwrap_or(0)
    }
}
