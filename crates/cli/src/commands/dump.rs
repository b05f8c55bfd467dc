//! `nuthatch dump`: prints all entries as text.

use crate::outcome::{Failure, Outcome};
use crate::terminal::quote_key;
use crate::terminal::{Stdout, print_message};
use clap::{Args, ValueEnum};
use nuthatch_cli::output::{json_row, tsv_escape, tsv_value};
use nuthatch_import::FieldType;
use nuthatch_snapshot::{Scratch, Snapshot, ValueType};
use std::path::PathBuf;

const NOTES: &str = "\
Entries are printed in the order of the file, which follows from the hashes of the keys and is the
same each time. \"nuthatch build\" with the same --compress, --seed, --shards and --meta builds an
identical snapshot from the output; \"nuthatch info\" prints seed, shards and metadata. The
checksums of each partition are checked before its entries are printed. If the exit status is 0, and
the reader of the output did not close it early, the output is complete.

TSV requires that all values have the same type. The type is reported on stderr. Lists are written
as JSON.

Examples:
  nuthatch dump users.nut > users.jsonl
  nuthatch dump users.nut | jq -r 'select(.key | endswith(\".name\")) | .value'
  nuthatch dump names.nut --format tsv | cut -f 1

Exit status:
  0  success, or the reader of the output closed it
  2  invalid command line
  3  any other error, for example: the file is missing, not a snapshot, damaged, or was truncated
     while it was read, or its values have several types and the format is TSV";

/// Print all entries as text that "nuthatch build" accepts
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Dump {
    /// Snapshot file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "jsonl")]
    format: DumpFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DumpFormat {
    /// A JSON object on each line
    Jsonl,
    /// A key, a tab and a value on each line
    Tsv,
}

impl Dump {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let snapshot = Snapshot::open(&self.file)?;
        let mut stdout = Stdout::new();
        match self.format {
            DumpFormat::Jsonl => jsonl(&snapshot, &mut stdout)?,
            DumpFormat::Tsv => self.tsv(&snapshot, &mut stdout)?,
        }
        stdout.flush()?;
        Ok(Outcome::Success)
    }

    fn tsv(&self, snapshot: &Snapshot, stdout: &mut Stdout) -> Result<(), Failure> {
        let types = ValueType::ALL.into_iter().filter(|t| snapshot.stats().entries_of(*t) > 0);
        let types: Vec<_> = types.collect();
        // Empty lists can be read with any list type.
        let value_type =
            types.iter().find_map(|t| FieldType::of(*t)).unwrap_or(FieldType::StringList);
        if let Some(other) = types.iter().find(|other| !value_type.can_hold(**other)) {
            return Err(self.mixed(snapshot, value_type, *other));
        }
        print_message(format_args!(
            "to read this back: nuthatch build --format tsv --type {value_type}"
        ));
        let (mut scratch, mut line, mut field) = (Scratch::new(), Vec::new(), Vec::new());
        for entry in snapshot.iter_verified()? {
            let entry = entry?;
            let value = entry.value.decompress(&mut scratch)?;
            if !value_type.can_hold(value.value_type()) {
                return Err(self.mixed(snapshot, value_type, value.value_type()));
            }
            line.clear();
            field.clear();
            tsv_escape(entry.key, &mut line);
            line.push(b'\t');
            tsv_value(&value, &mut field);
            tsv_escape(&field, &mut line);
            line.push(b'\n');
            snapshot.check_readable()?;
            stdout.write(&line)?;
        }
        Ok(snapshot.check_readable()?)
    }

    /// Returns the error for values of two types, with a key of each.
    fn mixed(&self, snapshot: &Snapshot, expected: FieldType, other: ValueType) -> Failure {
        let key_of = |wanted: &dyn Fn(ValueType) -> bool| {
            let mut entries = snapshot.iter().flatten();
            let found = entries.find(|entry| wanted(entry.value.value_type()));
            found.map_or_else(|| "a key".to_owned(), |entry| quote_key(entry.key))
        };
        let one = key_of(&|found| FieldType::of(found) == Some(expected));
        let another = key_of(&|found| found == other);
        Failure::Error(format!(
            "{}: expected values of one type, because TSV has no types, found {expected} for \
             {one} and {other} for {another}; --format jsonl holds both",
            self.file.display()
        ))
    }
}

fn jsonl(snapshot: &Snapshot, stdout: &mut Stdout) -> Result<(), Failure> {
    let (mut scratch, mut line) = (Scratch::new(), Vec::new());
    for entry in snapshot.iter_verified()? {
        let entry = entry?;
        let value = entry.value.decompress(&mut scratch)?;
        line.clear();
        json_row(entry.key, &value, &mut line);
        line.push(b'\n');
        snapshot.check_readable()?;
        stdout.write(&line)?;
    }
    Ok(snapshot.check_readable()?)
}
