//! Write access of this process to the folder.
//!
//! Modes, owners and mounts can change while the folder is open. Therefore access is checked before
//! each change of the table, and by each put after a refusal. Reads check nothing; they work in any
//! case.

use super::Segments;
use crate::error::{Error, Result};
use crate::index::Index;
use std::sync::atomic::Ordering;

impl Segments {
    /// Returns whether this process can only read the folder now. Then reads go on, and each put is
    /// refused and counted. The first put after the folder becomes writable is stored.
    pub fn is_read_only(&self) -> bool {
        matches!(self.check_writable(), Err(Error::ReadOnly { .. }))
    }

    /// Checks that this process may change the folder now. If its index is mapped read-only, opens
    /// it again for writing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ReadOnly`] if the system refuses to write to the folder or its index.
    pub fn check_writable(&self) -> Result<()> {
        let result = self.open_for_writing();
        self.is_denied.store(result.is_err(), Ordering::Relaxed);
        result
    }

    /// Checks write access and opens the index for writing if necessary.
    fn open_for_writing(&self) -> Result<()> {
        let denied = |source| Error::ReadOnly { path: self.path().to_owned(), source };
        if let Some(errno) = self.folder.write_denial() {
            return Err(denied(errno.into()));
        }
        let last = self.indexes.latest();
        if last.is_none_or(Index::is_writable) {
            return Ok(());
        }
        let index = self.indexes.adopt(|last| {
            if last.is_none_or(Index::is_writable) {
                return Ok(None);
            }
            Index::open(&self.folder, self.options.guard, true)
        });
        let index = index.map_err(|error| match error {
            Error::Io { source, .. } if Error::is_denial(&source) => denied(source),
            error => error,
        });
        self.close_replaced(last, index?);
        Ok(())
    }
}
