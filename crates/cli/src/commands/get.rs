//! `nuthatch get`: looks up keys.

use crate::outcome::{Failure, Outcome};
use crate::terminal::quote_key;
use crate::terminal::{Stdout, print_message};
use clap::Args;
use nuthatch_cli::output::{json_row, raw_value, tsv_escape, tsv_value};
use nuthatch_snapshot::{Scratch, Snapshot, Value};
use std::ffi::OsString;
use std::path::PathBuf;

const NOTES: &str = "\
Output:
  One key: the value and a line feed. Numbers are decimal; lists are JSON. On a terminal, control
  characters in strings and bytes are escaped.
  Several keys: a line \"key<TAB>value\" for each key that exists, in the order of the arguments,
  as TSV. The escapes \\t \\n \\r \\\\ and \\xNN represent a tab, a line feed, a carriage return,
  a backslash and the byte with the hexadecimal number NN.
  --json: a line {\"key\":...,\"value\":...} for each key that exists, for \"nuthatch build\".
  --raw: the bytes of the values without separators. Numbers, also in lists, are little-endian.
  Missing keys are reported on stderr.

Lookups check the structure of the records they read, but no checksums. Damage that changes a
value without changing its structure is found by \"nuthatch verify\" only.

Examples:
  nuthatch get users.nut user:1.name
  nuthatch get users.nut user:1.name user:1.age user:1.tags --json
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
    /// Keys to look up
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    /// Print a JSON object for each key
    #[arg(long)]
    json: bool,
    /// Print the bytes of the values without separators
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

impl Get {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let snapshot = Snapshot::open(&self.file)?;
        let (mut scratch, mut line) = (Scratch::new(), Vec::new());
        let mut stdout = Stdout::new();
        let mut outcome = Outcome::Success;
        for key in &self.keys {
            let key = key.as_encoded_bytes();
            let found = snapshot.find(key)?;
            snapshot.check_readable()?;
            let Some(stored) = found else {
                // Values that were found before are printed before the message.
                stdout.flush()?;
                print_message(format_args!("{}: no key {}", self.file.display(), quote_key(key)));
                outcome = Outcome::NotFound;
                continue;
            };
            let value = stored.decompress(&mut scratch)?;
            line.clear();
            self.print(key, &value, stdout.is_terminal(), &mut line);
            snapshot.check_readable()?;
            stdout.write(&line)?;
        }
        stdout.flush()?;
        Ok(outcome)
    }

    fn print(&self, key: &[u8], value: &Value<'_>, terminal: bool, line: &mut Vec<u8>) {
        if self.raw {
            return raw_value(value, line);
        }
        if self.json {
            json_row(key, value, line);
        } else if self.keys.len() > 1 {
            tsv_escape(key, line);
            line.push(b'\t');
            escaped(value, line);
        } else if terminal {
            escaped(value, line);
        } else {
            tsv_value(value, line);
        }
        line.push(b'\n');
    }
}

fn escaped(value: &Value<'_>, line: &mut Vec<u8>) {
    let mut field = Vec::new();
    tsv_value(value, &mut field);
    tsv_escape(&field, line);
}
