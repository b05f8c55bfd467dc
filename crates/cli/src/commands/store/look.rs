//! `nuthatch store get`, `scan`, `count` and `dump`.

use super::place::{Place, Tabled};
use super::range::Ranged;
use super::remote::{Reach, Remote};
use super::rows::{Form, Lines};
use crate::commands::{Answer, Failure, shown};
use crate::progress::Display;
use crate::streams::{Stdout, tell};
use clap::Args;
use nuthatch_cli::output::tsv_escape;
use nuthatch_rpc::{Found, Scan as RemoteScan};
use nuthatch_store::{Entry, Range, Read, Scan as Scanned};
use std::ffi::OsString;

const GET_NOTES: &str = "\
Output:
  One key: its value on a line, as it is; on a terminal with control characters escaped.
  Several keys: a line \"key<TAB>value\" for each key that is there, in the order given, as TSV.
  --json: a line {\"key\":...,\"value\":...} for each key, as \"nuthatch store load\" reads it. In a
    stamped table each line also has \"version\" (for put --if-version) and, if the row expires,
    \"expires_at_ms\" in milliseconds since 1970; \"load\" accepts neither.
  --raw: the bytes of the values and nothing else.
  Keys that are missing are named on stderr.

Examples:
  nuthatch store get db user:1
  nuthatch store get db user:1 user:2 --json
  nuthatch store get db session:1 --table sessions --json | jq .version
  nuthatch store get db page:/ --raw > index.html

Exit status:
  0  all keys exist
  1  a key is missing; the values of the other keys are printed
  2  the command line is wrong
  3  any other error, for example: the store or the table is missing";

/// Print the values of keys
#[derive(Debug, Args)]
#[command(after_long_help = GET_NOTES)]
pub(super) struct Get {
    #[command(flatten)]
    place: Place,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    #[command(flatten)]
    table: Tabled,
    /// Print a JSON object for each key
    #[arg(long)]
    json: bool,
    /// Print the bytes of the values and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Get {
    pub(super) fn run(&self) -> Result<Answer, Failure> {
        if let Some(remote) = self.place.remote(&self.reach)? {
            let keys: Vec<_> = self.keys.iter().map(|key| key.as_encoded_bytes()).collect();
            let found = remote.ask(remote.client.entries(self.table.name(), &keys))?;
            let found = found.iter().map(|found| {
                Ok(found.as_ref().map(|Found { value, version, expires_at_ms }| Entry {
                    value,
                    version: *version,
                    expires_at_ms: *expires_at_ms,
                }))
            });
            return self.print(&remote.address, found);
        }
        let store = self.place.read()?;
        let table = self.table.find(&store, &self.place)?;
        let txn = store.read()?;
        let entries = self.keys.iter().map(|key| {
            let entry = txn.entry(&table, key.as_encoded_bytes());
            entry.map_err(|error| self.place.failure(&error))
        });
        let answer = self.print(&self.place.shown(), entries)?;
        txn.check_readable()?;
        Ok(answer)
    }

    /// Prints the values of the keys, in their order.
    fn print<'v>(
        &self,
        place: &str,
        entries: impl Iterator<Item = Result<Option<Entry<'v>>, Failure>>,
    ) -> Result<Answer, Failure> {
        let mut answer = Answer::Whole;
        let rows = self.json || (self.keys.len() > 1 && !self.raw);
        let mut lines = rows.then(|| Lines::new(if self.json { Form::Json } else { Form::Tsv }));
        for (key, entry) in self.keys.iter().zip(entries) {
            let key = key.as_encoded_bytes();
            let Some(entry) = entry? else {
                // What was found before should stand before.
                lines.as_mut().map_or(Ok(()), Lines::flush)?;
                tell(format_args!("{place}: no key {}", shown(key)));
                answer = Answer::KeysMissing;
                continue;
            };
            match &mut lines {
                Some(lines) => lines.put_entry(key, &entry)?,
                None => self.value(entry.value)?,
            }
        }
        lines.as_mut().map_or(Ok(()), Lines::flush)?;
        Ok(answer)
    }

    /// A value by itself.
    fn value(&self, value: &[u8]) -> Result<(), Failure> {
        let mut stdout = Stdout::new();
        if self.raw {
            stdout.put(value)?;
            return stdout.flush();
        }
        let mut line = Vec::new();
        if stdout.is_terminal() {
            tsv_escape(value, &mut line);
        } else {
            line.extend_from_slice(value);
        }
        line.push(b'\n');
        stdout.put(&line)?;
        stdout.flush()
    }
}

