//! Loads one server and reports its throughput and latency.

use clap::Parser;
use nuthatch_load::{
    Address, Distribution, Error, LimitedBy, Load, Protocol, Requests, Work, Workload, arguments,
    stop_flag,
};
use std::env;
use std::process::ExitCode;
use std::time::Duration;

const ABOUT: &str = "\
Loads a cache server over the network and measures it: each connection sends a batch of \
requests, counts the replies, and sends the next batch after all of them. Requests are generated \
before the clock starts and replies are not parsed, so that the generator costs much less than \
any server. Run server and generator on separate cores.";

const NOTES: &str = "\
Examples:
  load --address 127.0.0.1:6379 --fill                  1 M values of 100 bytes, pipeline 100
  load --address 127.0.0.1:6379 --pipeline 1 --distribution zipf:0.99
  load --address 127.0.0.1:11211 --protocol meta --work mixed:0.9 --fill
  load --address 127.0.0.1:6379 --pipeline 1 --rate 50000      latencies at a rate
  load --address unix:/run/cache.sock --core 1 --server-pid $(pidof redis-server) --json

Keys are key:000000000000 and up. A value consists of its key and random letters.

Report:
  hits, misses       outcomes of lookups
  latency            from sending a batch to its last reply; of one request with --pipeline 1.
                     With --rate, from when it was due, if replies were late
  generator, server  processor time; of the server only with --server-pid, from /proc/PID/stat
  limited by         \"generator\" if the generator used more than 90 % of its core: then the server
                     could process more requests than measured

Exit status:
  0  success
  1  success, but the generator limited the throughput
  2  the command line is wrong
  3  the server cannot be reached, closed a connection, or replied with something unexpected";

/// Loads a cache server over the network and measures it.
#[derive(Debug, Parser)]
#[command(name = "load", long_about = ABOUT, after_long_help = NOTES, max_term_width = 100)]
struct Options {
    /// Address of the server: HOST:PORT or unix:PATH
    #[arg(long)]
    address: Address,
    /// Protocol: resp, memcache (text), meta (memcached's), mrcache or pmc (poor-man's-cache)
    #[arg(long, value_name = "NAME", default_value_t = Protocol::Resp)]
    protocol: Protocol,
    /// Connections, distributed over the threads
    #[arg(long, value_name = "N", default_value_t = 50)]
    connections: usize,
    /// Requests of a batch; 1 waits for each reply before the next request
    #[arg(long, value_name = "N", default_value_t = 100)]
    pipeline: usize,
    /// Requests in a second over all connections, at equal intervals; latencies count from when a
    /// request was due [default: as many as possible]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Number of distinct keys
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    keys: u32,
    /// Bytes of each value
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    value_size: usize,
    /// Distribution of requests over the keys: uniform, or zipf:EXPONENT
    #[arg(long, value_name = "LAW", default_value_t = Distribution::Uniform)]
    distribution: Distribution,
    /// Kinds of requests: get, set, or mixed:SHARE, where SHARE is the share of gets
    #[arg(long, default_value_t = Work::Get)]
    work: Work,
    /// Store all keys first; fails unless the server acknowledges each
    #[arg(long)]
    fill: bool,
    /// Duration of the load before the measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = arguments::duration)]
    warmup: Duration,
    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "3", value_parser = arguments::duration)]
    seconds: Duration,
    /// Sending threads, each with a submission queue of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Pin the first thread to this core, and the following threads to the next cores
    #[arg(long, value_name = "NUMBER")]
    core: Option<usize>,
    /// Also report the processor time and memory of this process
    #[arg(long, value_name = "PID")]
    server_pid: Option<u32>,
    /// Print the report as an object in JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    fn load(&self) -> Load {
        Load {
            address: self.address.clone(),
            workload: Workload {
                protocol: self.protocol,
                work: self.work,
                keys: self.keys,
                distribution: self.distribution,
                value_bytes: self.value_size,
                pipeline: self.pipeline,
            },
            connections: self.connections,
            rate: self.rate,
            threads: self.threads,
            core_number: self.core,
            warmup: self.warmup,
            measured: self.seconds,
            server_pid: self.server_pid,
        }
    }
}

fn main() -> ExitCode {
    let options: Options = match arguments::parsed(env::args_os()) {
        Ok(options) => options,
        Err(status) => return status,
    };
    match run(&options) {
        Ok(LimitedBy::Server) => ExitCode::SUCCESS,
        Ok(LimitedBy::Generator) => ExitCode::from(1),
        Err(error) => arguments::failed("load", &error),
    }
}

fn run(options: &Options) -> Result<LimitedBy, Error> {
    let stop = stop_flag()?;
    let load = options.load();
    load.check()?;
    if options.fill {
        load.fill(&stop)?;
    }
    let report = load.run(&Requests::of(&load.workload), &stop)?;
    if options.json {
        println!("{}", report.json());
    } else {
        print!("{report}");
    }
    Ok(report.limited_by())
}
