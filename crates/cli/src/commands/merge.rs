//! `nuthatch merge`: writes the entries of several snapshots to a new one.

use crate::arguments::{Built, OutputArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Display, quote_key};
use clap::Args;
use nuthatch_snapshot::{Duplicate, Error, Scratch, Snapshot, Writer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Number of bits of a row's position that hold the number of the entry; the others hold the number
/// of the input.
const ENTRY_BITS: u32 = 40;
/// Maximum number of inputs.
const MAX_INPUTS: usize = 1 << (64 - ENTRY_BITS);

const NOTES: &str = "\
The new snapshot has the entries of all inputs. A key that several inputs have is an error, unless
--on-duplicate keeps the value of the first or the last of them. Inputs can be sets, and can be
compressed. The options of the new snapshot do not depend on the inputs: set --shards, --compress,
--seed and --meta as for \"nuthatch build\", which writes the same bytes for the same entries and
options.

The checksums of each partition are checked before its entries are copied. The file is written under
a temporary name, synced and then renamed, so it can replace one of the inputs.

Examples:
  nuthatch merge europe.nut asia.nut -o all.nut
  nuthatch merge changes.nut users.nut -o users.nut --on-duplicate first
  nuthatch merge users.nut -o users/users.nut --shards 8       one file becomes a set
  nuthatch merge users/users.nut -o - | ssh web 'cat > new.nut && mv new.nut users.nut'

Exit status:
  0  the snapshot is built
  2  invalid command line
  3  any other error, for example: an input is missing, not a snapshot or damaged, or two inputs
     have the same key. An existing file is unchanged, unless the error reports that the new file
     was published";

/// Write the entries of several snapshots to a new one
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Merge {
    /// Snapshot files, in the order that --on-duplicate refers to
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Merge {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        self.output.check()?;
        if self.inputs.len() > MAX_INPUTS {
            let found = self.inputs.len();
            let problem = format!("expected at most {MAX_INPUTS} inputs, found {found}");
            return Err(Failure::Usage(problem));
        }
        let inputs = self.inputs.iter().map(Snapshot::open).collect::<Result<Vec<_>, _>>()?;
        let display = Arc::new(Display::new(self.output.quiet, None));
        let built = self.build(&inputs, &display);
        display.finish();
        let built = built.map_err(|error| match error {
            Error::Duplicate(duplicate) => self.duplicate(&duplicate),
            error => error.into(),
        })?;
        self.output.publish(built, start.elapsed())
    }

    fn build(&self, inputs: &[Snapshot], display: &Arc<Display>) -> Result<Built, Error> {
        let mut writer = self.output.writer(0, display)?;
        let total = inputs.iter().map(Snapshot::len).sum();
        let mut done = 0;
        for (number, input) in (0..).zip(inputs) {
            copy(&mut writer, number, input, |rows| {
                done += rows;
                display.stage("reading", done, total);
            })?;
        }
        self.output.finish(writer)
    }

    /// Returns the failure for a key that two inputs have.
    fn duplicate(&self, duplicate: &Duplicate) -> Failure {
        let name = |position: u64| {
            let input = self.inputs.get((position >> ENTRY_BITS) as usize);
            input.map_or_else(|| "?".to_owned(), |input| input.display().to_string())
        };
        let (first, second) = (name(duplicate.first), name(duplicate.second));
        let key = quote_key(&duplicate.key);
        Failure::Error(format!(
            "{second}: expected keys that no other input has, found {key}, which {first} has; \
             --on-duplicate first or last keeps one"
        ))
    }
}

/// Appends all entries of an input. Calls `report` with the number of rows of each batch.
fn copy(
    writer: &mut Writer,
    number: u64,
    input: &Snapshot,
    mut report: impl FnMut(u64),
) -> Result<(), Error> {
    let (mut batch, mut scratch) = (writer.batch(), Scratch::new());
    for (entry_number, entry) in (0..).zip(input.iter_verified()?) {
        let entry = entry?;
        let value = entry.value.decompress(&mut scratch)?;
        let position = number << ENTRY_BITS | entry_number;
        batch.push_with_position(position, entry.key, value)?;
        input.check_readable()?;
        if batch.is_full() {
            report(batch.len() as u64);
            writer.append(std::mem::replace(&mut batch, writer.batch()))?;
        }
    }
    report(batch.len() as u64);
    writer.append(batch)?;
    input.check_readable()
}
