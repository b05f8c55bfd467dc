//! `nuthatch serve`: a cache server.

use super::{Answer, Failure};
use crate::figures::{bytes, parse_size};
use crate::logs::LogOptions;
use crate::streams::Stdout;
use clap::{Args, ValueEnum};
use nuthatch_cache::{Cache, Eviction, Options as CacheOptions};
use nuthatch_server::admin::Unavailable;
use nuthatch_server::{Address, Options, Running};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fmt::Write;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::{self, available_parallelism};

const NOTES: &str = "\
Examples:
  nuthatch serve                    Redis at 6379, memcached at 11211, 1 GiB, all cores
  nuthatch serve --memory 16GiB --threads 4
  nuthatch serve --resp 127.0.0.1:7000 --resp unix:/run/nuthatch/resp.sock
  redis-cli set greeting hello                        any client of Redis will do
  curl http://127.0.0.1:9464/metrics                  what it counts, for Prometheus
  nuthatch top                                        the same, live

The server runs until it gets SIGTERM or SIGINT (Ctrl-C). What it holds is in memory, and goes
with it.

Exit status:
  0  it was asked to stop, and did
  2  the command line is wrong
  3  anything else: an address is taken, say";

/// Serve a cache to clients of Redis and memcached
///
/// Keys expire to the millisecond. When the memory is used up, what is asked for least makes room;
/// one pass over many keys does not push out what others ask for (S3-FIFO).
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct Serve {
    /// Where to listen for clients of Redis: host:port, unix:PATH, or off; may be given again
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6379")]
    resp: Vec<String>,
    /// Where to tell what is counted, over HTTP: host:port, unix:PATH, or off; may be given again
    #[arg(long, value_name = "ADDR", default_value = ADMIN)]
    admin: Vec<String>,
    /// Memory for all there is: keys, values, index and connections; from 16MiB on
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    memory: u64,
    /// What happens when the memory is used up
    #[arg(long, value_name = "POLICY", default_value = "s3fifo")]
    eviction: Policy,
    /// Threads, each with connections of its own [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// What threads wait with for clients
    #[arg(long, value_name = "NAME", default_value = "auto")]
    event_loop: EventLoop,
    /// Listen beyond this machine although nobody is asked for a password
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    logs: LogOptions,
}

/// Where the admin port is unless it is somewhere else.
pub(super) const ADMIN: &str = "127.0.0.1:9464";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    /// What is asked for least makes room
    S3fifo,
    /// Writes fail
    None,
}

/// What replies to clients of mrcache begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reply {
    /// The length of the value, in four bytes
    Len4,
    /// 0, 1 and the length, in six bytes: what clients of 2020 read
    Ver6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EventLoop {
    /// The first of the others that this machine has
    Auto,
    /// Linux 6.1 or later, where nothing forbids it
    #[value(name = "io_uring")]
    Uring,
    /// Any Linux
    Epoll,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<Answer, Failure> {
        let resp = self.addresses("--resp", &self.resp, "could read and write all there is")?;
        if resp.is_empty() {
            return Err(Failure::Usage("expected an address to listen at, found none".to_owned()));
        }
        let admin = self.addresses("--admin", &self.admin, "could read what is counted")?;
        let cores = || available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or_else(cores, usize::from);
        let eviction = match self.eviction {
            Policy::S3fifo => Eviction::S3Fifo,
            Policy::None => Eviction::None,
        };
        let options = CacheOptions::new().memory(self.memory).eviction(eviction);
        let cache = Cache::new(options).map_err(|error| Failure::Usage(error.to_string()))?;
        let _logs = self.logs.start()?;
        // Before anybody can connect, so that no signal finds us unprepared.
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failure)?;
        let options = Options { resp, admin, threads };
        let running = Running::start(Arc::new(cache), &options).map_err(not_started)?;
        self.greet(&running, threads)?;
        let stopper = running.stopper();
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                stopper.stop();
            }
        });
        running.wait().map_err(failure)?;
        Ok(Answer::Whole)
    }

    /// Where to listen. Beyond this machine only if that is wanted: anybody who is there could do
    /// this.
    fn addresses(
        &self,
        flag: &str,
        texts: &[String],
        danger: &str,
    ) -> Result<Vec<Address>, Failure> {
        let wanted = texts.iter().filter(|address| *address != "off");
        let parsed = wanted.map(|address| {
            let usage = |error| Failure::Usage(format!("{flag}: {error}"));
            let address: Address = address.parse().map_err(usage)?;
            if address.is_local() || self.insecure {
                return Ok(address);
            }
            let reason = format!("anybody who reaches it {danger}");
            Err(Failure::Usage(format!("{flag} {address}: {reason}; --insecure allows it")))
        });
        parsed.collect()
    }

    fn greet(&self, running: &Running, threads: usize) -> Result<(), Failure> {
        let mut text = String::new();
        for address in running.resp() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "listening at {address} for clients of Redis");
        }
        for address in running.admin() {
            let _ = match address {
                Address::Tcp(address) => writeln!(text, "metrics at http://{address}/metrics"),
                Address::Unix(_) => writeln!(text, "metrics at {address}, path /metrics"),
            };
        }
        let s = if threads == 1 { "" } else { "s" };
        let (memory, reactor) = (bytes(self.memory), running.reactor());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{memory} of memory, {threads} thread{s} on {reactor}");
        for listener in running.listeners() {
            let _ = writeln!(text, "listening at {listener}");
        }
        let mut stdout = Stdout::new();
        stdout.put(text.as_bytes())?;
        stdout.flush()
    }
}

/// Why the server did not start. The admin port is often one that nobody has asked for by name.
fn not_started(error: std::io::Error) -> Failure {
    let admin = error.get_ref().and_then(|inner| inner.downcast_ref::<Unavailable>());
    if admin.is_some() {
        let advice = "--admin ADDR chooses another, --admin off does without";
        return Failure::Error(format!("{error}; {advice}"));
    }
    failure(error)
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failure(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}
