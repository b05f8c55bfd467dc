//! The handle with which records are removed.

use crate::error::Result;
use crate::record_id::RecordId;
use crate::shared::Shared;
use std::fmt;
use std::sync::Arc;

/// Records in the removal log which records are removed, so that they are not recovered.
///
/// Clones are cheap, and all threads may append at the same time. Entries survive the death of the
/// process when a call returns, and a loss of power when the tier is closed.
#[derive(Clone)]
pub struct Removals {
    shared: Arc<Shared>,
}

impl Removals {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Removes records. Ids of item files that do not exist any more are left out. The entries are
    /// one write, or several if there are more than 65,536 or than a file of the log has room for.
    ///
    /// A record may be removed before its batch is written, and more than once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BudgetReached`](crate::Error::BudgetReached),
    /// [`Error::Closed`](crate::Error::Closed), or the error of the system. Unless the tier was
    /// closed, all records that were appended so far are not recovered then; they can be read until
    /// the tier is closed. Records that are appended later are not affected, unless the system also
    /// refused to mark this in the log: then no record of the existing item files is recovered.
    pub fn append(&self, ids: &[RecordId]) -> Result<()> {
        let shared = &*self.shared;
        shared.removal_log.append(&shared.folder, &shared.files, ids)
    }

    /// Records that all records whose place [`Tier::append`](crate::Tier::append) has returned are
    /// complete: of those, [`append`](Self::append) was called for all that are out of date. From
    /// the first call on, records that were not committed when the process dies are not recovered.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append); the records are not committed then.
    pub fn commit(&self) -> Result<()> {
        self.shared.removal_log.commit(&self.shared.folder)
    }

    /// Removes all committed records of keys with these hashes. One of about 10^15 other keys has
    /// the same entry; its records are removed, too.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    pub fn append_changed(&self, hashes: &[u64]) -> Result<()> {
        let shared = &*self.shared;
        shared.removal_log.append_changed(&shared.folder, &shared.files, hashes)
    }

    /// Removes all records whose place [`Tier::append`](crate::Tier::append) has returned, those of
    /// the batch in memory included. Records that are appended later are not affected, also if
    /// another thread appends them during the call.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Closed`](crate::Error::Closed), or the error of the system if it refuses
    /// to write to the log and to remove item files. A full disk or budget is not an error.
    pub fn append_all(&self) -> Result<()> {
        let shared = &*self.shared;
        shared.removal_log.append_all(&shared.folder, &shared.files)
    }
}

impl fmt::Debug for Removals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Removals").field("folder", &self.shared.folder.path()).finish()
    }
}
