//! Eviction and removal at the request of the caller.

use crate::chunks::Chunks;
use crate::error::Result;
use crate::key::Key;
use std::collections::BTreeSet;

impl Chunks {
    /// Evicts expired chunks. If `max_bytes` is given, then evicts the least useful chunks until at
    /// most that many bytes are used. Returns the bytes that are used.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if this process may not write to the folder,
    /// or if another process or thread has exclusive access for too long.
    pub fn prune(&self, max_bytes: Option<u64>) -> Result<u64> {
        Ok(self.segments.prune(max_bytes)?)
    }

    /// Evicts chunks that were stored before a time, in milliseconds since 1970, unless others in
    /// the same segment were stored later. Pinned chunks stay. A chunk that was moved because it
    /// was used counts as stored when it was moved. Returns the bytes that are used.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if this process may not write to the folder,
    /// or if another process or thread has exclusive access for too long.
    pub fn prune_older(&self, than_ms: u64) -> Result<u64> {
        Ok(self.segments.prune_older(than_ms)?)
    }

    /// Evicts everything except pinned objects and segments that other processes write to. Returns
    /// the bytes that are still used.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if this process may not write to the folder,
    /// or if another process or thread has exclusive access for too long.
    pub fn clear(&self) -> Result<u64> {
        Ok(self.segments.clear()?)
    }

    /// Removes the chunks of an object and its pin. Other versions at the same address stay.
    /// Returns the number of removed chunks.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if this process can only read the folder, or
    /// if the object is pinned and the list of pins cannot be changed. In the second case the
    /// chunks are removed.
    pub fn remove(&self, key: &Key) -> Result<u64> {
        self.segments.check_writable()?;
        let removed = self.discard(key);
        if self.segments.pinned()?.contains(&key.name) {
            self.unpin(key)?;
        }
        self.remove_metadata_of(key);
        Ok(removed)
    }

    /// Removes all chunks of an object whose bytes are wrong, and keeps its pin. Returns the number
    /// of removed chunks.
    pub fn discard(&self, key: &Key) -> u64 {
        let mut numbers = BTreeSet::new();
        self.segments.list(|record| {
            if *record.label == *key.label {
                numbers.extend(record.parts.iter().map(|(number, _)| *number));
            }
        });
        for &number in &numbers {
            self.segments.remove(&key.id(number));
        }
        numbers.len() as u64
    }

    /// Changes the [`Options::limit`](nuthatch_segments::Options::limit) for all processes. Like
    /// that option, evicts the excess over a lower limit at once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if this process may not write to the folder,
    /// or if another process or thread has exclusive access for too long.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        Ok(self.segments.set_limit(bytes)?)
    }
}
