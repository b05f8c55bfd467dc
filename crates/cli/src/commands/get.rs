//! `nuthatch get`: looks keys up.

use super::{Answer, Failure, shown};
use crate::streams::{Stdout, tell};
use clap::Args;
use nuthatch_cli::output::{json_row, raw_value, tsv_escape, tsv_value};
use nuthatch_snapshot::{Scratch, Snapshot, Value};
use std::ffi::OsString;
use std::path::PathBuf;

const NOTES: &str = "\
Output:
  One key: its value on a line. Strings and bytes are printed as they are, only on a terminal with
  control characters escaped. Numbers are decimal; lists are JSON.
  Several keys: a line \"key<TAB>value\" for each key that is there, in the order given, as TSV,
  in which \\t \\n \\r \\\\ and \\xNN stand for a tab, a line feed, a carriage return, a backslash
  and the byte with that hexadecimal number.
  --json: a line {\"key\":...,\"value\":...} for each key, as \"nuthatch build\" reads it.
  --raw: the bytes of the values and nothing else. Numbers, and those in lists, are little-endian.
  Keys that are missing are named on stderr.

A lookup checks the structure of what it reads, and no checksums: \"nuthatch verify\" finds damage
that changed a value into another one.

Examples:
  nuthatch get users.nut user:1.name
  nuthatch get users.nut user:1.name user:1.age user:1.tags --json
  nuthatch get pages.nut page:/index.html --raw > index.html
  nuthatch get users.nut -- -1                   a key that begins with a dash

Exit status:
  0  all keys are there
  1  a key is missing, the others are printed
  2  the command line is wrong
  3  anything else: the file is missing, no snapshot, or truncated meanwhile, or the lookup met
     damage";

/// Look keys up and print their values
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Get {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    /// Print a JSON object for each key
    #[arg(long)]
    json: bool,
    /// Print the bytes of the values and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,
}

impl Get {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let snapshot = Snapshot::open(&self.file)?;
        let (mut scratch, mut line) = (Scratch::new(), Vec::new());
        let mut stdout = Stdout::new();
        let mut answer = Answer::Whole;
        for key in &self.keys {
            let key = key.as_encoded_bytes();
            let found = snapshot.find(key)?;
            snapshot.check_readable()?;
            let Some(stored) = found else {
                // What was found before should stand before.
                stdout.flush()?;
                tell(format_args!("{}: no key {}", self.file.display(), shown(key)));
                answer = Answer::KeysMissing;
                continue;
            };
            let value = stored.decompress(&mut scratch)?;
            line.clear();
            self.print(key, &value, stdout.is_terminal(), &mut line);
            snapshot.check_readable()?;
            stdout.put(&line)?;
        }
        stdout.flush()?;
        Ok(answer)
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
