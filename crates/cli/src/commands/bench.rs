//! `nuthatch bench`: measurements on this machine.

mod eviction;
mod fill;
mod store;

use super::{Answer, Failure};
use crate::bench::SnapshotBench;
use clap::{Args, Subcommand};
use eviction::Eviction;
use fill::Fill;
use store::Store;

const SNAPSHOT_ABOUT: [&str; 2] = [
    "Measure building and reading snapshots, beside a hash map in the same process",
    "

Makes a snapshot of the keys key_0, key_1, ... with the values val_0, val_1, ... in the folder for \
temporary files, looks all of them up in shuffled order, and as many keys that are not there, one \
at a time and in batches; then does the same with a hash map.",
];

const SNAPSHOT_NOTES: &str = "\
Examples:
  nuthatch bench snapshot
  nuthatch bench snapshot --keys 1000000,20000000 --json > bench.json

Rows in JSON:
  {\"work\":\"get_hit\",\"system\":\"nuthatch\",\"keys\":1000000,\"ns_per_op\":61.0}

Absolute times differ from machine to machine: compare the ratios.";

/// Measure how fast nuthatch is on this machine
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Debug, Subcommand)]
enum Engine {
    Snapshot(Snapshot),
    Eviction(Eviction),
    Fill(Fill),
    Store(Store),
}

/// Measure building and reading snapshots, beside a hash map in the same process.
#[derive(Debug, Args)]
#[command(about = SNAPSHOT_ABOUT[0], long_about = SNAPSHOT_ABOUT.concat())]
#[command(after_long_help = SNAPSHOT_NOTES)]
struct Snapshot {
    /// Number of keys; several, with commas between, are measured one after the other
    #[arg(long, value_name = "N", default_value = "1000000", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    keys: Vec<u32>,
    /// Print an array of rows in JSON
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        match &self.engine {
            Engine::Snapshot(Snapshot { keys, json }) => {
                SnapshotBench { keys: keys.clone(), json: *json }.run()?;
            }
            Engine::Eviction(eviction) => eviction.run()?,
            Engine::Fill(fill) => fill.run()?,
            Engine::Store(store) => store.run()?,
        }
        Ok(Answer::Whole)
    }
}
