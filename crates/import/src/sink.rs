//! The trait of what receives parsed rows.

use nuthatch_snapshot::Value;

/// Receives the rows that a parser finds.
pub trait RowSink {
    /// Adds the row that begins in this line.
    ///
    /// # Errors
    ///
    /// Fails if the row cannot be added. The parser stops then.
    fn row(
        &mut self,
        line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error>;

    /// Returns whether the parser must pause after this row, so that the sink can be emptied.
    fn is_full(&self) -> bool {
        false
    }
}
