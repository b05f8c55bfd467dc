//! The first value of the result of a query.

use crate::error::{Error, Result};
use crate::job::Source;
use crate::sources::{MakeReceiver, RowReceiver, Session, Stop};
use nuthatch_rows::{Cell, CellBuffers, Literal, Row};
use nuthatch_snapshot::Value;
use std::sync::{Mutex, PoisonError};

/// Returns the first value of the first row of a query; `None` if there is no row, or the value is
/// NULL. Booleans are `true` and `false`.
///
/// # Errors
///
/// Returns [`Error::Source`] if the query fails, or returns a list.
pub(crate) fn first_value(
    session: &mut dyn Session,
    source: &Source,
    query: &str,
) -> Result<Option<Literal>> {
    let first = Mutex::new(None);
    let make: Box<MakeReceiver<'_>> = Box::new(|| Box::new(First(&first)));
    let read = session.read(source, Some(query), &*make);
    drop(make);
    match read {
        Ok(()) | Err(Stop::Enough) => {}
        Err(Stop::Fault(error)) => return Err(error),
    }
    let value = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    value
        .transpose()
        .map_err(|message| Error::source(&source.name(), format!("{query}: {message}")))
}

/// Keeps the first value of the first row.
struct First<'a>(&'a Mutex<Option<Result<Literal, String>>>);

impl RowReceiver for First<'_> {
    fn set_columns(&mut self, _names: &[String]) -> Result<(), Stop> {
        Ok(())
    }

    fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
        let mut cells = CellBuffers::default();
        let value = match row.cell(0, &mut cells) {
            Ok(Cell::Null) => None,
            Ok(Cell::Value(Value::Bool(truth))) => Some(Ok(Literal::Text(truth.to_string()))),
            Ok(cell) => {
                let expected = || "expected a number or a text, found another value".to_owned();
                Some(cell.literal().ok_or_else(expected))
            }
            Err(message) => Some(Err(message)),
        };
        if let Ok(mut first) = self.0.lock() {
            *first = value;
        }
        Err(Stop::Enough)
    }
}
