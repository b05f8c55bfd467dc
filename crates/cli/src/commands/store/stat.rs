//! `nuthatch store stat`.

use super::remote_store::{ConnectionArgs, RemoteStore};
use super::store_args::StoreArgs;
use crate::outcome::{Failure, Outcome};
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_cli::output::json_string;
use nuthatch_store::{Stat as StoreStat, Store, TableStat};
use nuthatch_units::{bytes, grouped};
use std::fmt::Write;

const STAT_NOTES: &str = "\
Prints these lines, then one for each table:
  file          length of the file
  in use        bytes up to the last page in use, including free pages, which are reused
  map           length of the memory map: the file can grow up to it without moving the map
  transaction   number of the last committed transaction
  reader slots  slots in use or used before, including the one of this command; the maximum
  last change   sequence number of the last change
  changes kept  the oldest sequence number from which a watch can start

Examples:
  nuthatch store stat db
  nuthatch store stat db --json | jq .used_bytes

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: the store is missing or damaged";

/// Show the tables and sizes of a store
#[derive(Debug, Args)]
#[command(after_long_help = STAT_NOTES)]
pub(super) struct Stat {
    #[command(flatten)]
    store: StoreArgs,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Stat {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let report = match self.store.remote(&self.connection)? {
            Some(remote) => Report::by(&remote)?,
            None => Report::of(&self.store.open_read_only()?, self.store.display_path())?,
        };
        let text = if self.json { report.json() } else { report.text() };
        let mut stdout = Stdout::new();
        stdout.write(text.as_bytes())?;
        stdout.flush()?;
        Ok(Outcome::Success)
    }
}

/// The statistics of a store.
struct Report {
    store_name: String,
    stat: StoreStat,
    oldest: Option<u64>,
    tables: Vec<(String, TableStat)>,
}

impl Report {
    fn of(store: &Store, store_name: String) -> Result<Self, Failure> {
        let mut tables = vec![(String::new(), store.table_stat(&store.main_table())?)];
        for name in store.table_names()? {
            if let Some(table) = store.find_table(&name)? {
                tables.push((name, store.table_stat(&table)?));
            }
        }
        Ok(Self { store_name, stat: store.stat()?, oldest: store.oldest_change()?, tables })
    }

    fn by(remote: &RemoteStore) -> Result<Self, Failure> {
        let report = remote.call(remote.client.stat())?;
        let tables = report.tables.into_iter().map(|table| (table.name, table.stat)).collect();
        let (stat, oldest) = (report.store, report.oldest_change);
        Ok(Self { store_name: remote.address.clone(), stat, oldest, tables })
    }

    fn text(&self) -> String {
        let Self { store_name, stat, oldest, tables } = self;
        let kept = match *oldest {
            Some(oldest) => format!("from {} on", grouped(oldest)),
            None => "none".to_owned(),
        };
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "store         {}\n\
             file          {}\n\
             in use        {}, of which {} can be used again\n\
             map           {}\n\
             transaction   {}\n\
             reader slots  {} of {}\n\
             last change   {}\n\
             changes kept  {kept}",
            store_name,
            bytes(stat.file_bytes),
            bytes(stat.used_bytes),
            bytes(stat.free_bytes),
            bytes(stat.map_bytes),
            grouped(stat.transaction),
            stat.readers,
            stat.max_readers,
            grouped(stat.sequence),
        );
        for (name, table) in tables {
            let name =
                if name.is_empty() { "(main)".to_owned() } else { name.escape_debug().to_string() };
            let pages = table.branch_pages + table.leaf_pages + table.overflow_pages;
            let size = bytes(pages * stat.page_bytes);
            let _ = writeln!(text, "table {name}: {} entries, {size}", grouped(table.entries));
        }
        text
    }

    fn json(&self) -> String {
        let Self { stat, oldest, tables, .. } = self;
        let oldest = oldest.map_or("null".to_owned(), |oldest| oldest.to_string());
        let entries = tables.iter().map(|(name, table)| {
            let mut quoted = Vec::new();
            json_string(name, &mut quoted);
            let name = String::from_utf8_lossy(&quoted);
            let TableStat { entries, depth, branch_pages, leaf_pages, overflow_pages } = table;
            format!(
                "{{\"name\":{name},\"entries\":{entries},\"depth\":{depth},\
             \"branch_pages\":{branch_pages},\"leaf_pages\":{leaf_pages},\
             \"overflow_pages\":{overflow_pages}}}"
            )
        });
        let tables = entries.collect::<Vec<_>>().join(",");
        format!(
            "{{\"file_bytes\":{},\"used_bytes\":{},\"free_bytes\":{},\"map_bytes\":{},\
         \"page_bytes\":{},\"transaction\":{},\"readers\":{},\"max_readers\":{},\
         \"sequence\":{},\"oldest_change\":{oldest},\"tables\":[{tables}]}}\n",
            stat.file_bytes,
            stat.used_bytes,
            stat.free_bytes,
            stat.map_bytes,
            stat.page_bytes,
            stat.transaction,
            stat.readers,
            stat.max_readers,
            stat.sequence,
        )
    }
}
