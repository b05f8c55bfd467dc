//! Rows as lines.

use crate::outcome::Failure;
use crate::terminal::Stdout;
use nuthatch_cli::output::{json_row, tsv_escape};
use nuthatch_snapshot::Value;
use nuthatch_store::{Entry, Row};

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The key, a tab and the value, both escaped.
    Tsv,
    /// The key alone, escaped.
    Keys,
    /// A JSON object, as `load` reads it.
    Json,
}

/// Prints rows, one a line.
pub(super) struct Lines {
    stdout: Stdout,
    line: Vec<u8>,
    form: Form,
}

impl Lines {
    pub(super) fn new(form: Form) -> Self {
        Self { stdout: Stdout::new(), line: Vec::new(), form }
    }

    pub(super) fn put(&mut self, row: Row<'_>) -> Result<(), Failure> {
        self.make(row);
        self.line.push(b'\n');
        self.stdout.put(&self.line)
    }

    /// Prints a row; as JSON with its version and the time it expires, if it has them.
    pub(super) fn put_entry(&mut self, key: &[u8], entry: &Entry<'_>) -> Result<(), Failure> {
        self.make((key, entry.value));
        if self.form == Form::Json {
            // A row is an object: its fields go on here.
            self.line.pop();
            let fields = [("version", entry.version), ("expires_at_ms", entry.expires_at_ms)];
            for (name, number) in fields {
                let field = number.map(|number| format!(",\"{name}\":{number}"));
                self.line.extend_from_slice(field.unwrap_or_default().as_bytes());
            }
            self.line.push(b'}');
        }
        self.line.push(b'\n');
        self.stdout.put(&self.line)
    }

    /// Makes the line of a row.
    fn make(&mut self, (key, value): Row<'_>) {
        self.line.clear();
        match self.form {
            Form::Json => json_row(key, &typed(value), &mut self.line),
            Form::Keys => tsv_escape(key, &mut self.line),
            Form::Tsv => {
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

/// A value for JSON: text where it is text.
pub(super) fn typed(value: &[u8]) -> Value<'_> {
    std::str::from_utf8(value).map_or(Value::Bytes(value), Value::String)
}
