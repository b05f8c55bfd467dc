//! Evicting and removing on request.

use crate::chunks::Chunks;
use crate::error::Result;
use crate::key::Key;
use std::collections::BTreeSet;

impl Chunks {
    /// Evicts what has expired, then what is worth least until no more than so many bytes are used.
    /// Answers how many are.
    pub fn prune(&self, to: Option<u64>) -> Result<u64> {
        Ok(self.segments.prune(to)?)
    }

    /// Evicts what was put before a time, in milliseconds since 1970, as far as nothing beside it
    /// was put since. What is pinned stays, and what was moved because it is used counts as put
    /// when it was moved. Answers how many bytes are used.
    pub fn prune_older(&self, than_ms: u64) -> Result<u64> {
        Ok(self.segments.prune_older(than_ms)?)
    }

    /// Evicts everything but what is pinned and what other processes are writing to. Answers how
    /// many bytes are still used.
    pub fn clear(&self) -> Result<u64> {
        Ok(self.segments.clear()?)
    }

    /// Removes the chunks of an object, and ends its pin. Other versions at the same address stay.
    /// Returns the number of removed chunks.
    ///
    /// # Errors
    /// [`Error::Folder`](crate::Error::Folder) if this process can only read the folder, and if the
    /// object is pinned and the list of pins cannot be changed. Its chunks are removed then.
    pub fn remove(&self, key: &Key) -> Result<u64> {
        self.segments.check_writable()?;
        let removed = self.discard(key);
        if self.segments.pinned()?.contains(&key.name) {
            self.unpin(key)?;
        }
        self.remove_metadata_of(key);
        Ok(removed)
    }

    /// Removes the chunks of an object that turned out to be wrong, and keeps its pin. Returns the
    /// number of removed chunks.
    pub fn discard(&self, key: &Key) -> u64 {
        let mut numbers = BTreeSet::new();
        self.segments.list(|listed| {
            if *listed.label == *key.label {
                numbers.extend(listed.parts.iter().map(|(number, _)| *number));
            }
        });
        for &number in &numbers {
            self.segments.remove(&key.id(number));
        }
        numbers.len() as u64
    }

    /// Changes the [`Options::limit`](nuthatch_segments::Options::limit) for all processes. Like
    /// that option, it evicts at once what the folder has beyond a lower limit.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        Ok(self.segments.set_limit(bytes)?)
    }
}
