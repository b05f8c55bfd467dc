//! Releasing the table lock for long work, and taking it again.

use super::FolderGuard;
use crate::error::{Error, Result};
use crate::layout::index as at;
use std::sync::atomic::Ordering;

impl FolderGuard<'_> {
    /// Releases the table lock for work that does not change the table. Other processes may take it
    /// meanwhile; other threads of this one still wait.
    pub(crate) fn release(&mut self) {
        self.drop_spare_file();
        self.table_lock = None;
    }

    /// Waits for the table lock again. Other processes may have changed the table, replaced the
    /// index or changed the settings.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Busy`] if another process has the lock for too long, or the error of the
    /// system. The caller must not change anything then.
    pub(crate) fn retake(&mut self) -> Result<()> {
        let segments = self.segments;
        let busy = || Error::Busy { path: segments.path().to_owned() };
        let locked = self.exclusive.lock_table(&segments.folder, segments.options.patience);
        let lock = locked.map_err(|e| Error::io("lock", segments.path(), e))?;
        segments.record_lock_result(lock.is_some());
        self.table_lock = Some(lock.ok_or_else(busy)?);
        self.index = segments.reopen()?.ok_or_else(busy)?;
        self.settings = segments.load_settings(Some(self.index), &mut self.exclusive, false)?;
        if self.index.is_copied() {
            self.index.set_retired(at::IN_USE);
        }
        if self.index.word(at::DIRTY).load(Ordering::Acquire) != 0 {
            self.repair_table()?;
        }
        Ok(())
    }
}
