//! Rows as lines.

use crate::commands::Failure;
use crate::streams::Stdout;
use nuthatch_cli::output::{json_row, tsv_escape};
use nuthatch_snapshot::Value;
use nuthatch_store::Row;

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

    pub(super) fn put(&mut self, (key, value): Row<'_>) -> Result<(), Failure> {
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
        self.line.push(b'\n');
        self.stdout.put(&self.line)
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.stdout.flush()
    }
}

/// A value for JSON: text where it is text.
pub(super) fn typed(value: &[u8]) -> Value<'_> {
    std::str::from_utf8(value).map_or(Value::Bytes(value), Value::String)
}
