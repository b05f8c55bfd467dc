//! The receiver of parsed rows.

use nuthatch_snapshot::Value;

/// A receiver of the rows that a parser finds.
pub trait RowSink {
    /// Adds a row. `line` is the line in which it begins, counted from one; for formats without
    /// lines it is the number of the row or record. The sink copies what it keeps of key and value.
    ///
    /// # Errors
    ///
    /// Returns an error if the row cannot be added. The parser then stops.
    fn row(
        &mut self,
        line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error>;

    /// Takes the key of a row that has no value. Ignores it by default.
    fn absent(&mut self, _key: &[u8]) {}

    /// Returns whether the parser must pause after this row, so that the caller of the parser can
    /// empty the sink. `false` by default.
    fn is_full(&self) -> bool {
        false
    }
}
