//! `nuthatch store dump`.

use super::remote_store::{ConnectionArgs, RemoteStore};
use super::row_printer::{RowFormat, RowPrinter};
use super::store_args::{StoreArgs, TableArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Display;
use clap::Args;
use nuthatch_rpc::Scan as RemoteScan;
use nuthatch_store::{Range, Read, Scan as Scanned};

const DUMP_NOTES: &str = "\
Each row is a JSON object on a line, {\"key\":...,\"value\":...}; what is not text is in base64:
{\"$bytes\":\"AAE=\"}. \"nuthatch store load\" reads it back. Times of expiry are left out. If a
page is damaged, rows of that page may be printed before the error; \"nuthatch store verify\"
checks all pages.

Examples:
  nuthatch store dump db > rows.jsonl
  nuthatch store dump db --table users | jq -r .key

Exit status:
  0  success, or the reader of the output closed it
  2  invalid command line
  3  any other error, for example: the store or the table is missing, or the connection to the
     server was lost; rows that were printed before are complete, but the last ones are missing";

/// Print all rows of a table as text that "load" reads back
#[derive(Debug, Args)]
#[command(after_long_help = DUMP_NOTES)]
pub(super) struct Dump {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Dump {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        if let Some(remote) = self.store.remote(&self.connection)? {
            return self.dump_from(&remote);
        }
        let store = self.store.open_read_only()?;
        let table = self.table.find(&store, &self.store)?;
        let txn = store.read()?;
        let total = store.table_stat(&table)?.entries;
        let (display, mut lines) =
            (Display::new(self.quiet, None), RowPrinter::new(RowFormat::Json));
        let mut done = 0_u64;
        let scan = Scanned::new(Range::all());
        let dumped = txn.scan(&table, &scan)?.try_for_each(|row| {
            lines.put(row?)?;
            done += 1;
            if done.is_multiple_of(10_000) {
                display.stage("dumping", done, total);
            }
            Ok::<_, Failure>(())
        });
        display.finish();
        dumped?;
        lines.flush()?;
        txn.check_readable()?;
        Ok(Outcome::Success)
    }

    /// Dumps a table of a server.
    fn dump_from(&self, remote: &RemoteStore) -> Result<Outcome, Failure> {
        let table = self.table.name();
        // Counting the rows of a large table takes long.
        let tables = remote.call(remote.client.stat())?.tables;
        let found = tables.iter().find(|found| found.name == table);
        let total = found.map_or(0, |found| found.stat.entries);
        let (display, mut lines) =
            (Display::new(self.quiet, None), RowPrinter::new(RowFormat::Json));
        let dumped = remote.rows(table, &RemoteScan::all(), |row, done| {
            if done.is_multiple_of(10_000) {
                display.stage("dumping", done, total);
            }
            lines.put(row)
        });
        display.finish();
        dumped?;
        lines.flush()?;
        Ok(Outcome::Success)
    }
}
