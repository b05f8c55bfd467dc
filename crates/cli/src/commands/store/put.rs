//! `nuthatch store put`.

use super::remote_store::{Reach, Remote};
use super::store_args::{Place, Tabled};
use crate::outcome::{Answer, Failure};
use crate::terminal::{shown, tell};
use clap::Args;
use nuthatch_rpc::Batch;
use nuthatch_store::{Clock as _, Condition, Kind, SystemClock};
use std::ffi::OsString;
use std::io::Read as _;

const PUT_NOTES: &str = "\
Creates the store and the table if they do not exist. When the command ends the value is durable.

Examples:
  nuthatch store put db user:1 Ada
  nuthatch store put db page:/ - < index.html
  nuthatch store put db lock:1 me --if-absent
  nuthatch store put db session:1 token --table sessions --expires-in-ms 60000

Exit status:
  0  the value is written
  1  the condition does not hold, and nothing is written
  2  the command line is wrong
  3  any other error, for example: the disk is full, or the table is of another kind";

/// Write a value under a key
#[derive(Debug, Args)]
#[command(after_long_help = PUT_NOTES)]
pub(super) struct Put {
    #[command(flatten)]
    place: Place,
    /// The key, of 1 to 511 bytes
    #[arg(value_name = "KEY")]
    key: OsString,
    /// The value; - is standard input
    #[arg(value_name = "VALUE")]
    value: OsString,
    #[command(flatten)]
    table: Tabled,
    /// Write it only if the key does not exist
    #[arg(long, conflicts_with_all = ["if_present", "if_equals", "if_version"])]
    if_absent: bool,
    /// Write it only if the key exists
    #[arg(long, conflicts_with_all = ["if_equals", "if_version"])]
    if_present: bool,
    /// Write it only if the key has this value
    #[arg(long, value_name = "VALUE", conflicts_with = "if_version")]
    if_equals: Option<OsString>,
    /// Write it only if the key of a stamped table is in this version
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
    /// Expire the row after this many milliseconds; requires a stamped table, created if missing
    #[arg(long, value_name = "N", conflicts_with = "main")]
    expires_in_ms: Option<u64>,
    /// Create the table as a stamped table: rows have versions and can expire
    #[arg(long, conflicts_with = "main")]
    stamped: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Put {
    pub(super) fn run(&self) -> Result<Answer, Failure> {
        let value = self.value()?;
        let stamped = self.stamped || self.expires_in_ms.is_some();
        let kind = stamped.then_some(Kind::Stamped);
        let key = self.key.as_encoded_bytes();
        if let Some(remote) = self.place.remote(&self.reach)? {
            self.table.make_at(&remote, kind)?;
            return self.put_at(&remote, key, &value);
        }
        let store = self.place.make()?;
        let table = self.table.make(&store, &self.place, kind)?;
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
        let written = written.map_err(|error| self.place.failure(&error))?;
        Ok(self.answer(written, &self.place.shown()))
    }

    /// Has a server write it.
    fn put_at(&self, remote: &Remote, key: &[u8], value: &[u8]) -> Result<Answer, Failure> {
        let (table, mut batch) = (self.table.name(), Batch::new());
        if let Some(condition) = self.condition() {
            batch = batch.check(table, key, condition);
        }
        batch = match self.expires_in_ms {
            Some(ms) => {
                // The server has a clock of its own: both should be right.
                batch.put_until(table, key, value, SystemClock.now_ms().saturating_add(ms))
            }
            None => batch.put(table, key, value),
        };
        let written = match remote.wait(remote.client.write_batch(batch)) {
            Ok(_) => true,
            Err(error) if error.code() == "condition-unmet" => false,
            Err(error) => return Err(remote.failure(&error)),
        };
        Ok(self.answer(written, &remote.address))
    }

    fn answer(&self, written: bool, place: &str) -> Answer {
        if written {
            return Answer::Whole;
        }
        let key = shown(self.key.as_encoded_bytes());
        let why = self.unmet();
        tell(format_args!("{place}: the condition does not hold for key {key}: {why}"));
        Answer::KeysMissing
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
    fn unmet(&self) -> &'static str {
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
