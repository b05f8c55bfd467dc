//! `nuthatch store del`.

use super::range_args::Ranged;
use super::remote_store::{Reach, Remote};
use super::store_args::{Place, Tabled};
use crate::outcome::{Answer, Failure};
use crate::terminal::{report, shown, tell};
use clap::Args;
use nuthatch_rpc::Batch;
use nuthatch_store::WriteTxn;
use nuthatch_units::grouped;
use std::ffi::OsString;

const DEL_NOTES: &str = "\
Deletes all keys, or all keys of the range, in one transaction.

Examples:
  nuthatch store del db user:1 user:2
  nuthatch store del db --prefix session:

Exit status:
  0  all keys were deleted
  1  a key was missing; the others were deleted
  2  the command line is wrong
  3  any other error, for example: the store or the table is missing, the number of deleted keys of
     a range cannot be printed (the error message contains it: the keys are deleted)";

/// Delete keys, or a range of them
#[derive(Debug, Args)]
#[command(after_long_help = DEL_NOTES)]
pub(super) struct Del {
    #[command(flatten)]
    place: Place,
    /// The keys
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    #[command(flatten)]
    table: Tabled,
    #[command(flatten)]
    range: Ranged,
    #[command(flatten)]
    reach: Reach,
}

impl Del {
    pub(super) fn run(&self) -> Result<Answer, Failure> {
        if self.keys.is_empty() != self.range.is_given() {
            let message = "expected either keys or a range of them, such as --prefix";
            return Err(Failure::Usage(message.to_owned()));
        }
        if let Some(remote) = self.place.remote(&self.reach)? {
            return self.delete_at(&remote);
        }
        let store = self.place.change()?;
        let table = self.table.find(&store, &self.place)?;
        if self.range.is_given() {
            let range = self.range.range();
            let count = store.update(|txn| txn.delete_range(&table, &range));
            return counted(count.map_err(|error| self.place.failure(&error))?);
        }
        let delete = |txn: &mut WriteTxn<'_>| {
            let keys = self.keys.iter().map(|key| key.as_encoded_bytes());
            let mut missing = Vec::new();
            for key in keys {
                if !txn.delete(&table, key)? {
                    missing.push(key.to_vec());
                }
            }
            Ok(missing)
        };
        let missing = store.update(delete).map_err(|error| self.place.failure(&error))?;
        Ok(told_missing(&missing, &self.place.shown()))
    }

    /// Has a server delete them.
    fn delete_at(&self, remote: &Remote) -> Result<Answer, Failure> {
        let (table, client) = (self.table.name(), &remote.client);
        if self.range.is_given() {
            return counted(remote.ask(client.delete_range(table, &self.range.range()))?);
        }
        let keys: Vec<_> = self.keys.iter().map(|key| key.as_encoded_bytes()).collect();
        let found = remote.ask(client.get_many(table, &keys))?;
        let batch = keys.iter().fold(Batch::new(), |batch, key| batch.delete(table, key));
        remote.ask(client.write_batch(batch))?;
        let missing = keys.iter().zip(found).filter(|(_, found)| found.is_none());
        let missing: Vec<_> = missing.map(|(key, _)| key.to_vec()).collect();
        Ok(told_missing(&missing, &remote.address))
    }
}

fn counted(count: u64) -> Result<Answer, Failure> {
    report(&format!("{} keys\n", grouped(count)))?;
    Ok(Answer::Whole)
}

fn told_missing(missing: &[Vec<u8>], place: &str) -> Answer {
    for key in missing {
        tell(format_args!("{place}: no key {}", shown(key)));
    }
    if missing.is_empty() { Answer::Whole } else { Answer::KeysMissing }
}
