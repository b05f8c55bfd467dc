//! `nuthatch-bench eviction`: arguments and manual page.

use super::{Equal, EvictionBench, MAX_FILE_REQUESTS, Rival, trace_names};
use crate::failure::Failure;
use clap::Args;
use clap::builder::PossibleValuesParser;
use nuthatch_cache::Options as CacheOptions;
use nuthatch_units::parse_size;
use std::path::PathBuf;

/// Requests of a trace that is made.
const REQUESTS: usize = 3_000_000;

const ABOUT: [&str; 2] = [
    "Measure which requests a cache misses, beside other policies, Redis and the optimum",
    "

Replays traces: each request is a lookup, and what is not found is stored. Nuthatch's cache goes \
first, with a budget for all it holds. LRU, LFU and the optimum, which knows what comes, get room \
for as many bytes of keys and values as it held; Redis runs live and gets the memory it needs to \
hold as many (see --equal).",
];

const NOTES: &str = "\
Traces:
  zipf-0.8 to zipf-1.2   the key of rank r is asked for as often as 1 / r to this power;
                         four times as many keys as there is room for
  zipf-scan              zipf-1.0, and a fifth of it passes over keys that never come again
  loop                   all keys in turn, again and again, somewhat more than there is room for
  shift                  zipf-1.0; three times, all popularity is given to other keys
  drift                  zipf-1.0; new keys become popular all the time, and fade
  sizes                  zipf-0.9, values from 64 bytes to 64 KiB; in all others, items of 1 KiB

Files:
  Text has a request on each line: a key, and after a tab or a comma the bytes of its value (1008
  without). The first size of a key holds. A file named *.oracleGeneral or *.oracleGeneral.bin has
  the 24-byte records of libCacheSim. Traces are kept in memory: 4 bytes for each request, and
  about 150 for each key besides its own; at most 100,000,000 requests are read.

Systems:
  lru, lfu    exact, by bytes of keys and values; lfu forgets how often an item was used with it
  redis-lru, redis-lfu
              allkeys-lru and allkeys-lfu of a Redis started for it. Its clock for LRU ticks once a
              second, in which a replay makes some hundred thousand requests
  optimum     with items of one size, Belady's; else a bound that lies below it (PFOO-L)

Examples:
  nuthatch-bench eviction
  nuthatch-bench eviction --trace loop,zipf-scan --memory 256MiB --requests 20000000
  zstdcat trace.zst | nuthatch-bench eviction --file - --no-redis

Rows in JSON:
  {\"trace\":\"loop\",\"system\":\"lru\",\"requests\":3000000,\"items\":65536,\"misses\":3000000,
   \"miss_ratio\":1.00000,\"times_lru\":1.0000,\"held_bytes\":59768832}

Exit status:
  0  all was replayed
  2  the command line is wrong
  3  anything else: a file is missing or wrong, Redis does not start, say";

/// Measure which requests a cache misses, beside other policies, Redis and the optimum.
#[derive(Debug, Args)]
#[command(about = ABOUT[0], long_about = ABOUT.concat(), after_long_help = NOTES)]
pub(crate) struct Eviction {
    /// Traces to make; several with commas between [default: all, unless there is a --file]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(trace_names()))]
    trace: Vec<String>,
    /// A file with a trace, - for standard input; can be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Requests of each trace, and of a file at most [default: 3000000, all of a file]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    requests: Option<u64>,
    /// Memory of nuthatch's cache, from 16MiB on
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_memory)]
    memory: u64,
    /// What decides the traces
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The redis-server to start [default: the one on the PATH, if there is one]
    #[arg(long, value_name = "PATH")]
    redis: Option<PathBuf>,
    /// Leave Redis out
    #[arg(long, conflicts_with = "redis")]
    no_redis: bool,
    /// What Redis gets as much of as nuthatch
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
                _ if self.no_redis => Rival::Nobody,
                Some(path) => Rival::Program(path.clone()),
                None => Rival::IfThere,
            },
            equal: self.equal,
            json: self.json,
        };
        bench.run()
    }
}
