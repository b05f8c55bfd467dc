//! SQLite: one read transaction for all sources of a file.

use super::{Dialect, MakeReceiver, Nul, Session, Stop};
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::Source;
use nuthatch_rows::{Cell, CellBuffers, Row};
use nuthatch_snapshot::Value;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;
use std::time::{Duration, Instant};

/// In double quotes, SQLite takes a name that does not exist for a text.
const DIALECT: Dialect =
    Dialect { name_quote: '`', has_backslash_escapes: false, nul: Nul::Replaced };
/// Maximum time to wait for a writer that locks the whole file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// The time of one wait, after which the flag of interruption is looked at.
const BUSY_LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Number of steps of SQLite's machine between two looks at the flag of interruption.
const STEPS_PER_LOOK: i32 = 100_000;

/// A connection with an open read transaction.
pub(super) struct SqliteSession {
    connection: Connection,
    name: String,
}

impl SqliteSession {
    /// Opens a file for reading, and begins the transaction.
    pub(super) fn open(source: &Source, path: &Path, interruption: &Interruption) -> Result<Self> {
        let name = source.name();
        let fault = |error: rusqlite::Error| failure(&name, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            // Opening a pipe would wait for a writer.
            return Err(Error::source(
                &name,
                "expected a database file, found another kind of file",
            ));
        }
        let mut connection = Connection::open_with_flags(path, flags).map_err(fault)?;
        connection.busy_timeout(BUSY_LOOK_INTERVAL).map_err(fault)?;
        let flag = interruption.clone();
        let handled = connection.progress_handler(STEPS_PER_LOOK, Some(move || flag.is_set()));
        handled.map_err(fault)?;
        // The transaction takes its snapshot at the first read.
        connection.execute_batch("begin").map_err(fault)?;
        let start = Instant::now();
        while let Err(error) = connection.execute_batch("select count(*) from sqlite_schema") {
            interruption.check()?;
            if !is_busy(&error) || start.elapsed() >= BUSY_TIMEOUT {
                return Err(fault(error));
            }
        }
        Ok(Self { connection, name })
    }
}

impl Session for SqliteSession {
    fn estimated_rows(&mut self, _source: &Source) -> Option<u64> {
        None
    }

    fn read(
        &mut self,
        source: &Source,
        query: Option<&str>,
        make_receiver: &MakeReceiver<'_>,
    ) -> Result<(), Stop> {
        let fault = |error: rusqlite::Error| failure(&self.name, &error);
        let query = query.or(source.query.as_deref()).unwrap_or_default();
        let mut statement = self.connection.prepare(query).map_err(fault)?;
        if !statement.readonly() {
            let message = "query: expected one that only reads, found one that writes";
            return Err(Error::source(&self.name, message).into());
        }
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut receiver = make_receiver();
        receiver.set_columns(&names)?;
        let mut rows = statement.query([]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            receiver.row(&SqliteRow(row))?;
        }
        receiver.end_part()
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(DIALECT)
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn failure(name: &str, error: &rusqlite::Error) -> Error {
    let (message, is_transient) = (error.to_string(), is_busy(error));
    Error::Source { source: name.to_owned(), message, is_transient }
}

struct SqliteRow<'a>(&'a rusqlite::Row<'a>);

impl Row for SqliteRow<'_> {
    fn cell<'r>(
        &'r self,
        column: usize,
        _buffers: &'r mut CellBuffers,
    ) -> Result<Cell<'r>, String> {
        let value = self.0.get_ref(column).map_err(|error| error.to_string())?;
        Ok(match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(int) => Cell::Value(Value::I64(int)),
            ValueRef::Real(float) => Cell::Value(Value::F64(float)),
            ValueRef::Blob(bytes) => Cell::Value(Value::Bytes(bytes)),
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text);
                let text = text.map_err(|_| "expected text in UTF-8, found other bytes")?;
                Cell::Value(Value::String(text))
            }
        })
    }
}
