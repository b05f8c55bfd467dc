//! Benchmarks cache servers against each other.

use clap::Parser;
use nuthatch_load::{Error, Race, System, arguments, echo_program, stop_flag};
use std::env;
use std::io::{stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const ABOUT: &str = "\
Starts cache servers on free ports of this machine, each on one core, fills them, and loads them \
from another core, one after the other, in several rounds. Prints the medians of all systems, and \
of an echo server, whose cost is the lower bound for all servers.";

const NOTES: &str = "\
Workloads:
  get100       GET, values of 100 bytes, pipeline 100, 1 M keys, uniform distribution
  zipf100      get100 with a Zipf distribution, exponent 0.99
  get32        get100 with pipeline 32
  get1         get100 without pipelining
  get100-meta  get100 in memcached's meta protocol
  get100-text  get100 in memcached's text protocol
  set100       SET, values of 100 bytes, pipeline 100
  zipf16       zipf100 with values of 16 bytes
  get10k       GET, values of 10 KiB, pipeline 32, 100,000 keys
  get100-10m, zipf100-10m, set100-10m
               get100, zipf100 and set100 with 10 M keys
  disk100, disk1k, disk10k
               GET, values of 100 bytes, 1 KiB and 10 KiB, no pipelining, Zipf distribution with
               exponent 0.99, ten times as much data as memory; only systems with a disk

Systems:
  redis, memcached, echo
  nuthatch, nuthatch-16gib
               the same program with a budget of 2 GiB and of 16 GiB
  nuthatch-snapshot
               the same program with the items in a snapshot, which is read-only: no SET
  extstore, nuthatch-disk
               memcached with extstore, and Nuthatch with its disk tier: 64 MiB of memory and
               2 GiB of disk, in a temporary folder in TMPDIR

Unless a workload names a protocol, memcached is tested with its meta protocol, and the other \
systems with RESP. Ratios are to redis in the same workload, and in get100 for get100-meta and \
get100-text.

Examples:
  race --nuthatch target/release/nuthatch
  race --works get100,get1 --systems redis,memcached --json > race.json
  race --works disk100,disk1k,disk10k --nuthatch target/release/nuthatch
  race --works disk100 --rate 20000 --nuthatch target/release/nuthatch
                                            latencies at 20,000 requests in a second

Exit status:
  0  success
  2  the command line is wrong
  3  a server cannot be started, or failed";

/// Races cache servers against each other.
#[derive(Debug, Parser)]
#[command(name = "race", long_about = ABOUT, after_long_help = NOTES, max_term_width = 100)]
struct Options {
    /// Systems to measure [default: all; those of nuthatch only with --nuthatch]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    systems: Vec<System>,
    /// Workloads [default: all that need no disk]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = work)]
    works: Vec<String>,
    /// Number of rounds of each workload
    #[arg(long, value_name = "N", default_value = "3")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Connections to each server
    #[arg(long, value_name = "N", default_value = "50")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    connections: u16,
    /// Requests in a second to each server, in all, at equal intervals. Latencies count from when a
    /// request was due: choose a rate that all servers reach [default: as many as possible]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Duration of the load before each measurement
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = arguments::duration)]
    warmup: Duration,
    /// Duration of each measurement
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = arguments::duration)]
    seconds: Duration,
    /// Core on which the servers run
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    server_core: usize,
    /// Core on which the generator runs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    generator_core: usize,
    /// Let extstore use the page cache, which is memory beyond its budget
    #[arg(long)]
    page_cache: bool,
    /// Path of the nuthatch program
    #[arg(long, value_name = "PATH")]
    nuthatch: Option<PathBuf>,
    /// Print an array of rows in JSON
    #[arg(long)]
    json: bool,
}

fn work(text: &str) -> Result<String, String> {
    if Race::works().any(|name| name == text) {
        return Ok(text.into());
    }
    Err(format!("expected some of {}", Race::works().collect::<Vec<_>>().join(", ")))
}

impl Options {
    fn race(&self) -> Race {
        let default = |system: &System| !system.is_nuthatch() || self.nuthatch.is_some();
        let all_systems = || System::ALL.into_iter().filter(default).collect();
        let all_works = || Race::works_in_memory().map(String::from).collect();
        Race {
            systems: if self.systems.is_empty() { all_systems() } else { self.systems.clone() },
            works: if self.works.is_empty() { all_works() } else { self.works.clone() },
            rounds: self.rounds.into(),
            connections: self.connections.into(),
            rate: self.rate.map(f64::from),
            warmup: self.warmup,
            measured: self.seconds,
            server_core: self.server_core,
            generator_core: self.generator_core,
            page_cache: self.page_cache,
            nuthatch: self.nuthatch.clone(),
        }
    }
}

fn main() -> ExitCode {
    // The benchmark starts its echo server by running its own program file.
    if env::args_os().nth(1).is_some_and(|first| first == "echo") {
        return echo_program(env::args_os().skip(1));
    }
    let options: Options = match arguments::parsed(env::args_os()) {
        Ok(options) => options,
        Err(status) => return status,
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => arguments::failed("race", &error),
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let stop = stop_flag()?;
    options.race().run(options.json, &stop, &mut stderr(), &mut stdout())
}
