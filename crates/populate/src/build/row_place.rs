//! Where a row is, for messages.

use crate::error::Error;
use crate::sources::Stop;
use nuthatch_rows::RowFault;

/// The source of the rows that a thread receives, or the file of it that is read.
pub(crate) struct RowPlace {
    name: String,
    /// Rows received before those of the file.
    rows_before: u64,
    /// Whether the rows are in the order of the source, not in ranges.
    is_in_order: bool,
}

impl RowPlace {
    /// Returns the place of the rows of a source.
    pub(crate) fn new(source: String) -> Self {
        Self { name: source, rows_before: 0, is_in_order: true }
    }

    /// Returns the name of the source or the file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Begins the rows of a file, after this many rows of others.
    pub(crate) fn begin_file(&mut self, name: &str, rows_before: u64) {
        name.clone_into(&mut self.name);
        self.rows_before = rows_before;
    }

    /// Begins the rows of a range: their numbers are not those of the source.
    pub(super) fn begin_range(&mut self) {
        self.is_in_order = false;
    }

    /// Returns the error of a row. `row` is the number of rows received so far.
    #[cold]
    pub(crate) fn fault(&self, row: u64, fault: RowFault) -> Stop {
        let number = if self.is_in_order {
            format!("row {}: ", row - self.rows_before)
        } else {
            String::new()
        };
        let error = |message: String| Error::source(&self.name, format!("{number}{message}"));
        match fault {
            RowFault::Row(message) => error(message).into(),
            RowFault::Sink(nuthatch_snapshot::Error::Limit(limit)) => {
                let (what, max, found) = (limit.what, limit.max, limit.found);
                error(format!("expected a {what} of at most {max}, found {found}")).into()
            }
            RowFault::Sink(error) => Error::Snapshot(error).into(),
        }
    }
}