const SCAN_NOTES: &str = "\
Keys come in the order of their bytes. Each row is a line \"key<TAB>value\" as TSV, in which
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
  2  the command line is wrong
  3  any other error, for example: the store or the table is missing, or the connection to the
     server was lost; rows that were printed before are complete, but the last ones are missing";

/// Print the rows of a range, one a line
#[derive(Debug, Args)]
#[command(after_long_help = SCAN_NOTES)]
pub(super) struct Scan {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    table: Tabled,
    #[command(flatten)]
    keys: Ranged,
    /// In descending order of the keys
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
    reach: Reach,
}

impl Scan {
    pub(super) fn run(&self) -> Result<Answer, Failure> {
        let form = match (self.keys_only, self.json) {
            (true, _) => Form::Keys,
            (_, true) => Form::Json,
            _ => Form::Tsv,
        };
        let mut lines = Lines::new(form);
        if let Some(remote) = self.place.remote(&self.reach)? {
            remote.rows(self.table.name(), &self.wanted_of(), |row, _| lines.put(row))?;
        } else {
            let store = self.place.read()?;
            let table = self.table.find(&store, &self.place)?;
            let txn = store.read()?;
            for row in txn.scan(&table, &self.wanted())? {
                lines.put(row?)?;
            }
            txn.check_readable()?;
        }
        lines.flush()?;
        Ok(Answer::Whole)
    }

    fn wanted(&self) -> Scanned {
        let mut scan = Scanned::new(self.keys.range()).limit(self.limit.unwrap_or(u64::MAX));
        if self.reverse {
            scan = scan.reverse();
        }
        if self.keys_only { scan.keys_only() } else { scan }
    }

    /// The same, of a server.
    fn wanted_of(&self) -> RemoteScan {
        let mut scan = RemoteScan::new(self.keys.range()).limit(self.limit.unwrap_or(u64::MAX));
        if self.reverse {
            scan = scan.reverse();
        }
        if self.keys_only { scan.keys_only() } else { scan }
    }
}

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
  2  the command line is wrong
  3  any other error, for example: the store or the table is missing, or the connection to the
     server was lost; rows that were printed before are complete, but the last ones are missing";

/// Print all rows of a table as text that "load" reads back
#[derive(Debug, Args)]
#[command(after_long_help = DUMP_NOTES)]
pub(super) struct Dump {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    table: Tabled,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Dump {
    pub(super) fn run(&self) -> Result<Answer, Failure> {
        if let Some(remote) = self.place.remote(&self.reach)? {
            return self.dump_from(&remote);
        }
        let store = self.place.read()?;
        let table = self.table.find(&store, &self.place)?;
        let txn = store.read()?;
        let total = store.table_stat(&table)?.entries;
        let (display, mut lines) = (Display::new(self.quiet, None), Lines::new(Form::Json));
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
        Ok(Answer::Whole)
    }

    /// The same, from a server.
    fn dump_from(&self, remote: &Remote) -> Result<Answer, Failure> {
        let table = self.table.name();
        // Counting the rows of a large table takes long.
        let tables = remote.ask(remote.client.stat())?.tables;
        let found = tables.iter().find(|found| found.name == table);
        let total = found.map_or(0, |found| found.stat.entries);
        let (display, mut lines) = (Display::new(self.quiet, None), Lines::new(Form::Json));
        let dumped = remote.rows(table, &RemoteScan::all(), |row, done| {
            if done.is_multiple_of(10_000) {
                display.stage("dumping", done, total);
            }
            lines.put(row)
        });
        display.finish();
        dumped?;
        lines.flush()?;
        Ok(Answer::Whole)
    }
}
