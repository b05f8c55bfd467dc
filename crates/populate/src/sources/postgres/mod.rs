//! PostgreSQL: `COPY` of queries, on several connections that share one exported snapshot.
//!
//! The connection of the session keeps the snapshot. A source with `split` is read in ranges of
//! that column, by several connections that import the snapshot: a range whose connection is lost
//! is read again, with the same rows. Other sources are read by the connection of the session.

mod array;
mod connect;
mod copy;
mod ranges;

use super::parts::read_parts;
use super::{Dialect, MakeReceiver, RowReceiver, Session, Stop};
use crate::error::Result;
use crate::job::Source;
use ::postgres::{Client, SimpleQueryMessage};
use connect::{Connector, failure};
use copy::ColumnDecoder;
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;
use url::Url;

const DIALECT: Dialect = Dialect { name_quote: '"', has_backslash_escapes: false };
/// Maximum number of times that a range is read, and the wait between two of them.
const MAX_RANGE_READS: u32 = 5;
const RANGE_RETRY_WAIT: Duration = Duration::from_secs(1);

/// A connection whose transaction keeps the snapshot that all connections of the session share.
pub(super) struct PostgresSession {
    client: Client,
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
    client: Option<Client>,
    has_columns: bool,
}

/// The columns of a query.
struct Columns {
    names: Vec<String>,
    decoders: Vec<ColumnDecoder>,
}

impl PostgresSession {
    /// Connects, begins the transaction and exports its snapshot.
    pub(super) fn open(source: &Source, url: &Url) -> Result<Self> {
        let connector = Connector::new(source, url)?;
        let mut client = connector.connect()?;
        let begin = "begin isolation level repeatable read read only";
        client.batch_execute(begin).map_err(|error| failure(&connector.name, &error))?;
        let exported = client.query_one("select pg_export_snapshot()", &[]);
        let row = exported.map_err(|error| failure(&connector.name, &error))?;
        let shared = SharedSnapshot { snapshot: row.get(0), connector };
        Ok(Self { client, shared })
    }

    /// Returns the columns of a query.
    fn columns(&mut self, query: &str) -> Result<Columns> {
        let prepared = self.client.prepare(query);
        let statement = prepared.map_err(|error| failure(&self.shared.connector.name, &error))?;
        let columns = statement.columns();
        Ok(Columns {
            names: columns.iter().map(|column| column.name().to_owned()).collect(),
            decoders: columns.iter().map(|column| ColumnDecoder::of(column.type_())).collect(),
        })
    }

    /// Returns the first value of the first row of a query.
    fn first_value(&mut self, query: &str) -> Result<Option<String>> {
        let messages = self.client.simple_query(query);
        let messages = messages.map_err(|error| failure(&self.shared.connector.name, &error))?;
        Ok(messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    /// Returns the number of rows and of bytes that the planner expects.
    fn estimate(&mut self, query: &str) -> Option<(u64, u64)> {
        // A failure of the query itself is reported when it is read, in a transaction that goes on.
        self.client.batch_execute("savepoint estimate").ok()?;
        let plan = self.first_value(&format!("explain (format json) {query}"));
        self.client.batch_execute("rollback to savepoint estimate").ok()?;
        let plan = plan.ok()??;
        let plan: serde_json::Value = serde_json::from_str(&plan).ok()?;
        let plan = &plan[0]["Plan"];
        let (rows, width) = (plan["Plan Rows"].as_f64()?, plan["Plan Width"].as_f64()?);
        Some((rows as u64, (rows * width) as u64))
    }
}

impl SharedSnapshot {
    /// Reads a range, again if its connection is lost.
    fn read_range(
        &self,
        query: &str,
        columns: &Columns,
        client: &mut Option<Client>,
        receiver: &mut dyn RowReceiver,
    ) -> Result<(), Stop> {
        let mut reads = 0;
        loop {
            reads += 1;
            receiver.begin_part();
            let result = self.connected(client).map_err(Stop::from).and_then(|client| {
                copy::copy(client, query, &columns.decoders, receiver, &self.connector.name)
            });
            match result {
                Ok(()) => return receiver.end_part(),
                Err(Stop::Fault(error)) if error.is_transient() => {
                    *client = None;
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

    /// Returns the client, after connecting with the snapshot of the session if there is none.
    fn connected<'c>(&self, client: &'c mut Option<Client>) -> Result<&'c mut Client> {
        let connected = match client.take() {
            Some(client) => client,
            None => {
                let mut client = self.connector.connect()?;
                let begin = format!(
                    "begin isolation level repeatable read read only; \
                     set transaction snapshot '{}'",
                    self.snapshot
                );
                let begun = client.batch_execute(&begin);
                begun.map_err(|error| failure(&self.connector.name, &error))?;
                client
            }
        };
        Ok(client.insert(connected))
    }
}

impl Session for PostgresSession {
    fn estimated_rows(&mut self, source: &Source) -> Option<u64> {
        let query = source.query.clone()?;
        self.estimate(&query).map(|(rows, _)| rows)
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
            Some(column) => ranges::ranges(self, (source, &text, column), &columns)?,
            None => VecDeque::new(),
        };
        if ranges.len() > 1 {
            let (shared, readers) = (&self.shared, source.readers);
            return read_parts(
                ranges,
                readers,
                make_receiver,
                |query, reader: &mut Reader, receiver| {
                    if !reader.has_columns {
                        receiver.set_columns(&columns.names)?;
                        reader.has_columns = true;
                    }
                    shared.read_range(query, &columns, &mut reader.client, receiver)
                },
            );
        }
        let mut receiver = make_receiver();
        receiver.set_columns(&columns.names)?;
        let Self { client, shared } = self;
        copy::copy(client, &text, &columns.decoders, &mut *receiver, &shared.connector.name)?;
        receiver.end_part()
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(DIALECT)
    }
}
