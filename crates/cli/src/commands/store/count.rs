//! `nuthatch store count`.

use super::range_args::Ranged;
use super::remote_store::Reach;
use super::store_args::{Place, Tabled};
use crate::outcome::{Answer, Failure};
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_store::Read;

const COUNT_NOTES: &str = "\
Examples:
  nuthatch store count db
  nuthatch store count db --prefix user:

Exit status:
  0  success
  2  the command line is wrong
  3  any other error, for example: the store or the table is missing";

/// Count the keys of a range
#[derive(Debug, Args)]
#[command(after_long_help = COUNT_NOTES)]
pub(super) struct Count {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    table: Tabled,
    #[command(flatten)]
    keys: Ranged,
    #[command(flatten)]
    reach: Reach,
}

impl Count {
    pub(super) fn run(&self) -> Result<Answer, Failure> {
        let range = self.keys.range();
        let count = if let Some(remote) = self.place.remote(&self.reach)? {
            remote.ask(remote.client.count(self.table.name(), &range))?
        } else {
            let store = self.place.read()?;
            let table = self.table.find(&store, &self.place)?;
            store.read()?.count(&table, &range)?
        };
        let mut stdout = Stdout::new();
        stdout.put(format!("{count}\n").as_bytes())?;
        stdout.flush()?;
        Ok(Answer::Whole)
    }
}
