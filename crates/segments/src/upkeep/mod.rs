//! Keeping the index right: entering parts that are missing in it, growing it, making it again.

mod enter;
mod grow;
mod rebuild;

use crate::error::Result;
use crate::guard::Turn;

impl Turn<'_> {
    /// Puts the table right, enters the parts of segments that are not in the index, and evicts
    /// what is too much.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.settle_table()?;
        self.enter_unread()?;
        self.room(0, true)?;
        Ok(())
    }
}
