//! `nuthatch dict`: dictionaries for the compression of small values.

mod inspect;
mod measure;
mod sample_args;
mod sample_reader;
mod train;
mod try_samples;

use crate::outcome::{Failure, Outcome};
use clap::{Args, Subcommand};
use std::path::Path;

const ABOUT: [&str; 2] = [
    "Train, inspect and try dictionaries for the compression of small values",
    "

A dictionary has what small values repeat among each other, such as the names of fields in JSON \
documents. Values of 100 to 1000 bytes become several times smaller with it. The file is in the \
format of zstd: \"zstd -D\" uses it, and dictionaries of \"zstd --train\" can be used here.",
];

const NOTES: &str = "\
Examples:
  nuthatch dict train --from users.jsonl --out users.zdict     each line is a sample
  nuthatch dict train --from documents/ --out docs.zdict       each file is a sample
  nuthatch dict inspect users.zdict
  nuthatch dict try users.zdict --from new-users.jsonl         size and speed, with and without

A dictionary contains parts of the samples. Protect it like the samples.

Exit status:
  0  success
  2  invalid command line
  3  any other error, for example: a file is missing or is not a dictionary, or there are too few
     samples";

/// Train, inspect and try dictionaries for the compression of small values
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
#[command(arg_required_else_help = true)]
pub(crate) struct Dict {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Train(train::Train),
    Inspect(inspect::Inspect),
    Try(try_samples::TrySamples),
}

impl Dict {
    pub(crate) fn run(&self) -> Result<Outcome, Failure> {
        match &self.command {
            Command::Train(train) => train.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Try(samples) => samples.run(),
        }
    }
}

/// Returns the failure for a file with a dictionary.
fn failure(file: &Path, error: &nuthatch_compress::Error) -> Failure {
    Failure::Error(match error {
        nuthatch_compress::Error::File { .. } => error.to_string(),
        error => format!("{}: {error}", file.display()),
    })
}

/// Returns how many times smaller values have become.
fn times_smaller(raw_bytes: u64, bytes: u64) -> f64 {
    raw_bytes as f64 / (bytes as f64).max(1.0)
}
