//! `nuthatch store scan`.

use super::range_args::RangeArgs;
use super::remote_store::ConnectionArgs;
use super::row_printer::{RowFormat, RowPrinter};
use super::store_args::{StoreArgs, TableArgs};
use crate::outcome::{Failure, Outcome};
use clap::Args;
use nuthatch_rpc::Scan as RemoteScan;
use nuthatch_store::{Read, Scan as Scanned};

const SCAN_NOTES: &str = "\
Rows are printed in byte order of their keys. Each row is a line \"key<TAB>value\" as TSV, in which
\\t \\n \\r \\\\ and \\xNN stand for a tab, a line feed, a carriage return, a backslash and the byte
with that hexadecimal number. All rows are of one state of the store. If a page is damaged, rows of
that page may be printed before the error; \"nuthatch store verify\" checks all pages and prints
no rows.

Examples:
  nuthatch store scan db --prefix user:
  nuthatch store scan db --from a --before b --keys-only
  nuthatch store scan db --reverse --limit 10 --json
  nuthatch store scan grpc://db:7380 --limit 10
  nuthatch store scan db --main                  rows that another LMDB program wrote

Exit status:
  0  success, or the reader of the output closed it
  2  invalid command line
  3  any other error, for example: the store or the table is missing, or the connection to the
     server was lost; rows that were printed before are complete, but the last ones are missing";

/// Print the rows of a range, one per line
#[derive(Debug, Args)]
#[command(after_long_help = SCAN_NOTES)]
pub(super) struct Scan {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    keys: RangeArgs,
    /// Print rows in descending key order
    #[arg(long)]
    reverse: bool,
    /// Maximum number of rows
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print keys without values
    #[arg(long)]
    keys_only: bool,
    /// Print a JSON object for each row
    #[arg(long, conflicts_with = "keys_only")]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Scan {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let format = match (self.keys_only, self.json) {
            (true, _) => RowFormat::Keys,
            (_, true) => RowFormat::Json,
            _ => RowFormat::Tsv,
        };
        let mut lines = RowPrinter::new(format);
        if let Some(remote) = self.store.remote(&self.connection)? {
            remote.rows(self.table.name(), &self.remote_scan(), |row, _| lines.put(row))?;
        } else {
            let store = self.store.open_read_only()?;
            let table = self.table.find(&store, &self.store)?;
            let txn = store.read()?;
            for row in txn.scan(&table, &self.local_scan())? {
                lines.put(row?)?;
            }
            txn.check_readable()?;
        }
        lines.flush()?;
        Ok(Outcome::Success)
    }

    fn local_scan(&self) -> Scanned {
        let mut scan = Scanned::new(self.keys.range()).limit(self.limit.unwrap_or(u64::MAX));
        if self.reverse {
            scan = scan.reverse();
        }
        if self.keys_only { scan.keys_only() } else { scan }
    }

    /// Returns the scan for a server.
    fn remote_scan(&self) -> RemoteScan {
        let mut scan = RemoteScan::new(self.keys.range()).limit(self.limit.unwrap_or(u64::MAX));
        if self.reverse {
            scan = scan.reverse();
        }
        if self.keys_only { scan.keys_only() } else { scan }
    }
}
