//! The receiver of the rows of a source.

use crate::error::Error;
use nuthatch_rows::Row;

/// Why a receiver takes no more rows.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It has what it needs.
    Enough,
    /// A row cannot be stored, or the source cannot be read.
    Fault(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Fault(error)
    }
}

/// A receiver of the rows of a source, on one thread.
pub(crate) trait RowReceiver {
    /// Sets the names of the columns of the rows that follow. Called before the first row, and
    /// again when a source without a schema has a new column.
    ///
    /// # Errors
    ///
    /// Returns [`Stop::Fault`] if the job does not fit the columns.
    fn set_columns(&mut self, names: &[String]) -> Result<(), Stop>;

    /// Begins the rows of a file, or of a part of it, which messages name.
    fn begin_file(&mut self, _name: &str) {}

    /// Takes a row.
    ///
    /// # Errors
    ///
    /// Returns [`Stop`] if no more rows are to be read.
    fn row(&mut self, row: &dyn Row) -> Result<(), Stop>;

    /// Begins a part of the rows, which can be dropped as a whole as long as it is not too long.
    fn begin_part(&mut self) {}

    /// Ends the part: its rows stay.
    ///
    /// # Errors
    ///
    /// Returns [`Stop`] as [`row`](Self::row) does.
    fn end_part(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Drops the rows of the part. Returns whether it had no row that was already passed on: only
    /// then can the part be read again.
    fn drop_part(&mut self) -> bool {
        false
    }

    /// Counts a row that has no entries.
    fn skip_row(&mut self) {}

    /// Counts bytes that were read from the source.
    fn count_bytes(&mut self, _bytes: u64) {}
}

/// Makes a receiver for a thread.
pub(crate) type MakeReceiver<'a> = dyn Fn() -> Box<dyn RowReceiver + 'a> + Sync + 'a;
