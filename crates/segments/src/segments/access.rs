//! Whether this process may change a folder. Modes, owners and mounts change while it is open, so
//! this is looked at again and again: before each change of the table, and by each put that the
//! last look would refuse. Nothing is looked at for reads, which go on either way.

use super::Segments;
use crate::error::{Error, Result};
use crate::index::Index;
use std::sync::atomic::Ordering;

impl Segments {
    /// Returns whether this process can only read the folder now. Reads go on then, and each put
    /// is refused and counted. When the folder can be written again, the next put is kept.
    pub fn read_only(&self) -> bool {
        matches!(self.check_writable(), Err(Error::ReadOnly { .. }))
    }

    /// Checks that this process may change the folder now. If its index is mapped for reading
    /// alone, it is opened again for writing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ReadOnly`] if the system refuses to write to the folder or its index.
    pub fn check_writable(&self) -> Result<()> {
        let checked = self.try_to_write();
        self.is_denied.store(checked.is_err(), Ordering::Relaxed);
        checked
    }

    fn try_to_write(&self) -> Result<()> {
        let denied = |source| Error::ReadOnly { path: self.path().to_owned(), source };
        if let Some(errno) = self.folder.refuses_writing() {
            return Err(denied(errno.into()));
        }
        let last = self.indexes.last();
        if last.is_none_or(Index::writable) {
            return Ok(());
        }
        let adopted = self.indexes.adopt(|last| {
            if last.is_none_or(Index::writable) {
                return Ok(None);
            }
            Index::open(&self.folder, self.options.guard, true)
        });
        let adopted = adopted.map_err(|error| match error {
            Error::Io { source, .. } if Error::is_denial(&source) => denied(source),
            error => error,
        });
        self.leave(last, adopted?);
        Ok(())
    }
}
