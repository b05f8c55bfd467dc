//! `nuthatch store load`: loads rows from files.

use super::remote_store::{ConnectionArgs, ReconnectArgs, RemoteStore};
use super::store_args::{StoreArgs, TableArgs};
use crate::arguments::InputArgs;
use crate::outcome::{Failure, Outcome};
use crate::terminal::Display;
use crate::terminal::print_summary;
use clap::Args;
use nuthatch_cli::output::json_value;
use nuthatch_import::{Inputs, RowSink};
use nuthatch_rpc::{Batch, BatchWriter, BatchWriterOptions};
use nuthatch_snapshot::Value;
use nuthatch_store::{Store, Table};
use nuthatch_units::{duration, grouped};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Maximum number of bytes of rows in a transaction, approximately.
const MAX_TRANSACTION_BYTES: usize = 32 << 20;
/// Maximum numbers of bytes and rows in a batch for a server, approximately.
const MAX_BATCH_BYTES: usize = 1 << 20;
const MAX_BATCH_ROWS: usize = 10_000;

const NOTES: &str = "\
Input formats are those of \"nuthatch build\": JSON, TSV, CSV, Parquet and AxonCache text. Its
options --column, --f32 and --on-duplicate are not available here. Strings and bytes are stored as
they are, other values as JSON text. A row replaces the value of a key that exists. Rows are written
in transactions of about 32 MiB; if the command fails, rows before the one that the error names may
have been written. A server receives batches of 1 MiB.

--append loads fastest. It requires keys that are sorted and greater than all keys of the table.

Examples:
  nuthatch store load db users.jsonl
  nuthatch store load db sorted.tsv --append --table names
  zcat dump.gz | nuthatch store load db -

Exit status:
  0  all rows are in the store and durable
  2  invalid command line
  3  any other error, for example: an input is wrong, the disk is full, the summary cannot be
     printed (the error message contains it: the rows are loaded)";

/// Load rows from JSON, TSV, CSV, Parquet or AxonCache text
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Load {
    #[command(flatten)]
    store: StoreArgs,
    /// The inputs, in order; - is standard input
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    input: InputArgs,
    /// Append rows; keys must be sorted and greater than all keys of the table
    #[arg(long)]
    append: bool,
    /// Print neither progress nor a summary
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    reconnect: ReconnectArgs,
}

impl Load {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let inputs = Inputs::new(&self.inputs, self.input.options())?;
        let target = self.target()?;
        let display = Display::new(self.quiet, inputs.total_bytes());
        let mut rows = 0;
        let mut sink = PendingRows::default();
        let loaded = inputs.for_each(&mut sink, |sink, bytes| {
            if sink.is_full() {
                rows += self.write(&target, sink)?;
                display.reading(bytes, rows);
            }
            Ok::<_, Failure>(())
        });
        let loaded = loaded.and_then(|()| self.write(&target, &mut sink));
        display.finish();
        rows += loaded?;
        if !self.quiet {
            let (rows, time) = (grouped(rows), duration(start.elapsed()));
            let store_name = target.display_path(&self.store);
            print_summary(&format!("{store_name}: {rows} rows, {time}\n"))?;
        }
        Ok(Outcome::Success)
    }

    /// Opens the target of the rows, and creates the table if it does not exist.
    fn target(&self) -> Result<Target, Failure> {
        let adjust = |options| self.reconnect.apply(options);
        if let Some(remote) = self.store.remote_with(&self.connection, adjust)? {
            if self.append {
                let message = "--append needs the folder of the store, found an address";
                return Err(Failure::Usage(format!("{}: {message}", remote.address)));
            }
            self.table.create_remote(&remote, None)?;
            let options = BatchWriterOptions::new();
            let writer = remote.call(remote.client.batch_writer(&options))?;
            return Ok(Target::Remote(Box::new(remote), writer));
        }
        let store = self.store.open_or_create()?;
        let table = self.table.find_or_create(&store, &self.store, None)?;
        Ok(Target::Local(store, table))
    }

    fn write(&self, target: &Target, rows: &mut PendingRows) -> Result<u64, Failure> {
        match target {
            Target::Local(store, table) => {
                let written = store.update(|txn| {
                    rows.iter().try_for_each(|(key, value)| {
                        if self.append {
                            txn.append(table, key, value)
                        } else {
                            txn.put(table, key, value)
                        }
                    })
                });
                written.map_err(|error| self.store.failure(&error))?;
            }
            Target::Remote(remote, writer) => {
                let limit = self.reconnect.limit();
                send_until_durable(remote, writer, self.table.name(), rows, limit)?;
            }
        }
        let count = rows.ends.len() as u64;
        rows.bytes.clear();
        rows.ends.clear();
        Ok(count)
    }
}

/// The target of rows.
enum Target {
    Local(Store, Table),
    Remote(Box<RemoteStore>, BatchWriter),
}

impl Target {
    /// Returns where the rows go, for messages.
    fn display_path(&self, store: &StoreArgs) -> String {
        match self {
            Self::Local(..) => store.display_path(),
            Self::Remote(remote, _) => remote.address.clone(),
        }
    }
}

/// Sends rows until all are durable. After a lost connection it sends all rows again, for at most
/// `reconnect`: writing a row twice is idempotent.
fn send_until_durable(
    remote: &RemoteStore,
    writer: &BatchWriter,
    table: &str,
    rows: &PendingRows,
    reconnect: Duration,
) -> Result<(), Failure> {
    let mut lost = None;
    while let Err(error) = remote.wait(send(writer, table, rows)) {
        let since = lost.get_or_insert_with(Instant::now);
        if !error.is_transient() || since.elapsed() >= reconnect {
            return Err(remote.failure(&error));
        }
    }
    Ok(())
}

/// Sends rows in batches, and waits until all are durable.
async fn send(writer: &BatchWriter, table: &str, rows: &PendingRows) -> nuthatch_rpc::Result<()> {
    let (mut batch, mut bytes, mut acks) = (Batch::new(), 0, Vec::new());
    for (key, value) in rows.iter() {
        batch = batch.put(table, key, value);
        bytes += key.len() + value.len();
        if bytes >= MAX_BATCH_BYTES || batch.len() >= MAX_BATCH_ROWS {
            acks.push(writer.submit(std::mem::take(&mut batch)).await?);
            bytes = 0;
        }
    }
    acks.push(writer.submit(batch).await?);
    for ack in acks {
        ack.await?;
    }
    Ok(())
}

/// Rows that wait for their transaction, in one buffer.
#[derive(Default)]
struct PendingRows {
    bytes: Vec<u8>,
    /// The end offsets of the key and of the value of each row.
    ends: Vec<(usize, usize)>,
}

impl PendingRows {
    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(key, value)| {
            let row = (&self.bytes[start..key], &self.bytes[key..value]);
            start = value;
            row
        })
    }
}

impl RowSink for PendingRows {
    fn row(
        &mut self,
        _line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        self.bytes.extend_from_slice(key);
        let key = self.bytes.len();
        match value {
            Value::String(text) => self.bytes.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            other => json_value(&other, &mut self.bytes),
        }
        self.ends.push((key, self.bytes.len()));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_TRANSACTION_BYTES
    }
}
