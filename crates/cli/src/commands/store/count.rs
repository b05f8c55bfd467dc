//! `nuthatch store count`.

use super::range_args::RangeArgs;
use super::remote_store::ConnectionArgs;
use super::store_args::{StoreArgs, TableArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_store::Read;

const COUNT_NOTES: &str = "\
Examples:
  nuthatch store count db
  nuthatch store count db --prefix user:

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: the store or the table is missing";

/// Count the keys of a range
#[derive(Debug, Args)]
#[command(after_long_help = COUNT_NOTES)]
pub(super) struct Count {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    keys: RangeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Count {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let range = self.keys.range();
        let count = if let Some(remote) = self.store.remote(&self.connection)? {
            remote.call(remote.client.count(self.table.name(), &range))?
        } else {
            let store = self.store.open_read_only()?;
            let table = self.table.find(&store, &self.store)?;
            store.read()?.count(&table, &range)?
        };
        let mut stdout = Stdout::new();
        stdout.write(format!("{count}\n").as_bytes())?;
        stdout.flush()?;
        Ok(Outcome::Success)
    }
}
