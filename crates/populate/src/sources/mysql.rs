//! MySQL and MariaDB: one connection with a consistent snapshot for all sources of a database.

use super::{Dialect, MakeReceiver, Session, Stop, tls};
use crate::error::{Error, Result};
use crate::job::{Secret, Source, Tls};
use crate::rows::{Cell, CellBuffers, Row};
use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Opts, OptsBuilder, SslOpts, Value as SqlValue};
use nuthatch_snapshot::Value;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use url::Url;

const DIALECT: Dialect = Dialect { name_quote: '`', has_backslash_escapes: true };
/// The number of the character set of columns of bytes.
const BINARY: u16 = 63;
/// Maximum time in which a session is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection with an open transaction.
pub(super) struct MysqlSession {
    runtime: Runtime,
    /// `None` only while the session is closed.
    connection: Option<Conn>,
    name: String,
}

impl Drop for MysqlSession {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        // Ends the session; the server would count an aborted connection otherwise.
        let closing = async { tokio::time::timeout(CLOSE_TIMEOUT, connection.disconnect()).await };
        let _ = self.runtime.block_on(closing);
    }
}

impl MysqlSession {
    /// Connects, and begins the transaction.
    pub(super) fn open(source: &Source, url: &Url) -> Result<Self> {
        let name = source.name();
        let options = options(source, url)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Error::System(format!("start a runtime: {error}")))?;
        let connected = runtime.block_on(async {
            let mut connection = Conn::new(options).await?;
            for statement in [
                "set names utf8mb4",
                "set time_zone = '+00:00'",
                "set session transaction isolation level repeatable read",
                "start transaction with consistent snapshot, read only",
            ] {
                connection.query_drop(statement).await?;
            }
            Ok(connection)
        });
        let connection = connected.map_err(|error| failure(&name, &error))?;
        Ok(Self { runtime, connection: Some(connection), name })
    }
}

fn options(source: &Source, url: &Url) -> Result<Opts> {
    let mut plain = url.clone();
    plain.set_query(None);
    let invalid = |error: mysql_async::UrlError| Error::source(&source.name(), error.to_string());
    let mut options = OptsBuilder::from_opts(Opts::from_url(plain.as_str()).map_err(invalid)?)
        .prefer_socket(false)
        .stmt_cache_size(0);
    let variable = || std::env::var("MYSQL_PWD").ok().filter(|_| url.password().is_none());
    let password = source.password.as_ref().map(Secret::read).transpose()?;
    if let Some(password) = password.or_else(variable) {
        options = options.pass(Some(password));
    }
    let ssl = match tls::mode(source, url)? {
        Tls::Off => None,
        Tls::Unverified => Some(SslOpts::default().with_danger_accept_invalid_certs(true)),
        Tls::Verify => {
            let roots = tls::authorities_in_der(source)?.into_iter().map(Into::into);
            let roots = SslOpts::default().with_root_certs(roots.collect());
            Some(roots.with_disable_built_in_roots(true))
        }
    };
    Ok(options.ssl_opts(ssl).into())
}

impl Session for MysqlSession {
    fn estimated_rows(&mut self, _source: &Source) -> Option<u64> {
        None
    }

    fn read(
        &mut self,
        source: &Source,
        query: Option<&str>,
        make_receiver: &MakeReceiver<'_>,
    ) -> Result<(), Stop> {
        let (runtime, name) = (&self.runtime, &self.name);
        let connection = self.connection.as_mut().expect("an open session");
        let fault = |error: mysql_async::Error| failure(name, &error);
        let query = query.or(source.query.as_deref()).unwrap_or_default();
        let mut receiver = make_receiver();
        runtime.block_on(async {
            let mut result = connection.query_iter(query).await.map_err(fault)?;
            let columns = result.columns_ref().to_vec();
            let names: Vec<_> = columns.iter().map(|c| c.name_str().into_owned()).collect();
            receiver.set_columns(&names)?;
            while let Some(row) = result.next().await.map_err(fault)? {
                receiver.row(&MysqlRow { columns: &columns, row: &row })?;
            }
            receiver.end_part()
        })
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(DIALECT)
    }
}

fn failure(name: &str, error: &mysql_async::Error) -> Error {
    let is_transient = match error {
        mysql_async::Error::Io(_) => true,
        // The server shuts down, the connection was killed or lost, or a lock was not free.
        mysql_async::Error::Server(error) => {
            matches!(error.code, 1040 | 1053 | 1205 | 1927 | 2006 | 2013)
        }
        mysql_async::Error::Driver(error) => {
            matches!(error, mysql_async::DriverError::ConnectionClosed)
        }
        _ => false,
    };
    Error::Source { source: name.to_owned(), message: error.to_string(), is_transient }
}

/// A row of the text protocol: all values are text.
struct MysqlRow<'a> {
    columns: &'a [Column],
    row: &'a mysql_async::Row,
}

impl Row for MysqlRow<'_> {
    fn cell<'r>(
        &'r self,
        column: usize,
        _buffers: &'r mut CellBuffers,
    ) -> Result<Cell<'r>, String> {
        let text = match self.row.as_ref(column) {
            None | Some(SqlValue::NULL) => return Ok(Cell::Null),
            Some(SqlValue::Bytes(bytes)) => bytes.as_slice(),
            Some(other) => return Err(format!("expected text, found {}", other.as_sql(false))),
        };
        let column = &self.columns[column];
        if column.character_set() == BINARY && is_text(column.column_type()) {
            return Ok(Cell::Value(Value::Bytes(text)));
        }
        let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
        Ok(match column.column_type() {
            ColumnType::MYSQL_TYPE_TINY
            | ColumnType::MYSQL_TYPE_SHORT
            | ColumnType::MYSQL_TYPE_INT24
            | ColumnType::MYSQL_TYPE_LONG
            | ColumnType::MYSQL_TYPE_LONGLONG
            | ColumnType::MYSQL_TYPE_YEAR => Cell::Value(Value::I64(int(text, column)?)),
            ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_DOUBLE => {
                let float = fast_float2::parse(text).map_err(|error| error.to_string())?;
                Cell::Value(Value::F64(float))
            }
            ColumnType::MYSQL_TYPE_JSON => Cell::Json(text.as_bytes()),
            _ => Cell::Value(Value::String(text)),
        })
    }
}

/// Returns whether values of a type are bytes or text, depending on the character set.
fn is_text(column_type: ColumnType) -> bool {
    matches!(
        column_type,
        ColumnType::MYSQL_TYPE_STRING
            | ColumnType::MYSQL_TYPE_VAR_STRING
            | ColumnType::MYSQL_TYPE_VARCHAR
            | ColumnType::MYSQL_TYPE_BLOB
            | ColumnType::MYSQL_TYPE_TINY_BLOB
            | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
            | ColumnType::MYSQL_TYPE_LONG_BLOB
            | ColumnType::MYSQL_TYPE_BIT
            | ColumnType::MYSQL_TYPE_GEOMETRY
    )
}

fn int(text: &str, column: &Column) -> Result<i64, String> {
    text.parse().map_err(|_| {
        let is_unsigned = column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
        let advice = if is_unsigned { "; cast(… as char) stores it as text" } else { "" };
        format!("expected an integer of at most 64 bits with a sign, found {text}{advice}")
    })
}
