//! `nuthatch store get`.

use super::remote_store::ConnectionArgs;
use super::row_printer::{RowFormat, RowPrinter};
use super::store_args::{StoreArgs, TableArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Stdout, print_message, quote_key};
use clap::Args;
use nuthatch_cli::output::tsv_escape;
use nuthatch_rpc::Found;
use nuthatch_store::{Entry, Read};
use std::ffi::OsString;

const GET_NOTES: &str = "\
Output:
  One key: its value on a line, unchanged; on a terminal, control characters are escaped.
  Several keys: a line \"key<TAB>value\" for each key that exists, in the order of the arguments.
  --json: a line {\"key\":...,\"value\":...} for each key, as \"nuthatch store load\" reads it. In a
    stamped table each line also has \"version\" (for put --if-version) and, if the row expires,
    \"expires_at_ms\" in milliseconds since 1970; \"load\" accepts neither.
  --raw: the bytes of the values and nothing else.
  Missing keys are reported on standard error.

Examples:
  nuthatch store get db user:1
  nuthatch store get db user:1 user:2 --json
  nuthatch store get db session:1 --table sessions --json | jq .version
  nuthatch store get db page:/ --raw > index.html

Exit status:
  0  all keys exist
  1  a key is missing; the values of the other keys are printed
  2  invalid command line
  3  any other error, for example: the store or the table is missing";

/// Print the values of keys
#[derive(Debug, Args)]
#[command(after_long_help = GET_NOTES)]
pub(super) struct Get {
    #[command(flatten)]
    store: StoreArgs,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    table: TableArgs,
    /// Print a JSON object for each key
    #[arg(long)]
    json: bool,
    /// Print the bytes of the values and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Get {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        if let Some(remote) = self.store.remote(&self.connection)? {
            let keys: Vec<_> = self.keys.iter().map(|key| key.as_encoded_bytes()).collect();
            let found = remote.call(remote.client.entries(self.table.name(), &keys))?;
            let found = found.iter().map(|found| {
                Ok(found.as_ref().map(|Found { value, version, expires_at_ms }| Entry {
                    value,
                    version: *version,
                    expires_at_ms: *expires_at_ms,
                }))
            });
            return self.print(&remote.address, found);
        }
        let store = self.store.open_read_only()?;
        let table = self.table.find(&store, &self.store)?;
        let txn = store.read()?;
        let entries = self.keys.iter().map(|key| {
            let entry = txn.entry(&table, key.as_encoded_bytes());
            entry.map_err(|error| self.store.failure(&error))
        });
        let outcome = self.print(&self.store.display_path(), entries)?;
        txn.check_readable()?;
        Ok(outcome)
    }

    /// Prints the values of the keys, in their order.
    fn print<'v>(
        &self,
        store_name: &str,
        entries: impl Iterator<Item = Result<Option<Entry<'v>>, Failure>>,
    ) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Success;
        let rows = self.json || (self.keys.len() > 1 && !self.raw);
        let mut lines =
            rows.then(|| RowPrinter::new(if self.json { RowFormat::Json } else { RowFormat::Tsv }));
        for (key, entry) in self.keys.iter().zip(entries) {
            let key = key.as_encoded_bytes();
            let Some(entry) = entry? else {
                // Values that were found before are printed before the message.
                lines.as_mut().map_or(Ok(()), RowPrinter::flush)?;
                print_message(format_args!("{store_name}: no key {}", quote_key(key)));
                outcome = Outcome::NotFound;
                continue;
            };
            match &mut lines {
                Some(lines) => lines.put_entry(key, &entry)?,
                None => self.value(entry.value)?,
            }
        }
        lines.as_mut().map_or(Ok(()), RowPrinter::flush)?;
        Ok(outcome)
    }

    /// Prints a single value.
    fn value(&self, value: &[u8]) -> Result<(), Failure> {
        let mut stdout = Stdout::new();
        if self.raw {
            stdout.write(value)?;
            return stdout.flush();
        }
        let mut line = Vec::new();
        if stdout.is_terminal() {
            tsv_escape(value, &mut line);
        } else {
            line.extend_from_slice(value);
        }
        line.push(b'\n');
        stdout.write(&line)?;
        stdout.flush()
    }
}
