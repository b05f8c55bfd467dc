//! Prints rows, one per line.

use crate::outcome::Failure;
use crate::terminal::Stdout;
use nuthatch_cli::output::{json_row, tsv_escape};
use nuthatch_snapshot::Value;
use nuthatch_store::{Entry, Row};

/// The format of printed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// The key, a tab and the value, both escaped.
    Tsv,
    /// The escaped key without the value.
    Keys,
    /// A JSON object, in the form that `load` reads.
    Json,
}

/// Prints rows, one per line.
pub(super) struct RowPrinter {
    stdout: Stdout,
    line: Vec<u8>,
    format: RowFormat,
}

impl RowPrinter {
    pub(super) fn new(format: RowFormat) -> Self {
        Self { stdout: Stdout::new(), line: Vec::new(), format }
    }

    pub(super) fn put(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.format_row(row);
        self.line.push(b'\n');
        self.stdout.write(&self.line)
    }

    /// Prints a row; in JSON also with its version and expiry time, if it has them.
    pub(super) fn put_entry(&mut self, key: &[u8], entry: &Entry<'_>) -> Result<(), Failure> {
        self.format_row((key, entry.value));
        if self.format == RowFormat::Json {
            // Appends fields to the object of the row.
            self.line.pop();
            let fields = [("version", entry.version), ("expires_at_ms", entry.expires_at_ms)];
            for (name, number) in fields {
                let field = number.map(|number| format!(",\"{name}\":{number}"));
                self.line.extend_from_slice(field.unwrap_or_default().as_bytes());
            }
            self.line.push(b'}');
        }
        self.line.push(b'\n');
        self.stdout.write(&self.line)
    }

    /// Formats the line of a row.
    fn format_row(&mut self, (key, value): Row<'_>) {
        self.line.clear();
        match self.format {
            RowFormat::Json => json_row(key, &json_value_of(value), &mut self.line),
            RowFormat::Keys => tsv_escape(key, &mut self.line),
            RowFormat::Tsv => {
                tsv_escape(key, &mut self.line);
                self.line.push(b'\t');
                tsv_escape(value, &mut self.line);
            }
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.stdout.flush()
    }
}

/// Returns a value for JSON: a string if it is UTF-8, otherwise bytes.
pub(super) fn json_value_of(value: &[u8]) -> Value<'_> {
    std::str::from_utf8(value).map_or(Value::Bytes(value), Value::String)
}
