//! `nuthatch-bench eviction`: replays traces against eviction policies.
//!
//! Nuthatch's cache runs first, within its memory budget. The bytes of keys and values that it
//! holds are the capacity of the simulated policies. Redis gets the memory to hold as many. The
//! comparison therefore covers the policies, without the overhead per item. With [`Equal::Memory`],
//! Redis gets the same memory budget instead.

pub(crate) mod command;
mod file;
mod generated;
mod live;
mod optimum;
mod own;
mod policies;
mod rows;
mod trace;

use crate::failure::Failure;
use crate::report;
use clap::ValueEnum;
use generated::{KINDS, Plan};
use indicatif::{ProgressBar, ProgressStyle};
use live::{Limit, Redis};
use nuthatch_units::{bytes, grouped};
use policies::Policy;
use rows::{Result as Measured, Row, System};
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::thread;
use trace::Trace;

/// Maximum number of requests read from a file. All of them are kept in memory.
pub(crate) const MAX_FILE_REQUESTS: usize = 100_000_000;

/// The quantity of which Redis gets as much as Nuthatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Equal {
    /// Memory for as many bytes of keys and values as Nuthatch holds: compares the policies
    Payload,
    /// The same memory: compares the policies and the overhead per item
    Memory,
}

/// The Redis server to compare with.
#[derive(Clone, Debug)]
pub(crate) enum Rival {
    /// `redis-server` on the `PATH`, if it is installed.
    IfInstalled,
    /// The program at this path.
    Program(PathBuf),
    /// No Redis server.
    None,
}

/// The settings of `nuthatch-bench eviction`.
#[derive(Debug)]
pub(crate) struct EvictionBench {
    /// Names of the traces to generate.
    pub(crate) traces: Vec<String>,
    /// Paths of the trace files.
    pub(crate) files: Vec<PathBuf>,
    /// The number of requests of a generated trace, and the maximum number of requests of a file.
    pub(crate) requests: (usize, usize),
    /// Memory budget in bytes.
    pub(crate) memory: u64,
    pub(crate) seed: u64,
    pub(crate) rival: Rival,
    pub(crate) equal: Equal,
    /// Whether to print an array of rows in JSON instead of a table.
    pub(crate) json: bool,
}

/// Returns the names of the traces that can be generated.
pub(crate) fn trace_names() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().map(|(name, _)| name)
}

/// Returns a progress bar for `requests` requests on standard error. The bar is hidden unless
/// standard error is a terminal.
fn progress_bar(requests: u64) -> ProgressBar {
    let template = "replaying [{wide_bar}] {human_pos}/{human_len}, {eta} left";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    ProgressBar::new(requests).with_style(style)
}

impl EvictionBench {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut redis = self.start_rival()?;
        let takes_part = |system: &System| {
            redis.is_some() || !matches!(system, System::RedisLru | System::RedisLfu)
        };
        let systems: Vec<System> = System::ALL.into_iter().filter(takes_part).collect();
        let mut out = std::io::stdout();
        if !self.json {
            out.write_all(self.introduction(redis.as_mut())?.as_bytes())?;
            out.write_all(rows::heading(&systems).as_bytes())?;
            out.flush()?;
        }
        let total = self.traces.len() * systems.len() * self.requests.0;
        let progress = progress_bar(total as u64);
        let plan = Plan { requests: self.requests.0, memory: self.memory, seed: self.seed };
        let wanted = |name: &str| self.traces.iter().any(|trace| trace == name);
        let kinds = KINDS.into_iter().filter(|(name, _)| wanted(name));
        let made = kinds.map(|(name, kind)| Ok::<Trace, Failure>(plan.trace(name, kind)));
        let files = self.files.iter().map(|path| {
            let trace = file::read(path, self.requests.1)?;
            let requests = trace.requests.len() * systems.len();
            progress.inc_length(requests as u64);
            Ok(trace)
        });
        for (at, trace) in made.chain(files).enumerate() {
            let result = self.measure(&trace?, redis.as_mut(), &progress)?;
            let text = if self.json {
                rows::json(&result, at == 0)
            } else {
                rows::line(&result, &systems)
            };
            progress.suspend(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
        }
        progress.finish_and_clear();
        if self.json {
            out.write_all(b"\n]\n")?;
        }
        Ok(out.flush()?)
    }

    /// Starts Redis, unless it is disabled or not installed.
    fn start_rival(&self) -> Result<Option<Redis>, Failure> {
        let (program, must) = match &self.rival {
            Rival::None => return Ok(None),
            Rival::IfInstalled => (OsStr::new("redis-server"), false),
            Rival::Program(path) => (path.as_os_str(), true),
        };
        match Redis::start(program) {
            Ok(redis) => Ok(Some(redis)),
            Err(error) if error.kind() == ErrorKind::NotFound && !must => {
                report("no redis-server is on the PATH, so Redis is not measured; see --redis");
                Ok(None)
            }
            Err(error) => Err(Failure::Error(format!("{}: {error}", program.display()))),
        }
    }

    fn introduction(&self, redis: Option<&mut Redis>) -> Result<String, Failure> {
        let redis = match redis {
            Some(redis) => format!("; Redis {}", redis.version().map_err(failure)?),
            None => String::new(),
        };
        let (requests, memory, seed) = (grouped(self.requests.0 as u64), self.memory, self.seed);
        Ok(format!(
            "{} of memory, {requests} requests per generated trace, seed {seed}{redis}\n\
             misses in percent of requests, and divided by those of LRU\n\n",
            bytes(memory)
        ))
    }

    fn measure(
        &self,
        trace: &Trace,
        redis: Option<&mut Redis>,
        progress: &ProgressBar,
    ) -> Result<Measured, Failure> {
        let own =
            own::replay(trace, self.memory, self.seed, |done: usize| progress.inc(done as u64));
        let own = own.map_err(Failure::of)?;
        let capacity = own.held_bytes;
        let row = |system, misses, held_bytes| Row { system, misses, held_bytes };
        let limit = match self.equal {
            Equal::Payload => Limit::Payload(capacity),
            Equal::Memory => Limit::Memory(self.memory),
        };
        let mut rows = vec![row(System::Nuthatch, own.misses, capacity)];
        thread::scope(|scope| {
            // The simulated policies run on one core, and Redis on another.
            let tick = |done: usize| progress.inc(done as u64);
            let exact = scope.spawn(move || {
                [
                    row(System::Lru, Policy::Lru.misses(trace, capacity, tick), capacity),
                    row(System::Lfu, Policy::Lfu.misses(trace, capacity, tick), capacity),
                    row(System::Optimum, optimum::misses(trace, capacity, tick), capacity),
                ]
            });
            if let Some(redis) = redis {
                let policies =
                    [(System::RedisLru, "allkeys-lru"), (System::RedisLfu, "allkeys-lfu")];
                for (system, policy) in policies {
                    let replayed = redis.replay(trace, policy, limit, tick).map_err(failure)?;
                    rows.push(row(system, replayed.misses, replayed.held_bytes));
                }
            }
            let exact = exact.join().map_err(|_| Failure::Error("a policy failed".to_owned()))?;
            rows.extend(exact);
            Ok::<(), Failure>(())
        })?;
        rows.sort_by_key(|row| System::ALL.iter().position(|system| *system == row.system));
        let (requests, items) = (trace.requests.len(), trace.items.len());
        Ok(Measured { trace: trace.name.clone(), requests, items, rows })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failure(error: std::io::Error) -> Failure {
    Failure::Error(format!("redis: {error}"))
}
