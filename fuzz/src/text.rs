//! Parsed rows as text.

use nuthatch_cli::output::json_row;
use nuthatch_import::RowSink;
use nuthatch_snapshot::{Error, Value};

/// Collects rows as JSON lines.
#[derive(Debug, Default)]
pub struct JsonRows {
    /// One line for each row.
    pub lines: Vec<u8>,
    /// Number of rows.
    pub rows: u64,
}

impl RowSink for JsonRows {
    fn row(&mut self, line: u64, key: &[u8], value: Value<'_>) -> Result<(), Error> {
        assert!(line > 0, "lines are counted from one");
        json_row(key, &value, &mut self.lines);
        self.lines.push(b'\n');
        self.rows += 1;
        Ok(())
    }
}

impl JsonRows {
    /// Asserts that parsing the collected lines yields the same rows.
    pub fn check(&self) {
        let mut again = Self::default();
        let read = nuthatch_import::parse_jsonl(&self.lines, &mut again);
        assert!(read.is_ok(), "{}: {read:?}", self.lines.escape_ascii());
        assert_eq!(self.rows, again.rows);
        assert!(self.lines == again.lines, "{}", again.lines.escape_ascii());
    }
}
