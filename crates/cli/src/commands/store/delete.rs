//! `nuthatch store del`.

use super::range_args::RangeArgs;
use super::remote_store::{ConnectionArgs, RemoteStore};
use super::store_args::{StoreArgs, TableArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{print_message, print_summary, quote_key};
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
  2  invalid command line
  3  any other error, for example: the store or the table is missing, the number of deleted keys of
     a range cannot be printed (the error message contains it: the keys are deleted)";

/// Delete keys, or a range of them
#[derive(Debug, Args)]
#[command(after_long_help = DEL_NOTES)]
pub(super) struct Del {
    #[command(flatten)]
    store: StoreArgs,
    /// The keys
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Del {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        if self.keys.is_empty() != self.range.is_given() {
            let message = "expected either keys or a range of them, such as --prefix";
            return Err(Failure::Usage(message.to_owned()));
        }
        if let Some(remote) = self.store.remote(&self.connection)? {
            return self.delete_remote(&remote);
        }
        let store = self.store.open_writable()?;
        let table = self.table.find(&store, &self.store)?;
        if self.range.is_given() {
            let range = self.range.range();
            let count = store.update(|txn| txn.delete_range(&table, &range));
            return print_count(count.map_err(|error| self.store.failure(&error))?);
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
        let missing = store.update(delete).map_err(|error| self.store.failure(&error))?;
        Ok(report_missing(&missing, &self.store.display_path()))
    }

    /// Deletes through a server.
    fn delete_remote(&self, remote: &RemoteStore) -> Result<Outcome, Failure> {
        let (table, client) = (self.table.name(), &remote.client);
        if self.range.is_given() {
            return print_count(remote.call(client.delete_range(table, &self.range.range()))?);
        }
        let keys: Vec<_> = self.keys.iter().map(|key| key.as_encoded_bytes()).collect();
        let found = remote.call(client.get_many(table, &keys))?;
        let batch = keys.iter().fold(Batch::new(), |batch, key| batch.delete(table, key));
        remote.call(client.write_batch(batch))?;
        let missing = keys.iter().zip(found).filter(|(_, found)| found.is_none());
        let missing: Vec<_> = missing.map(|(key, _)| key.to_vec()).collect();
        Ok(report_missing(&missing, &remote.address))
    }
}

fn print_count(count: u64) -> Result<Outcome, Failure> {
    print_summary(&format!("{} keys\n", grouped(count)))?;
    Ok(Outcome::Success)
}

fn report_missing(missing: &[Vec<u8>], store_name: &str) -> Outcome {
    for key in missing {
        print_message(format_args!("{store_name}: no key {}", quote_key(key)));
    }
    if missing.is_empty() { Outcome::Success } else { Outcome::NotFound }
}
