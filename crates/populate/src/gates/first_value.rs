//! The value of a query that returns one.

use crate::error::{Error, Result};
use crate::job::Source;
use crate::sources::{MakeReceiver, RowReceiver, Session, Stop};
use nuthatch_rows::{Cell, CellBuffers, Literal, Row};
use nuthatch_snapshot::Value;
use std::sync::{Mutex, PoisonError};

/// The value of a query.
#[derive(Clone, Debug)]
pub(crate) enum FirstValue {
    /// There is no row, or the value is NULL.
    Null,
    /// A number or a text. Booleans are `true` and `false`.
    Literal(Literal),
    /// An infinite float, or one that is not a number.
    NotFinite(f64),
}

/// Returns the value of a query that returns one column and at most one row.
///
/// # Errors
///
/// Returns [`Error::Source`] if the query fails, or returns a list, or more rows or columns.
pub(crate) fn first_value(
    session: &mut dyn Session,
    source: &Source,
    query: &str,
) -> Result<FirstValue> {
    let first = Mutex::new(Ok(FirstValue::Null));
    let make: Box<MakeReceiver<'_>> =
        Box::new(|| Box::new(First { value: &first, has_row: false }));
    let read = session.read(source, Some(query), &*make);
    drop(make);
    match read {
        Ok(()) | Err(Stop::Enough) => {}
        Err(Stop::Fault(error)) => return Err(error),
    }
    let value = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    value.map_err(|message| Error::source(&source.name(), format!("{query}: {message}")))
}

/// Keeps the value of the only row.
struct First<'a> {
    value: &'a Mutex<Result<FirstValue, String>>,
    has_row: bool,
}

impl First<'_> {
    fn set(&self, value: Result<FirstValue, String>) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl RowReceiver for First<'_> {
    fn set_columns(&mut self, names: &[String]) -> Result<(), Stop> {
        if names.len() == 1 {
            return Ok(());
        }
        self.set(Err(format!("expected one column, found {}", names.len())));
        Err(Stop::Enough)
    }

    fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
        if self.has_row {
            self.set(Err("expected one row, found more".to_owned()));
            return Err(Stop::Enough);
        }
        self.has_row = true;
        let mut cells = CellBuffers::default();
        let value = match row.cell(0, &mut cells) {
            Ok(Cell::Null) => Ok(FirstValue::Null),
            Ok(Cell::Value(Value::Bool(truth))) => {
                Ok(FirstValue::Literal(Literal::Text(truth.to_string())))
            }
            Ok(Cell::Value(Value::F64(float))) if !float.is_finite() => {
                Ok(FirstValue::NotFinite(float))
            }
            Ok(cell) => {
                let expected = || "expected a number or a text, found another value".to_owned();
                cell.literal().map(FirstValue::Literal).ok_or_else(expected)
            }
            Err(message) => Err(message),
        };
        self.set(value);
        Ok(())
    }
}
