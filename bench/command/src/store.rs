//! `nuthatch-bench store`: arguments and manual page.

use crate::failure::Failure;
use clap::Args;
use nuthatch_bench::store::{StoreOptions, run_stores};
use std::path::PathBuf;

const ABOUT: [&str; 2] = [
    "Measure scans and durable writes of an ordered store, against plain LMDB",
    "

Loads the same rows into both stores, in key order, and scans them with every kind of scan. Then \
writes single rows durably: one at a time, and in 64 concurrent tasks. A checksum \
verifies each scan.",
];

const NOTES: &str = "\
Examples:
  nuthatch-bench store
  nuthatch-bench store --rows 100000 --key-bytes 5 --value-bytes 64 --json

Rows in JSON:
  {\"work\":\"scan_stream\",\"system\":\"nuthatch\",\"per_second\":51000000.0,
   \"against\":\"lmdb\",\"times\":0.910}

The files go into a new folder below --directory, which should be on a disk: on a file system in
memory, a durable write costs nothing. Absolute rates differ from machine to machine: compare the
ratios.";

/// Measure scans and durable writes of an ordered store, against plain LMDB.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Store {
    /// Rows to load and scan
    #[arg(long, value_name = "N", default_value = "1600000")]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=1_000_000_000))]
    rows: u32,
    /// Bytes of a key
    #[arg(long, value_name = "N", default_value = "16")]
    #[arg(value_parser = clap::value_parser!(u16).range(5..=16))]
    key_bytes: u16,
    /// Bytes of a value
    #[arg(long, value_name = "N", default_value = "100")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    value_bytes: u32,
    /// Durable writes of one row each; the concurrent tasks together write sixteen times as many
    #[arg(long, value_name = "N", default_value = "300")]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=1_000_000))]
    writes: u32,
    /// Number of rounds of each workload
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Directory for the temporary files [default: the system's directory for temporary files]
    #[arg(long, value_name = "PATH")]
    directory: Option<PathBuf>,
    /// Print an array of rows in JSON
    #[arg(long)]
    json: bool,
}

impl Store {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let &Self { rows, key_bytes, value_bytes, writes, rounds, ref directory, json } = self;
        let directory = directory.clone().unwrap_or_else(std::env::temp_dir);
        let (key_len, value_len) = (usize::from(key_bytes), value_bytes as usize);
        let rounds = usize::from(rounds);
        let options = StoreOptions { rows, key_len, value_len, writes, rounds, json, directory };
        run_stores(&options, &[], &mut std::io::stdout().lock()).map_err(Failure::of)
    }
}
