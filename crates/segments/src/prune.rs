//! Eviction at the request of a caller: `prune`, `prune_older` and `clear`.

use crate::error::Result;
use crate::guard::FolderGuard;
use crate::segments::Segments;

impl Segments {
    /// Evicts segments whose parts have all expired. If `max_bytes` is given, then evicts the least
    /// useful segments until at most that many bytes are used. Returns the bytes that are used.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`](crate::Error::Busy) if another process or thread has exclusive
    /// access for too long, [`Error::ReadOnly`](crate::Error::ReadOnly) if this process may not
    /// write, and errors of the system.
    pub fn prune(&self, max_bytes: Option<u64>) -> Result<u64> {
        let mut guard = self.folder_guard_without_appenders()?;
        guard.seal_orphans();
        guard.evict_dead()?;
        if let Some(max_bytes) = max_bytes {
            guard.shrink(max_bytes.max(1))?;
        }
        Ok(guard.used())
    }

    /// Evicts the segments to which nothing was written since a time, in milliseconds since 1970.
    /// Pinned records stay. A record that was moved because it was used counts as written when it
    /// was moved. Returns the bytes that are used.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Segments::prune`].
    pub fn prune_older(&self, than_ms: u64) -> Result<u64> {
        let mut guard = self.folder_guard_without_appenders()?;
        guard.seal_orphans();
        guard.evict_older(than_ms)?;
        Ok(guard.used())
    }

    /// Evicts everything except pinned records and segments that other processes write to. Returns
    /// the bytes that are still used.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Segments::prune`].
    pub fn clear(&self) -> Result<u64> {
        let mut guard = self.folder_guard_without_appenders()?;
        guard.shrink(0)?;
        Ok(guard.used())
    }

    /// Waits for exclusive access and closes the segments that this process appends to.
    fn folder_guard_without_appenders(&self) -> Result<FolderGuard<'_>> {
        let mut guard = self.folder_guard()?;
        drop(self.lock_appender().take());
        guard.exclusive.move_appender = None;
        Ok(guard)
    }
}
