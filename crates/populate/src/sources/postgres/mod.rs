//! PostgreSQL: `COPY` of queries, on several connections that share one exported snapshot.
//!
//! The connection of the session keeps the snapshot. A source with `split` is read in ranges of
//! that column, by several connections that import the snapshot: a range whose connection is lost
//! is read again, with the same rows. Other sources are read by the connection of the session.

mod array;
mod binary;
mod connect;
mod copy;
mod ranges;
mod rows;
mod text;

use super::parts::read_parts;
use super::{Dialect, MakeReceiver, RowReceiver, Session, Stop};
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::job::Source;
use connect::{Connection, Connector, DIALECT};
use copy::Columns;
use ranges::Ranges;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use url::Url;

/// Maximum number of times that a range is read, and the wait between two of them.
const MAX_RANGE_READS: u32 = 5;
const RANGE_RETRY_WAIT: Duration = Duration::from_secs(1);

/// A connection whose transaction keeps the snapshot that all connections of the session share.
pub(super) struct PostgresSession {
    connection: Connection,
    shared: SharedSnapshot,
}

/// The snapshot that all connections of the session import.
struct SharedSnapshot {
    connector: Connector,
    snapshot: String,
}

/// The state of a thread that reads ranges.
#[derive(Default)]
struct Reader {
    connection: Option<Connection>,
    has_columns: bool,
}

impl PostgresSession {
    /// Connects, begins the transaction and exports its snapshot.
    pub(super) fn open(source: &Source, url: &Url, interruption: &Interruption) -> Result<Self> {
        let connector = Connector::new(source, url, interruption)?;
        let connection = connector.connect()?;
        connection.execute("begin isolation level repeatable read read only")?;
        let snapshot = connection.first_value("select pg_export_snapshot()")?.unwrap_or_default();
        Ok(Self { connection, shared: SharedSnapshot { connector, snapshot } })
    }

    /// Returns the columns of a query.
    fn columns(&self, query: &str) -> Result<Columns> {
        let statement = self.connection.prepare(query)?;
        Ok(Columns::of(statement.columns()))
    }
}

impl PostgresSession {
    /// Reads ranges on several connections.
    fn read_ranges(
        &self,
        Ranges { queries, rows: expected }: Ranges,
        readers: usize,
        (columns, make_receiver): (&Columns, &MakeReceiver<'_>),
    ) -> Result<(), Stop> {
        let (shared, rows) = (&self.shared, AtomicU64::new(0));
        read_parts(queries, readers, make_receiver, |query, reader: &mut Reader, receiver| {
            if !reader.has_columns {
                receiver.set_columns(&columns.names)?;
                reader.has_columns = true;
            }
            let read = shared.read_range(query, columns, &mut reader.connection, receiver)?;
            rows.fetch_add(read, Ordering::Relaxed);
            Ok(())
        })?;
        let found = rows.into_inner();
        if found == expected {
            return Ok(());
        }
        let message = format!(
            "split: expected the {expected} rows of the query in its ranges, found {found}: a \
             query with limit, distinct on or random values returns other rows in each range; \
             leave split out"
        );
        Err(Error::source(&self.shared.connector.name, message).into())
    }
}

impl SharedSnapshot {
    /// Reads a range, again if its connection is lost. Returns the number of rows.
    fn read_range(
        &self,
        query: &str,
        columns: &Columns,
        connection: &mut Option<Connection>,
        receiver: &mut dyn RowReceiver,
    ) -> Result<u64, Stop> {
        let mut reads = 0;
        loop {
            reads += 1;
            receiver.begin_part();
            let result = self
                .connected(connection)
                .map_err(Stop::from)
                .and_then(|connection| copy::copy(connection, query, columns, receiver));
            match result {
                Ok(rows) => return receiver.end_part().map(|()| rows),
                Err(Stop::Fault(error)) if error.is_transient() => {
                    *connection = None;
                    if !receiver.drop_part() || reads == MAX_RANGE_READS {
                        return Err(error.into());
                    }
                    // Wakes up early if the job is interrupted.
                    thread::park_timeout(RANGE_RETRY_WAIT);
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Returns the connection, after connecting with the snapshot of the session if there is none.
    fn connected<'c>(&self, connection: &'c mut Option<Connection>) -> Result<&'c Connection> {
        let connected = if let Some(connected) = connection.take() {
            connected
        } else {
            let connected = self.connector.connect()?;
            let begun = connected.execute(&format!(
                "begin isolation level repeatable read read only; set transaction snapshot '{}'",
                self.snapshot
            ));
            // The snapshot ends with the connection of the session: then the job begins again.
            begun.map_err(Error::into_transient)?;
            connected
        };
        Ok(connection.insert(connected))
    }
}

impl Session for PostgresSession {
    fn estimated_rows(&mut self, source: &Source) -> Option<u64> {
        let query = source.query.clone()?;
        self.connection.estimate(&query).map(|(rows, _)| rows)
    }

    fn read(
        &mut self,
        source: &Source,
        query: Option<&str>,
        make_receiver: &MakeReceiver<'_>,
    ) -> Result<(), Stop> {
        let text = query.or(source.query.as_deref()).unwrap_or_default().to_owned();
        let columns = self.columns(&text)?;
        // A query of its own, such as that of a sample, is small.
        let split = source.split.as_deref().filter(|_| query.is_none());
        let ranges = match split {
            Some(column) => ranges::ranges(&self.connection, (source, &text, column), &columns)?,
            None => None,
        };
        if let Some(ranges) = ranges {
            return self.read_ranges(ranges, source.readers, (&columns, make_receiver));
        }
        let mut receiver = make_receiver();
        receiver.set_columns(&columns.names)?;
        copy::copy(&self.connection, &text, &columns, &mut *receiver)?;
        receiver.end_part()
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(DIALECT)
    }
}
