//! Verification of an open store.

use crate::error::{Error, Result};
use crate::file::meta::{self, Meta};
use crate::file::walk::{Verified, empty_file, verify_pages};
use crate::read::ReadTxn;
use crate::shared::Shared;
use crate::store::Store;

impl Store {
    /// Verifies all pages of one state of the store, while others write. Calls `progress` with the
    /// number of verified pages and the number of all pages, every 1024 pages and at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] with the place of the first damage, and errors of a read transaction: see
    /// [`read`](Self::read).
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<Verified> {
        let (_txn, meta) = self.with_root()?;
        let (file, path) = self.0.data();
        verify_pages(file, path, meta, progress)
    }

    /// Begins a read transaction, and reads its meta page. If commits reuse the page meanwhile,
    /// begins again, at last with the write lock.
    pub(crate) fn with_root(&self) -> Result<(ReadTxn<'_>, Meta)> {
        const MAX_ATTEMPTS: usize = 64;
        let (file, path) = self.0.data();
        let begin = || {
            let txn = self.read()?;
            let meta = meta::read(file, path, Some(txn.id()))?;
            Ok((txn, meta.ok_or_else(|| empty_file(path))?))
        };
        let mut found = begin();
        for _ in 0..MAX_ATTEMPTS {
            if !matches!(found, Err(Error::Corrupt(_))) {
                return found;
            }
            found = begin();
        }
        // Damage persists; commits cannot happen while this has the write lock.
        match Shared::write_lock(&self.0) {
            Ok(_lock) => begin(),
            Err(_) => found,
        }
    }
}
