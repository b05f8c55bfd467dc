//! What each text format accepts and rejects, as tables: the text, then its rows or its error.

mod csv;
mod dta;
mod jsonl;
mod properties;
mod tsv;

use nuthatch_import::{RowError, RowSink};
use nuthatch_snapshot::Value;

/// A sink that keeps each row as `line key value`, with the `Debug` text of the value.
#[derive(Default)]
pub struct Rows(Vec<String>);

impl RowSink for Rows {
    fn row(
        &mut self,
        line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        self.0.push(format!("{line} {} {value:?}", key.escape_ascii()));
        Ok(())
    }
}

/// Returns the rows of a text, or its error.
fn rows_of(parse: impl FnOnce(&mut Rows) -> Result<(), RowError>) -> Result<Vec<String>, String> {
    let mut rows = Rows::default();
    match parse(&mut rows) {
        Ok(()) => Ok(rows.0),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks that a text has these rows.
#[track_caller]
fn accepts(text: &[u8], found: &Result<Vec<String>, String>, expected: &[&str]) {
    let text = text.escape_ascii();
    let found = found.as_ref().unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(found, expected, "{text}");
}

/// Checks that a text has this error.
#[track_caller]
fn rejects(text: &[u8], found: &Result<Vec<String>, String>, expected: &str) {
    let error = found.as_ref().expect_err(&text.escape_ascii().to_string());
    assert_eq!(error, expected, "{}", text.escape_ascii());
}
