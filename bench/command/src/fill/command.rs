//! `nuthatch-bench fill`: arguments and manual page.

use super::FillBench;
use crate::failure::Failure;
use clap::Args;
use nuthatch_units::parse_size;
use std::io::Write;

const ABOUT: [&str; 2] = [
    "Measure how long single writes take while a cache fills up and evicts",
    "

Writes keys of 16 bytes until the budget was written over several times: first the index grows, \
then room is made for every write. A quarter of the writes replace an earlier value, and an eighth \
expires after half a second. Each write is timed by the clock, and in a second run by the time \
that the processor gave to it: where others use the machine, the longest by the clock are theirs. \
Beside the threads that write, one has memory ready before they need it, as in the server.",
];

const NOTES: &str = "\
Examples:
  nuthatch-bench fill
  nuthatch-bench fill --memory 4GiB --value-bytes 1000 --threads 2 --json

Rows in JSON:
  {\"time\":\"processor\",\"writes\":6942284,\"p50_ns\":410,\"p99_ns\":2100,\"p999_ns\":9000,
   \"p9999_ns\":60000,\"max_ns\":400000,\"above_1_ms\":0,\"evicted\":4100000,\"expired\":500000}

Times hold one reading of a clock each: some 30 ns of the clock, some 200 ns of the processor.";

/// Measure how long single writes take while a cache fills up and evicts.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Fill {
    /// Memory of the cache, from 16MiB on
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    memory: u64,
    /// Bytes of a value
    #[arg(long, value_name = "N", default_value = "100")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    value_bytes: u32,
    /// How often the memory is written over
    #[arg(long, value_name = "N", default_value = "3")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    times: u64,
    /// Threads that write, each its part
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Print an array of rows in JSON
    #[arg(long)]
    json: bool,
}

impl Fill {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let &Self { memory, value_bytes, times, threads, json } = self;
        let value_len = value_bytes as usize;
        let bench = FillBench { memory, value_len, times, threads, json };
        let text = bench.run()?;
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }
}
