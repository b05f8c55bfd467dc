//! `nuthatch serve`: a cache server.

use super::{Answer, Failure};
use crate::figures::{bytes, parse_size};
use crate::streams::Stdout;
use clap::{Args, ValueEnum};
use nuthatch_cache::{Cache, Eviction, Options as CacheOptions};
use nuthatch_server::protocol::mrcache::Framing;
use nuthatch_server::{Address, Listener, Options, Protocol, Reactors, Running};
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
  redis-cli set greeting hello      any client of Redis or memcached will do

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
    /// Where to listen for clients of memcached, its text and meta protocols; as --resp
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:11211")]
    memcache: Vec<String>,
    /// Where to listen for clients of poor-man's-cache (its port was 9001); as --resp
    #[arg(long, value_name = "ADDR", default_value = "off")]
    pmc: Vec<String>,
    /// Where to listen for clients of mrcache (its port was 7000); as --resp
    #[arg(long, value_name = "ADDR", default_value = "off")]
    mrcache: Vec<String>,
    /// What replies to clients of mrcache begin with
    #[arg(long, value_name = "REPLY", default_value = "len4")]
    mrcache_reply: Reply,
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
}

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
        let listeners = self.listeners()?;
        let cores = || available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or_else(cores, usize::from);
        let eviction = match self.eviction {
            Policy::S3fifo => Eviction::S3Fifo,
            Policy::None => Eviction::None,
        };
        let options = CacheOptions::new().memory(self.memory).eviction(eviction);
        let cache = Cache::new(options).map_err(|error| Failure::Usage(error.to_string()))?;
        // Before anybody can connect, so that no signal finds us unprepared.
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failure)?;
        let reactors = match self.event_loop {
            EventLoop::Auto => Reactors::Auto,
            EventLoop::Uring => Reactors::Uring,
            EventLoop::Epoll => Reactors::Epoll,
        };
        let options = Options::new(listeners).threads(threads).reactors(reactors);
        let running = Running::start(Arc::new(cache), &options).map_err(failure)?;
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

    /// Where to listen. Beyond this machine only if that is wanted.
    fn listeners(&self) -> Result<Vec<Listener>, Failure> {
        let framing = match self.mrcache_reply {
            Reply::Len4 => Framing::Len4,
            Reply::Ver6 => Framing::Ver6,
        };
        let wanted = [
            ("--resp", Protocol::Resp, &self.resp),
            ("--memcache", Protocol::Memcache, &self.memcache),
            ("--pmc", Protocol::Pmc, &self.pmc),
            ("--mrcache", Protocol::Mrcache(framing), &self.mrcache),
        ];
        let mut listeners = Vec::new();
        for (flag, protocol, addresses) in wanted {
            for address in addresses.iter().filter(|address| *address != "off") {
                let address = self.address(flag, address)?;
                listeners.push(Listener::new(protocol, address));
            }
        }
        if listeners.is_empty() {
            return Err(Failure::Usage("expected an address to listen at, found none".to_owned()));
        }
        Ok(listeners)
    }

    fn address(&self, flag: &str, text: &str) -> Result<Address, Failure> {
        let usage = |error| Failure::Usage(format!("{flag}: {error}"));
        let address: Address = text.parse().map_err(usage)?;
        if address.is_local() || self.insecure {
            return Ok(address);
        }
        let reason = "anybody who reaches it could read and write all there is";
        Err(Failure::Usage(format!("{flag} {address}: {reason}; --insecure allows it")))
    }

    fn greet(&self, running: &Running, threads: usize) -> Result<(), Failure> {
        let mut text = String::new();
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

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failure(error: std::io::Error) -> Failure {
    Failure::Error(error.to_string())
}
