//! Items with a history: those of an earlier run, which are restored while other sessions already
//! use the cache, and those of another cache.

use crate::error::{Error, Result};
use crate::index::slot::MAX_FREQUENCY;
use crate::memory::meta::Queue;
use crate::session::state::{Expect, Guard};
use crate::write::Write;

impl Guard<'_> {
    /// Restores an item of an earlier run, which had this [frequency](crate::Item::frequency), at
    /// most 3. The condition of the write is ignored.
    ///
    /// Returns `false` if it was not restored: it has expired; restoring has not begun or has
    /// ended; or its key has an item or was changed since
    /// [`Cache::begin_restore`](crate::Cache::begin_restore), or, rarely, the record of changed
    /// keys cannot tell it from such a key.
    ///
    /// Restoring evicts nothing.
    ///
    /// # Errors
    ///
    /// - [`TooLong`](Error::TooLong) if the key or the value exceeds its maximum.
    /// - [`Full`](Error::Full) if no memory is free but the reserve for reclamation. Restore first
    ///   what was read most.
    pub fn restore(
        &self,
        key: &[u8],
        value: &[u8],
        write: &Write<'_>,
        frequency: u32,
    ) -> Result<bool> {
        let hash = self.cache().hash(key);
        let metadata = write.metadata(self.now_ms(), None);
        let has_expired = metadata.expires_ms.is_some_and(|at_ms| at_ms <= self.now_ms());
        if has_expired || !self.cache().may_restore(hash) {
            return Ok(false);
        }
        if !self.cache().has_memory_to_restore() {
            return Err(Error::Full);
        }
        let frequency = frequency.min(MAX_FREQUENCY);
        let queue = if frequency > 0 { Queue::Main } else { Queue::Small };
        let expect = Expect::Unchanged { frequency };
        self.put_in((key, hash), value, (metadata, queue), expect)
    }
    /// Stores an item that another cache had with this [frequency](crate::Item::frequency), at most
    /// 3, and replaces the item of its key. Its number for compare-and-set is kept, and numbers
    /// that sessions reserve later are greater. The condition of the write is ignored.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn receive(
        &self,
        key: &[u8],
        value: &[u8],
        write: &Write<'_>,
        frequency: u32,
    ) -> Result<()> {
        let hash = self.cache().hash(key);
        let metadata = write.metadata(self.now_ms(), None);
        if let Some(cas) = metadata.cas {
            self.cache().skip_cas(cas);
        }
        let frequency = frequency.min(MAX_FREQUENCY);
        let queue = if frequency > 0 { Queue::Main } else { Queue::Small };
        let expect = Expect::Received { frequency };
        self.put_in((key, hash), value, (metadata, queue), expect).map(drop)
    }
}
