//! MySQL and MariaDB: one connection with a consistent snapshot for all sources of a database.

use super::runtime::ConnectionRuntime;
use super::{Dialect, MakeReceiver, Nul, Session, Stop, tls};
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::{Source, Tls};
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Opts, OptsBuilder, SslOpts, Value as SqlValue};
use nuthatch_filesystem::file_limit_advice;
use nuthatch_rows::{Cell, CellBuffers, Row};
use nuthatch_snapshot::Value;
use std::fmt::Write;
use std::io::ErrorKind;
use std::time::Duration;
use url::Url;

/// The number of the character set of columns of bytes.
const BINARY: u16 = 63;
/// Maximum time in which a session is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection with an open transaction.
pub(super) struct MysqlSession {
    runtime: ConnectionRuntime,
    /// `None` only while the session is closed.
    connection: Option<Conn>,
    options: Opts,
    /// The last query, if it may still run: its rows were not read to their end.
    open_query: Option<String>,
    interruption: Interruption,
    dialect: Dialect,
    name: String,
}

impl Drop for MysqlSession {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let closing = async {
            if let Some(query) = self.open_query.take() {
                // The server would execute the query to its end.
                let _ = end_query(self.options.clone(), connection.id(), query).await;
            }
            // Ends the session; the server would count an aborted connection otherwise.
            connection.disconnect().await
        };
        let _ = self.runtime.block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, closing).await });
    }
}

impl MysqlSession {
    /// Connects, and begins the transaction.
    pub(super) fn open(source: &Source, url: &Url, interruption: &Interruption) -> Result<Self> {
        let (name, interruption) = (source.name(), interruption.clone());
        let options = options(source, url, &interruption)?;
        let runtime = ConnectionRuntime::start()?;
        let connecting = async {
            let mut connection = Conn::new(options.clone()).await?;
            for statement in [
                "set names utf8mb4",
                "set time_zone = '+00:00'",
                "set session transaction isolation level repeatable read",
                "start transaction with consistent snapshot, read only",
            ] {
                connection.query_drop(statement).await?;
            }
            let mode: Option<String> = connection.query_first("select @@sql_mode").await?;
            Ok((connection, mode.unwrap_or_default()))
        };
        let connected = runtime.block_on(interruption.or_no_answer(&name, connecting))?;
        let (connection, mode) = connected.map_err(|error| failure(&name, &error))?;
        let has_backslash_escapes = !mode.contains("NO_BACKSLASH_ESCAPES");
        let nul = Nul::Hexadecimal;
        let dialect = Dialect { name_quote: '`', has_backslash_escapes, nul };
        Ok(Self {
            runtime,
            connection: Some(connection),
            options,
            open_query: None,
            interruption,
            dialect,
            name,
        })
    }
}

