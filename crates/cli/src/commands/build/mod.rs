//! `nuthatch build`: builds a snapshot.

mod manual;

use crate::arguments::{Built, InputArgs, OutputArgs};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Display, quote_key};
use clap::{Args, ValueEnum};
use nuthatch_import::{FieldType, Inputs, Options, Pattern};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Build a snapshot from JSON, TSV, CSV, Parquet or AxonCache
#[derive(Debug, Args)]
#[command(long_about = manual::ABOUT, after_long_help = manual::NOTES)]
pub(crate) struct Build {
    /// Input files, read in this order; - is standard input
    ///
    /// None of them may be the file of --output.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    input: InputArgs,
    /// Type of a CSV column, if it differs from --type; can be repeated
    #[arg(long = "column", value_name = "NAME:TYPE", value_parser = parse_column,
          help_heading = "Input")]
    columns: Vec<(String, FieldType)>,
    /// Store lists of numbers as 32-bit floats, for keys that match the pattern; can be repeated
    ///
    /// In the pattern, * matches any text and ? matches one character.
    #[arg(long = "f32", value_name = "PATTERN", help_heading = "Input")]
    f32_keys: Vec<Pattern>,

    #[command(flatten)]
    output: OutputArgs,
}

fn parse_column(text: &str) -> Result<(String, FieldType), String> {
    let (name, name_of_type) = text.rsplit_once(':').ok_or("expected NAME:TYPE")?;
    let value_type = FieldType::from_str(name_of_type, false).map_err(|_| {
        let types = FieldType::value_variants().iter().map(|value_type| value_type.name());
        format!("expected a type after the colon: {}", types.collect::<Vec<_>>().join(", "))
    })?;
    Ok((name.to_owned(), value_type))
}

impl Build {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        self.output.check()?;
        let inputs = Inputs::new(&self.inputs, self.options())?;
        if let Some(input) = inputs.find_same_file(self.output.path()) {
            let output = self.output.path().display();
            let message = format!("{output}: expected another file than the input {input}");
            return Err(Failure::Usage(message));
        }
        let display = Arc::new(Display::new(self.output.quiet, inputs.total_bytes()));
        let built = self.build(&inputs, &display);
        display.finish();
        let built = built.map_err(|error| failure(&inputs, error))?;
        self.output.publish(built, start.elapsed())
    }

    fn options(&self) -> Options {
        Options {
            columns: self.columns.clone(),
            f32_keys: self.f32_keys.clone(),
            ..self.input.options()
        }
    }

    fn build(
        &self,
        inputs: &Inputs,
        display: &Arc<Display>,
    ) -> Result<Built, nuthatch_import::Error> {
        let readers = reading_threads(self.output.threads(), self.output.memory());
        let mut writer = self.output.writer(Inputs::memory_bytes(readers), display)?;
        inputs.feed(&mut writer, readers, |step| display.reading(step.bytes, step.rows))?;
        Ok(self.output.finish(writer)?)
    }
}

/// Returns the number of threads that parse inputs. They take at most half of the memory.
fn reading_threads(threads: usize, memory: usize) -> usize {
    threads.min(memory / 2 / Inputs::memory_bytes(1)).max(1)
}

fn failure(inputs: &Inputs, error: nuthatch_import::Error) -> Failure {
    match error {
        nuthatch_import::Error::Snapshot(nuthatch_snapshot::Error::Duplicate(duplicate)) => {
            let (first, second) = (
                inputs.describe_position(duplicate.first),
                inputs.describe_position(duplicate.second),
            );
            let key = quote_key(&duplicate.key);
            Failure::Error(format!(
                "{second}: expected every key once, found {key} again, first given at {first}; \
                 --on-duplicate first or last keeps one"
            ))
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_leaves_half_of_the_memory_to_the_writer() {
        for memory in [32 << 20, 100 << 20, 1 << 30] {
            for threads in [1, 2, 4, 64, 1024] {
                let readers = reading_threads(threads, memory);
                assert!((1..=threads).contains(&readers));
                assert!(Inputs::memory_bytes(readers) <= memory / 2, "{threads} threads, {memory}");
            }
        }
        assert_eq!(reading_threads(8, 1 << 30), 8);
    }
}
