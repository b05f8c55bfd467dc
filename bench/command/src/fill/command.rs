//! `nuthatch-bench fill`: arguments and manual page.

use super::FillBench;
use crate::failure::Failure;
use clap::Args;
use nuthatch_units::parse_size;
use std::io::Write;

const ABOUT: [&str; 2] = [
    "Measure how long single writes take while a cache fills up and evicts",
    "

Writes keys of 16 bytes until the memory budget is overwritten several times. At first the index \
grows, and later every write evicts or reclaims items. A quarter of the writes replace an earlier \
value, and an eighth expires after half a second. The first run measures each write by the wall \
clock, and the second run by the processor time of the thread. On a shared machine, the longest \
wall-clock times include other processes. A prefill thread prepares free segments, as in the \
server.",
];

const NOTES: &str = "\
Examples:
  nuthatch-bench fill
  nuthatch-bench fill --memory 4GiB --value-bytes 1000 --threads 2 --json

Rows in JSON:
  {\"time\":\"processor\",\"writes\":6942284,\"p50_ns\":410,\"p99_ns\":2100,\"p999_ns\":9000,
   \"p9999_ns\":60000,\"max_ns\":400000,\"above_1_ms\":0,\"evicted\":4100000,\"expired\":500000}

Each time includes one clock reading: about 30 ns (clock) or 200 ns (processor).";

/// Measure how long single writes take while a cache fills up and evicts.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Fill {
    /// Memory of the cache, at least 16MiB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    memory: u64,
    /// Bytes of a value
    #[arg(long, value_name = "N", default_value = "100")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    value_bytes: u32,
    /// Number of times that the memory is overwritten
    #[arg(long, value_name = "N", default_value = "3")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    times: u64,
    /// Writing threads; each executes an equal part of the writes
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