fn options(source: &Source, url: &Url, interruption: &Interruption) -> Result<Opts> {
    let mut plain = url.clone();
    plain.set_query(None);
    let invalid = |error: mysql_async::UrlError| Error::source(&source.name(), error.to_string());
    let mut options = OptsBuilder::from_opts(Opts::from_url(plain.as_str()).map_err(invalid)?)
        .prefer_socket(false)
        .stmt_cache_size(0);
    let variable = || std::env::var("MYSQL_PWD").ok().filter(|_| url.password().is_none());
    let password = source.password.as_ref().map(|secret| secret.read(interruption)).transpose()?;
    if let Some(password) = password.or_else(variable) {
        options = options.pass(Some(password));
    }
    let ssl = match tls::mode(source, url)? {
        Tls::Off => None,
        Tls::Unverified => Some(SslOpts::default().with_danger_accept_invalid_certs(true)),
        Tls::Verify => {
            let roots = tls::authorities_in_der(source, interruption)?.into_iter().map(Into::into);
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
        let Self { runtime, connection, open_query, interruption, name, .. } = self;
        let connection = connection.as_mut().expect("an open session");
        let fault = |error: mysql_async::Error| failure(name, &error);
        let query = query.or(source.query.as_deref()).unwrap_or_default();
        let mut receiver = make_receiver();
        *open_query = Some(query.to_owned());
        runtime.block_on(async {
            // A prepared statement is one statement, and floats keep all their digits.
            let started = interruption.or(connection.exec_iter(query, ())).await?;
            let mut result = started.map_err(fault)?;
            let columns = result.columns_ref().to_vec();
            let names: Vec<_> = columns.iter().map(|c| c.name_str().into_owned()).collect();
            receiver.set_columns(&names)?;
            while let Some(row) = interruption.or(result.next()).await?.map_err(fault)? {
                receiver.row(&MysqlRow { columns: &columns, row: &row })?;
            }
            *open_query = None;
            receiver.end_part()
        })
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(self.dialect)
    }
}

/// Ends the query of another connection. Behind a proxy, this connection can be to another server,
/// where the number is that of another connection: its query has another text.
async fn end_query(
    options: Opts,
    connection: u32,
    query: String,
) -> Result<(), mysql_async::Error> {
    let mut own = Conn::new(options).await?;
    let found = "select 1 from information_schema.processlist where id = ? and info = ?";
    if own.exec_first::<u8, _, _>(found, (connection, query)).await?.is_some() {
        own.query_drop(format!("kill query {connection}")).await?;
    }
    own.disconnect().await
}

fn failure(name: &str, error: &mysql_async::Error) -> Error {
    let is_transient = match error {
        mysql_async::Error::Io(mysql_async::IoError::Io(error)) => {
            file_limit_advice(error).is_none() && error.kind() != ErrorKind::InvalidData
        }
        // A certificate that is not valid stays so.
        mysql_async::Error::Io(error) => !error.to_string().contains("certificate"),
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

struct MysqlRow<'a> {
    columns: &'a [Column],
    row: &'a mysql_async::Row,
}

impl Row for MysqlRow<'_> {
    fn cell<'r>(&'r self, column: usize, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String> {
        let (value, column) = (self.row.as_ref(column), &self.columns[column]);
        Ok(match value {
            None | Some(SqlValue::NULL) => Cell::Null,
            Some(SqlValue::Bytes(bytes)) => return text_or_bytes(bytes, column),
            Some(SqlValue::Int(int)) => Cell::Value(Value::I64(*int)),
            Some(SqlValue::UInt(int)) => {
                let int = i64::try_from(*int).map_err(|_| {
                    format!(
                        "expected an integer of at most 64 bits with a sign, found {int}; \
                         cast(… as char) stores it as text"
                    )
                })?;
                Cell::Value(Value::I64(int))
            }
            Some(SqlValue::Float(float)) => {
                // The decimal digits of the short float, as other databases have them.
                let float = fast_float2::parse(float.to_string());
                Cell::Value(Value::F64(float.map_err(|error| error.to_string())?))
            }
            Some(SqlValue::Double(float)) => Cell::Value(Value::F64(*float)),
            Some(time) => {
                buffers.text.clear();
                push_time(time, column, &mut buffers.text);
                Cell::Value(Value::String(&buffers.text))
            }
        })
    }
}

fn text_or_bytes<'r>(bytes: &'r [u8], column: &Column) -> Result<Cell<'r>, String> {
    if column.character_set() == BINARY && is_text(column.column_type()) {
        return Ok(Cell::Value(Value::Bytes(bytes)));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    Ok(match column.column_type() {
        ColumnType::MYSQL_TYPE_JSON => Cell::Json(bytes),
        _ => Cell::Value(Value::String(text)),
    })
}

/// Appends a date or a time, with the decimals of its column.
fn push_time(value: &SqlValue, column: &Column, text: &mut String) {
    let micros = match *value {
        SqlValue::Date(year, month, day, hour, minute, second, micros) => {
            let _ = write!(text, "{year:04}-{month:02}-{day:02}");
            if column.column_type() == ColumnType::MYSQL_TYPE_DATE {
                return;
            }
            let _ = write!(text, " {hour:02}:{minute:02}:{second:02}");
            micros
        }
        SqlValue::Time(is_negative, days, hours, minute, second, micros) => {
            let (sign, hours) = (if is_negative { "-" } else { "" }, days * 24 + u32::from(hours));
            let _ = write!(text, "{sign}{hours:02}:{minute:02}:{second:02}");
            micros
        }
        _ => return,
    };
    let decimals = usize::from(column.decimals()).min(6);
    if decimals > 0 {
        let _ = write!(text, ".{}", &format!("{micros:06}")[..decimals]);
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
