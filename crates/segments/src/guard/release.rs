//! Giving the lock of the folder back for a while.

use super::Turn;
use crate::error::{Error, Result};
use crate::layout::index as at;
use std::sync::atomic::Ordering;

impl Turn<'_> {
    /// Gives the lock back, for work that changes nothing of the table. Other processes may have
    /// turns meanwhile; threads of this one may not.
    pub(crate) fn release(&mut self) {
        self.drop_spare();
        self.lock = None;
    }

    /// Waits for the lock again. Other processes may have changed the table, replaced the index or
    /// changed the settings.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such turn any more, `Error::Busy` for one if another process
    /// has the lock for too long. Then nothing more may be changed.
    pub(crate) fn retake(&mut self) -> Result<()> {
        let of = self.of;
        let busy = || Error::Busy { path: of.path().to_owned() };
        let taken = self.alone.lock(&of.folder, of.options.patience);
        let lock = taken.map_err(|e| Error::io("lock", of.path(), e))?;
        of.note_lock(lock.is_some());
        self.lock = Some(lock.ok_or_else(busy)?);
        self.index = of.reopen()?.ok_or_else(busy)?;
        self.settings = of.settings_now(Some(self.index), &mut self.alone, false)?;
        if self.index.is_copied() {
            self.index.retire(at::IN_USE);
        }
        if self.index.word(at::DIRTY).load(Ordering::Acquire) != 0 {
            self.settle_table()?;
        }
        Ok(())
    }
}
