//! Maintenance of the index: entering parts that are missing, growing it, and rebuilding it from
//! the segments.

mod enter;
mod grow;
mod rebuild;

use crate::error::Result;
use crate::guard::FolderGuard;

impl FolderGuard<'_> {
    /// Repairs the table, enters parts that are not in the index yet, and evicts segments while the
    /// folder exceeds its limit.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or [`Error::Busy`](crate::Error::Busy) if the table lock
    /// was lost.
    pub(crate) fn repair(&mut self) -> Result<()> {
        self.repair_table()?;
        self.enter_missing_parts()?;
        self.free_space(0, true)?;
        Ok(())
    }
}
