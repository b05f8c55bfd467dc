//! `nuthatch store put`.

use super::remote_store::{ConnectionArgs, RemoteStore};
use super::store_args::{StoreArgs, TableArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{print_message, quote_key};
use clap::Args;
use nuthatch_rpc::Batch;
use nuthatch_store::{Clock as _, Condition, Kind, SystemClock};
use std::ffi::OsString;
use std::io::Read as _;

const PUT_NOTES: &str = "\
Creates the store and the table if they do not exist. When the command exits, the value is durable.

Examples:
  nuthatch store put db user:1 Ada
  nuthatch store put db page:/ - < index.html
  nuthatch store put db lock:1 me --if-absent
  nuthatch store put db session:1 token --table sessions --expires-in-ms 60000

Exit status:
  0  the value is written
  1  the condition does not hold, and nothing is written
  2  invalid command line
  3  any other error, for example: the disk is full, or the table is of another kind";

/// Write a value under a key
#[derive(Debug, Args)]
#[command(after_long_help = PUT_NOTES)]
pub(super) struct Put {
    #[command(flatten)]
    store: StoreArgs,
    /// The key, of 1 to 511 bytes
    #[arg(value_name = "KEY")]
    key: OsString,
    /// The value; - is standard input
    #[arg(value_name = "VALUE")]
    value: OsString,
    #[command(flatten)]
    table: TableArgs,
    /// Write the value only if the key does not exist
    #[arg(long, conflicts_with_all = ["if_present", "if_equals", "if_version"])]
    if_absent: bool,
    /// Write the value only if the key exists
    #[arg(long, conflicts_with_all = ["if_equals", "if_version"])]
    if_present: bool,
    /// Write the value only if the key has this value
    #[arg(long, value_name = "VALUE", conflicts_with = "if_version")]
    if_equals: Option<OsString>,
    /// Write the value only if the key of a stamped table has this version (see "get --json")
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
    /// Expire the row after this many milliseconds; requires a stamped table, created if missing
    #[arg(long, value_name = "N", conflicts_with = "main")]
    expires_in_ms: Option<u64>,
    /// Create the table as a stamped table: rows have versions and can expire
    #[arg(long, conflicts_with = "main")]
    stamped: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Put {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let value = self.value()?;
        let stamped = self.stamped || self.expires_in_ms.is_some();
        let kind = stamped.then_some(Kind::Stamped);
        let key = self.key.as_encoded_bytes();
        if let Some(remote) = self.store.remote(&self.connection)? {
            self.table.create_remote(&remote, kind)?;
            return self.put_remote(&remote, key, &value);
        }
        let store = self.store.open_or_create()?;
        let table = self.table.find_or_create(&store, &self.store, kind)?;
        let written = store.update(|txn| {
            if let Some(condition) = self.condition()
                && !txn.holds(&table, key, condition)?
            {
                return Ok(false);
            }
            match self.expires_in_ms {
                Some(ms) => txn.put_for(&table, key, &value, ms)?,
                None => txn.put(&table, key, &value)?,
            }
            Ok(true)
        });
        let written = written.map_err(|error| self.store.failure(&error))?;
        Ok(self.outcome(written, &self.store.display_path()))
    }

    /// Writes through a server.
    fn put_remote(
        &self,
        remote: &RemoteStore,
        key: &[u8],
        value: &[u8],
    ) -> Result<Outcome, Failure> {
        let (table, mut batch) = (self.table.name(), Batch::new());
        if let Some(condition) = self.condition() {
            batch = batch.check(table, key, condition);
        }
        batch = match self.expires_in_ms {
            Some(ms) => {
                // The server compares with its own clock.
                batch.put_until(table, key, value, SystemClock.now_ms().saturating_add(ms))
            }
            None => batch.put(table, key, value),
        };
        let written = match remote.wait(remote.client.write_batch(batch)) {
            Ok(_) => true,
            Err(error) if error.code() == "condition-unmet" => false,
            Err(error) => return Err(remote.failure(&error)),
        };
        Ok(self.outcome(written, &remote.address))
    }

    fn outcome(&self, is_written: bool, store_name: &str) -> Outcome {
        if is_written {
            return Outcome::Success;
        }
        let key = quote_key(self.key.as_encoded_bytes());
        let why = self.unmet_reason();
        print_message(format_args!(
            "{store_name}: the condition does not hold for key {key}: {why}"
        ));
        Outcome::NotFound
    }

    fn condition(&self) -> Option<Condition<'_>> {
        match (self.if_absent, self.if_present, &self.if_equals, self.if_version) {
            (true, ..) => Some(Condition::Absent),
            (_, true, ..) => Some(Condition::Present),
            (_, _, Some(value), _) => Some(Condition::Equals(value.as_encoded_bytes())),
            (_, _, _, Some(version)) => Some(Condition::Version(version)),
            _ => None,
        }
    }

    /// Returns why the condition does not hold.
    fn unmet_reason(&self) -> &'static str {
        match self.condition() {
            Some(Condition::Absent) => "the key exists",
            Some(Condition::Equals(_)) => "the key does not exist or has another value",
            Some(Condition::Version(_)) => "the key does not exist or has another version",
            _ => "the key does not exist",
        }
    }

    fn value(&self) -> Result<Vec<u8>, Failure> {
        if self.value != "-" {
            return Ok(self.value.as_encoded_bytes().to_vec());
        }
        let mut value = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut value);
        read.map_err(|e| Failure::Error(format!("<stdin>: read: {e}")))?;
        Ok(value)
    }
}
