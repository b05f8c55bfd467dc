//! `nuthatch diff`: compares the entries of two snapshots.

use crate::outcome::{Failure, Outcome};
use crate::terminal::Stdout;
use clap::Args;
use nuthatch_cli::output::{json_value, tsv_escape};
use nuthatch_snapshot::{Difference, Scratch, Snapshot, StoredValue, Value};
use nuthatch_units::grouped;
use std::path::PathBuf;

const NOTES: &str = "\
Output:
  A line \"-<TAB>key<TAB>value\" for each entry that only OLD has, \"+<TAB>key<TAB>value\" for each
  entry that only NEW has, and both lines for a key whose value or type differs. Keys have the
  escapes of \"nuthatch get\"; values are JSON, as \"nuthatch dump\" prints them. Floats are
  compared by their bits, so -0.0 differs from 0.0.
  --json: an object on each line, of these forms:
    {\"change\":\"removed\",\"key\":...,\"old\":...}
    {\"change\":\"added\",\"key\":...,\"new\":...}
    {\"change\":\"changed\",\"key\":...,\"old\":...,\"new\":...}
  --summary: the number of keys of each kind.

Removed and changed keys come first, in the order of OLD, then added keys in the order of NEW.
Only entries are compared, not metadata, compression or shards. The checksums of all entries are
checked: those of OLD in the first pass, those of NEW in the second. So damage in NEW can be printed
as differences before it is reported, with status 3. --quiet stops at the first difference, before
all entries are checked. The memory does not depend on the size of the snapshots.

Examples:
  nuthatch diff old.nut new.nut
  nuthatch diff old.nut new.nut --summary
  nuthatch diff old.nut new.nut --json | jq -r 'select(.change == \"removed\") | .key'
  nuthatch diff old.nut new.nut --quiet && echo equal

Exit status:
  0  both have the same entries
  1  the entries differ
  2  invalid command line
  3  any other error, for example: a file is missing, not a snapshot, damaged, or was truncated
     while it was read";

/// Compare the entries of two snapshots
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Diff {
    /// Snapshot file with the old entries
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// Snapshot file with the new entries
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Print a JSON object for each difference, or for the summary
    #[arg(long)]
    json: bool,
    /// Print only the number of removed, added, changed and equal keys
    #[arg(long)]
    summary: bool,
    /// Print nothing, and stop at the first difference
    #[arg(short, long, conflicts_with_all = ["json", "summary"])]
    quiet: bool,
}

/// The number of keys of each kind.
#[derive(Debug, Default)]
struct Counts {
    removed: u64,
    added: u64,
    changed: u64,
    equal: u64,
}

impl Counts {
    fn is_same(&self) -> bool {
        self.removed + self.added + self.changed == 0
    }
}

impl Diff {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let (old, new) = (Snapshot::open(&self.old)?, Snapshot::open(&self.new)?);
        let mut comparison = Comparison::new(self, &old, &new);
        match comparison.run() {
            // What was printed is a difference, or the summary.
            Err(Failure::ClosedPipe) => {}
            compared => compared?,
        }
        let is_same = comparison.counts.is_same();
        Ok(if is_same { Outcome::Success } else { Outcome::NotFound })
    }

    /// Returns the counts as text or as a JSON object.
    fn summary_of(&self, counts: &Counts) -> String {
        let Counts { removed, added, changed, equal } = counts;
        if self.json {
            return format!(
                "{{\"removed\":{removed},\"added\":{added},\"changed\":{changed},\
                 \"equal\":{equal}}}\n"
            );
        }
        format!(
            "removed  {}\nadded    {}\nchanged  {}\nequal    {}\n",
            grouped(*removed),
            grouped(*added),
            grouped(*changed),
            grouped(*equal)
        )
    }
}

/// A comparison of two snapshots.
struct Comparison<'a> {
    command: &'a Diff,
    old: &'a Snapshot,
    new: &'a Snapshot,
    counts: Counts,
    stdout: Stdout,
    line: Vec<u8>,
    scratch: [Scratch; 2],
}

impl<'a> Comparison<'a> {
    fn new(command: &'a Diff, old: &'a Snapshot, new: &'a Snapshot) -> Self {
        Self {
            command,
            old,
            new,
            counts: Counts::default(),
            stdout: Stdout::new(),
            line: Vec::new(),
            scratch: [Scratch::new(), Scratch::new()],
        }
    }

    fn run(&mut self) -> Result<(), Failure> {
        for difference in self.old.differences(self.new) {
            let (key, old, new) = match difference? {
                Difference::Removed(entry) => {
                    self.counts.removed += 1;
                    (entry.key, Some(entry.value), None)
                }
                Difference::Changed { old, new } => {
                    self.counts.changed += 1;
                    (old.key, Some(old.value), Some(new))
                }
                Difference::Added(entry) => {
                    self.counts.added += 1;
                    (entry.key, None, Some(entry.value))
                }
            };
            if self.command.quiet {
                return Ok(());
            }
            self.print(key, old, new)?;
        }
        self.counts.equal = self.old.len() - self.counts.removed - self.counts.changed;
        if self.command.summary {
            self.stdout.write(self.command.summary_of(&self.counts).as_bytes())?;
        }
        self.stdout.flush()
    }

    fn check_readable(&self) -> Result<(), Failure> {
        self.old.check_readable()?;
        Ok(self.new.check_readable()?)
    }

    /// Prints a difference.
    fn print(
        &mut self,
        key: &[u8],
        old: Option<StoredValue<'_>>,
        new: Option<StoredValue<'_>>,
    ) -> Result<(), Failure> {
        if self.command.summary {
            return Ok(());
        }
        let Self { scratch: [old_scratch, new_scratch], line, .. } = self;
        let old = old.map(|stored| stored.decompress(old_scratch)).transpose()?;
        let new = new.map(|stored| stored.decompress(new_scratch)).transpose()?;
        line.clear();
        if self.command.json {
            json_change(key, old.as_ref(), new.as_ref(), line);
        } else {
            for (sign, value) in [("-\t", old), ("+\t", new)] {
                let Some(value) = value else { continue };
                line.extend_from_slice(sign.as_bytes());
                tsv_escape(key, line);
                line.push(b'\t');
                json_value(&value, line);
                line.push(b'\n');
            }
        }
        self.check_readable()?;
        self.stdout.write(&self.line)
    }
}

/// Appends a difference as a JSON object.
fn json_change(key: &[u8], old: Option<&Value<'_>>, new: Option<&Value<'_>>, out: &mut Vec<u8>) {
    let change = match (old, new) {
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
        _ => "added",
    };
    out.extend_from_slice(format!("{{\"change\":\"{change}\",\"key\":").as_bytes());
    let text = std::str::from_utf8(key).map(Value::String);
    json_value(&text.unwrap_or(Value::Bytes(key)), out);
    for (name, value) in [("old", old), ("new", new)] {
        let Some(value) = value else { continue };
        out.extend_from_slice(format!(",\"{name}\":").as_bytes());
        json_value(value, out);
    }
    out.extend_from_slice(b"}\n");
}
