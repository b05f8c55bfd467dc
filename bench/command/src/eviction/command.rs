//! `nuthatch-bench eviction`: arguments and manual page.

use super::{Equal, EvictionBench, MAX_FILE_REQUESTS, Rival, trace_names};
use crate::failure::Failure;
use clap::Args;
use clap::builder::PossibleValuesParser;
use nuthatch_cache::Options as CacheOptions;
use nuthatch_units::parse_size;
use std::path::PathBuf;

/// The default number of requests of a generated trace.
const REQUESTS: usize = 3_000_000;

const ABOUT: [&str; 2] = [
    "Measure the miss ratio of the cache against other policies, Redis and the optimum",
    "

Replays traces: each request is a lookup, and each miss stores the item. Nuthatch's cache runs \
first, with a memory budget that includes all overhead. LRU, LFU and the offline optimum are \
simulated with a capacity of as many bytes of keys and values as Nuthatch held. Redis runs as a \
server, with the memory that it needs to hold as many (see --equal).",
];

const NOTES: &str = "\
Traces:
  zipf-0.8 to zipf-1.2   Zipf distribution with this exponent, over four times as many keys as fit
  zipf-scan              zipf-1.0, with a fifth of the requests in scans over one-time keys
  loop                   repeated scan over all keys, slightly more than fit
  shift                  zipf-1.0; the popular keys change three times
  drift                  zipf-1.0; new keys become popular continuously, and old ones fade
  sizes                  zipf-0.9 with values from 64 bytes to 64 KiB

  All traces except sizes have items of 1 KiB.

Files:
  A text file contains one request per line: a key, optionally followed by a tab or comma and the
  value size in bytes (default 1008). The first size of a key applies to all its requests. A file
  named *.oracleGeneral or *.oracleGeneral.bin contains 24-byte records of libCacheSim. A trace is
  kept in memory: 4 bytes per request, and the key plus about 150 bytes per key. At most
  100,000,000 requests are read.

Systems:
  lru, lfu    exact simulations; lfu discards the frequency of an item when it evicts the item
  redis-lru, redis-lfu
              allkeys-lru and allkeys-lfu of a Redis server that the benchmark starts. Its LRU clock
              has a resolution of one second, during which a replay sends several 100,000 requests
  optimum     Belady's optimum for items of one size, otherwise the lower bound PFOO-L

Examples:
  nuthatch-bench eviction
  nuthatch-bench eviction --trace loop,zipf-scan --memory 256MiB --requests 20000000
  zstdcat trace.zst | nuthatch-bench eviction --file - --no-redis

Rows in JSON:
  {\"trace\":\"loop\",\"system\":\"lru\",\"requests\":3000000,\"items\":65536,\"misses\":3000000,
   \"miss_ratio\":1.00000,\"times_lru\":1.0000,\"held_bytes\":59768832}

Exit status:
  0  all traces were replayed
  2  the command line is wrong
  3  any other error: a file is missing or invalid, or Redis does not start";

/// Measure the miss ratio of the cache against other policies, Redis and the optimum.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Eviction {
    /// Traces to generate, separated by commas [default: all, unless --file is given]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(trace_names()))]
    trace: Vec<String>,
    /// A file with a trace; - is standard input. Repeatable
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Requests per generated trace, and the maximum per file [default: 3000000, all of a file]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    requests: Option<u64>,
    /// Memory of Nuthatch's cache, at least 16MiB
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_memory)]
    memory: u64,
    /// Seed of the generated traces
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The redis-server to start [default: redis-server on the PATH, if installed]
    #[arg(long, value_name = "PATH")]
    redis: Option<PathBuf>,
    /// Do not run Redis
    #[arg(long, conflicts_with = "redis")]
    no_redis: bool,
    /// The quantity of which Redis gets as much as Nuthatch
    #[arg(long, value_enum, value_name = "WHAT", default_value = "payload")]
    equal: Equal,
    /// Print an array of rows in JSON
    #[arg(long)]
    json: bool,
}

fn parse_memory(text: &str) -> Result<u64, String> {
    let size = parse_size(text)?;
    if (CacheOptions::MIN_MEMORY..=CacheOptions::MAX_MEMORY).contains(&size) {
        return Ok(size);
    }
    Err("expected from 16MiB to 1TiB".to_owned())
}

impl Eviction {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let requests = self.requests.map(|requests| requests as usize);
        let all = self.trace.is_empty() && self.file.is_empty();
        let bench = EvictionBench {
            traces: if all {
                trace_names().map(str::to_owned).collect()
            } else {
                self.trace.clone()
            },
            files: self.file.clone(),
            requests: (requests.unwrap_or(REQUESTS), requests.unwrap_or(MAX_FILE_REQUESTS)),
            memory: self.memory,
            seed: self.seed,
            rival: match &self.redis {
                _ if self.no_redis => Rival::None,
                Some(path) => Rival::Program(path.clone()),
                None => Rival::IfInstalled,
            },
            equal: self.equal,
            json: self.json,
        };
        bench.run()
    }
}
