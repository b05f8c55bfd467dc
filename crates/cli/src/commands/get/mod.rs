//! `nuthatch get`: looks up keys.

mod key_reader;

use crate::outcome::{Failure, Outcome};
use crate::terminal::quote_key;
use crate::terminal::{Stdout, print_message};
use clap::Args;
use key_reader::KeyReader;
use nuthatch_cli::output::{json_row, raw_value, tsv_escape, tsv_value};
use nuthatch_snapshot::{Scratch, Snapshot, StoredValue, Value};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Number of keys that are looked up at once.
const BATCH_KEYS: usize = 256;

const NOTES: &str = "\
Output:
  One key: the value and a line feed. Numbers are decimal; lists are JSON. On a terminal, control
  characters in strings and bytes are escaped.
  Several keys, or keys from standard input: a line \"key<TAB>value\" for each key that exists, in
  the order of the keys, as TSV. The escapes \\t \\n \\r \\\\ and \\xNN represent a tab, a line
  feed, a carriage return, a backslash and the byte with the hexadecimal number NN.
  --json: a line {\"key\":...,\"value\":...} for each key that exists, for \"nuthatch build\".
  --raw: the bytes of the values without separators. Numbers, also in lists, are little-endian.
  Missing keys are reported on stderr.

Keys from standard input:
  Each line is a key; an empty line is the empty key. A carriage return before the line feed is not
  part of the key. With -0, keys are any bytes besides NUL, which ends each key. Values are printed
  as soon as their keys have arrived, so another program can send keys and wait for values.

Lookups check the structure of the records they read, but no checksums. Damage that changes a
value without changing its structure is found by \"nuthatch verify\" only.

Examples:
  nuthatch get users.nut user:1.name
  nuthatch get users.nut user:1.name user:1.age user:1.tags --json
  nuthatch get users.nut - --json < keys.txt     keys from a file, one on each line
  nuthatch get pages.nut page:/index.html --raw > index.html
  nuthatch get users.nut -- -1                   a key that begins with a dash

Exit status:
  0  all keys exist
  1  a key is missing; the values of the other keys are printed
  2  invalid command line
  3  any other error, for example: the file is missing, not a snapshot, damaged, or was truncated
     while it was read";

/// Look up keys and print their values
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Get {
    /// Snapshot file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Keys to look up; - alone reads them from standard input, one on each line
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    /// Keys from standard input end with a NUL byte, instead of a line feed
    #[arg(short = '0', long)]
    null: bool,
    /// Print a JSON object for each key
    #[arg(long)]
    json: bool,
    /// Print the bytes of the values without separators
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

impl Get {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let keys: Vec<_> = self.keys.iter().map(|key| key.as_encoded_bytes()).collect();
        let from_stdin = keys == [b"-"];
        self.check(&keys, from_stdin)?;
        let snapshot = Snapshot::open(&self.file)?;
        let mut lookup = Lookup::new(self, &snapshot, from_stdin);
        if from_stdin {
            let end = if self.null { 0 } else { b'\n' };
            let mut reader = KeyReader::new(io::stdin().lock(), end);
            while let Some(keys) = reader.next()? {
                lookup.print_all(&keys)?;
                lookup.stdout.flush()?;
            }
        } else {
            lookup.print_all(&keys)?;
        }
        lookup.stdout.flush()?;
        Ok(if lookup.is_key_missing { Outcome::NotFound } else { Outcome::Success })
    }

    /// Fails if the keys and -0 do not fit together.
    fn check(&self, keys: &[&[u8]], from_stdin: bool) -> Result<(), Failure> {
        if !from_stdin && keys.contains(&&b"-"[..]) {
            let problem = "KEY: expected - as the only key, found other keys; give all keys on \
                           standard input, where the line - is the key \"-\"";
            return Err(Failure::Usage(problem.to_owned()));
        }
        if self.null && !from_stdin {
            let problem = "--null: expected - as the key, found other keys; it is for keys from \
                           standard input";
            return Err(Failure::Usage(problem.to_owned()));
        }
        Ok(())
    }
}

/// Looks up keys in batches and prints their values.
struct Lookup<'a> {
    command: &'a Get,
    snapshot: &'a Snapshot,
    stdout: Stdout,
    is_one_key: bool,
    is_key_missing: bool,
    found: Vec<Option<StoredValue<'a>>>,
    scratch: Scratch,
    line: Vec<u8>,
}

impl<'a> Lookup<'a> {
    fn new(command: &'a Get, snapshot: &'a Snapshot, from_stdin: bool) -> Self {
        Self {
            command,
            snapshot,
            stdout: Stdout::new(),
            is_one_key: command.keys.len() == 1 && !from_stdin,
            is_key_missing: false,
            found: vec![None; BATCH_KEYS],
            scratch: Scratch::new(),
            line: Vec::new(),
        }
    }

    /// Prints the values of the keys that exist, and a message for each other key.
    fn print_all(&mut self, keys: &[&[u8]]) -> Result<(), Failure> {
        for keys in keys.chunks(BATCH_KEYS) {
            self.snapshot.find_many(keys, &mut self.found)?;
            self.snapshot.check_readable()?;
            for (index, key) in keys.iter().enumerate() {
                match self.found[index] {
                    Some(stored) => self.print(key, stored)?,
                    None => self.report_missing(key)?,
                }
            }
        }
        Ok(())
    }

    fn report_missing(&mut self, key: &[u8]) -> Result<(), Failure> {
        // Values that were found before are printed before the message.
        self.stdout.flush()?;
        let file = self.command.file.display();
        print_message(format_args!("{file}: no key {}", quote_key(key)));
        self.is_key_missing = true;
        Ok(())
    }

    fn print(&mut self, key: &[u8], stored: StoredValue<'a>) -> Result<(), Failure> {
        let value = stored.decompress(&mut self.scratch)?;
        let line = &mut self.line;
        line.clear();
        if self.command.raw {
            raw_value(&value, line);
        } else {
            if self.command.json {
                json_row(key, &value, line);
            } else if !self.is_one_key {
                tsv_escape(key, line);
                line.push(b'\t');
                escaped(&value, line);
            } else if self.stdout.is_terminal() {
                escaped(&value, line);
            } else {
                tsv_value(&value, line);
            }
            line.push(b'\n');
        }
        self.snapshot.check_readable()?;
        self.stdout.write(line)
    }
}

fn escaped(value: &Value<'_>, line: &mut Vec<u8>) {
    let mut field = Vec::new();
    tsv_value(value, &mut field);
    tsv_escape(&field, line);
}
