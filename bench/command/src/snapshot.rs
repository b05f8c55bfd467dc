//! `nuthatch-bench snapshot`: arguments and manual page.

use crate::failure::Failure;
use clap::Args;
use nuthatch_bench::Options;

/// Maximum number of vectors: they are large.
const MAX_VECTORS: u32 = 100_000;

const ABOUT: [&str; 2] = [
    "Measure building and reading snapshots, against a hash map in the same process",
    "

Builds a snapshot of the keys key_0, key_1, ... with the values val_0, val_1, ... in the folder \
for temporary files. Looks up all keys in shuffled order, and as many keys that do not exist, one \
at a time and in batches; then does the same with a hash map.",
];

const NOTES: &str = "\
Examples:
  nuthatch-bench snapshot
  nuthatch-bench snapshot --keys 1000000,20000000 --json > bench.json

Rows in JSON:
  {\"work\":\"get_hit\",\"system\":\"nuthatch\",\"keys\":1000000,\"ns_per_op\":61.0}

Absolute times differ from machine to machine: compare the ratios.";

/// Measure building and reading snapshots, against a hash map in the same process.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Snapshot {
    /// Number of keys; several numbers, separated by commas, are measured one after the other
    #[arg(long, value_name = "N", default_value = "1000000", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    keys: Vec<u32>,
    /// Print an array of rows in JSON
    #[arg(long)]
    json: bool,
}

impl Snapshot {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let (keys, json) = (self.keys.clone(), self.json);
        let vectors = keys.iter().copied().min().unwrap_or(0).min(MAX_VECTORS);
        let options = Options { keys, vectors, json, ..Options::default() };
        nuthatch_bench::run(&options, &mut std::io::stdout().lock()).map_err(Failure::of)
    }
}
