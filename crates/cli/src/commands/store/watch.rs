//! `nuthatch store watch`: prints changes as they are committed.

use super::keep_changes::keep_changes;
use super::range_args::RangeArgs;
use super::remote_store::{ConnectionArgs, ReconnectArgs, RemoteStore};
use super::row_printer::json_value_of;
use super::store_args::{StoreArgs, TableArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_cli::output::{json_row, json_string};
use nuthatch_store::{Change, Operation, Start};
use std::time::Duration;

/// The maximum time of one wait for changes. A closed output is detected with the next change.
const MAX_WAIT: Duration = Duration::from_hours(1);

const NOTES: &str = "\
Prints a line with a JSON object for each change, in the order of the commits, until it is
interrupted:
  {\"sequence\":7,\"transaction\":3,\"operation\":\"put\",\"table\":\"t\",\
\"key\":\"a\",\"value\":\"b\"}
The operation is put, delete or expire; the last two have no value. --after-sequence continues where
an earlier watch ended.

--keep makes the store keep changes, for all processes and until it is changed. From then on, each
value is written twice. The store keeps at most N changes with at most 4 KiB times N bytes in total,
and drops the oldest beyond either limit. The newest change is kept even if it alone is longer. A
watch that needs dropped changes fails.

Examples:
  nuthatch store watch db --keep 100000          from now on
  nuthatch store watch db --after-sequence 1234 --prefix user:
  nuthatch store watch db --oldest --limit 10

Exit status:
  0  --limit changes were printed, or the reader of the output closed it
  2  invalid command line
  3  any other error, for example: the store keeps no changes, or has dropped the requested ones";

/// Print changes as they are committed
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Watch {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Print changes of all tables
    #[arg(long, conflicts_with_all = ["table", "main"])]
    all: bool,
    #[command(flatten)]
    keys: RangeArgs,
    /// Begin after the change with this sequence number
    #[arg(long = "after-sequence", value_name = "N", conflicts_with = "oldest")]
    after_sequence: Option<u64>,
    /// Begin with the oldest kept change
    #[arg(long)]
    oldest: bool,
    /// Maximum number of changes to keep from now on, in at most 4 KiB x N bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// Exit after this many changes
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    reconnect: ReconnectArgs,
}

impl Watch {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let start = match (self.after_sequence, self.oldest) {
            (Some(sequence), _) => Start::After(sequence),
            (None, true) => Start::Oldest,
            (None, false) => Start::Now,
        };
        let adjust = |options| self.reconnect.apply(options);
        match self.store.remote_with(&self.connection, adjust)? {
            Some(remote) => self.watch_remote(&remote, start),
            None => self.watch(start),
        }
    }

    fn watch(&self, start: Start) -> Result<Outcome, Failure> {
        let store = match self.keep {
            Some(_) => self.store.open_or_create()?,
            None => self.store.open_read_only()?,
        };
        if let Some(keep) = self.keep {
            keep_changes(&store, keep)?;
        }
        let table = if self.all {
            None
        } else if self.keep.is_some() {
            Some(self.table.find_or_create(&store, &self.store, None)?)
        } else {
            Some(self.table.find(&store, &self.store)?)
        };
        let failed = |error| self.store.failure(&error);
        let watch = store.watch(table.as_ref(), self.keys.range(), start);
        let mut watch = watch.map_err(failed)?;
        self.print(|| Ok(watch.next_within(MAX_WAIT).map_err(failed)?.unwrap_or_default()))
    }

    fn watch_remote(&self, remote: &RemoteStore, start: Start) -> Result<Outcome, Failure> {
        if self.keep.is_some() {
            let message = "--keep needs the folder of the store; a server has --keep-changes";
            return Err(Failure::Usage(message.to_owned()));
        }
        let table = (!self.all).then(|| self.table.name());
        let mut watch = remote.call(remote.client.watch(table, &self.keys.range(), start))?;
        self.print(|| match remote.wait(watch.next()) {
            Some(changes) => changes.map_err(|error| remote.failure(&error)),
            None => Err(Failure::Error(format!("{}: the watch has ended", remote.address))),
        })
    }

    /// Prints changes up to the limit.
    fn print(
        &self,
        mut next: impl FnMut() -> Result<Vec<Change>, Failure>,
    ) -> Result<Outcome, Failure> {
        let mut left = self.limit.unwrap_or(u64::MAX);
        let (mut stdout, mut line) = (Stdout::new(), Vec::new());
        while left > 0 {
            for change in next()? {
                if left == 0 {
                    break;
                }
                line.clear();
                json(&change, &mut line);
                stdout.write(&line)?;
                left -= 1;
            }
            stdout.flush()?;
        }
        Ok(Outcome::Success)
    }
}

fn json(change: &Change, line: &mut Vec<u8>) {
    let Change { sequence, transaction, operation, table, key, value, expires_at_ms } = change;
    let head = format!(
        "{{\"sequence\":{sequence},\"transaction\":{transaction},\"operation\":\"{}\",\"table\":",
        operation.name()
    );
    line.extend_from_slice(head.as_bytes());
    json_string(table, line);
    line.push(b',');
    // Appends the fields of the row's object.
    let mut row = Vec::new();
    json_row(key, &json_value_of(value), &mut row);
    let fields = match operation {
        Operation::Put => &row[1..row.len() - 1],
        _ => row[1..].strip_suffix(b",\"value\":\"\"}").unwrap_or(&row[1..row.len() - 1]),
    };
    line.extend_from_slice(fields);
    if let Some(at) = expires_at_ms {
        line.extend_from_slice(format!(",\"expires_at_ms\":{at}").as_bytes());
    }
    line.extend_from_slice(b"}\n");
}
