//! `nuthatch-bench soak`: runs a server with a disk for a long time, kills it, and checks its
//! budgets and its values.
//!
//! One connection sends all requests, so that the order of the changes of a key is known. Each
//! acknowledged change raises the lowest version of the key that may be read.

mod client;
pub(crate) mod command;
mod model;
mod server;

use crate::failure::Failure;
use client::{BatchError, Client, Counts};
use indicatif::{ProgressBar, ProgressStyle};
use model::{MAX_VALUE_BYTES, MEAN_VALUE_BYTES, Model, Request};
use nuthatch_bench::{Distribution, Draws, Random};
use nuthatch_units::{bytes, grouped};
use server::Server;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Requests of a batch.
const BATCH: u32 = 32;

/// Number of the last changed keys that are read after a restart.
const RECENT_KEYS: usize = 1 << 16;

/// Bounds of a time to live, in milliseconds.
const MIN_TTL_MS: u32 = 100;
const MAX_TTL_MS: u32 = 5000;

/// Documented memory beside the budget: the stacks of 16 threads that read, and the longest value
/// twice.
const STACK_BYTES: u64 = 16 * (256 << 10);
/// Minimum of what the allocator keeps; above it, 1/32 of the budget.
const MIN_ALLOCATOR_BYTES: u64 = 4 << 20;

/// The settings of `nuthatch-bench soak`.
pub(crate) struct SoakTest {
    pub(crate) seconds: u64,
    /// Budgets in bytes.
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) kills: u32,
    pub(crate) seed: u64,
    pub(crate) program: PathBuf,
    /// The parent of the temporary folder.
    pub(crate) directory: PathBuf,
}

/// The results of a run in which all checks passed.
pub(crate) struct Summary {
    seconds: u64,
    counts: Counts,
    kills: u32,
    samples: u64,
    max_resident_bytes: u64,
    resident_limit: u64,
    max_disk_bytes: u64,
    disk_limit: u64,
}

/// The state of a run.
struct Run<'a> {
    test: &'a SoakTest,
    server: Server,
    client: Client,
    model: Model,
    draws: Requests,
    start: Instant,
    /// Whether the recent keys are to be read once the server has found its items again.
    is_recovering: bool,
    summary: Summary,
}

impl SoakTest {
    /// Runs the server until the time is over or a check fails.
    pub(crate) fn run(&self) -> Result<Summary, Failure> {
        let mut run = self.start()?;
        let result = self.load(&mut run);
        result.map_err(|failure| run.with_context(failure))?;
        Ok(run.summary)
    }

    fn load(&self, run: &mut Run<'_>) -> Result<(), Failure> {
        let progress = progress_bar(self.seconds);
        let end = Duration::from_secs(self.seconds);
        let interval = end / (self.kills + 1);
        loop {
            let elapsed = run.start.elapsed();
            // On a slow machine, kills can be late.
            if elapsed >= end && run.summary.kills == self.kills {
                break;
            }
            progress.set_position(elapsed.as_secs());
            if run.summary.kills < self.kills && elapsed >= interval * (run.summary.kills + 1) {
                run.kill()?;
            }
            if elapsed.as_secs() >= run.summary.samples {
                run.sample()?;
            }
            run.batch()?;
        }
        progress.set_message("reading every key");
        for first in (0..run.draws.keys).step_by(BATCH as usize) {
            let end = run.draws.keys.min(first + BATCH);
            run.read(&(first..end).collect::<Vec<_>>())?;
        }
        run.sample()?;
        progress.finish_and_clear();
        Ok(())
    }

    fn start(&self) -> Result<Run<'_>, Failure> {
        let keys = (self.disk / 2 * 3 / MEAN_VALUE_BYTES).clamp(1000, u64::from(u32::MAX)) as u32;
        let mut server = Server::start(&self.program, &self.directory, self.memory, self.disk)?;
        let start = Instant::now();
        let client = Client::new(server.connect()?, start)?;
        let summary = Summary {
            seconds: self.seconds,
            counts: Counts::default(),
            kills: 0,
            samples: 0,
            max_resident_bytes: 0,
            resident_limit: self.resident_limit(),
            max_disk_bytes: 0,
            disk_limit: self.disk,
        };
        let (model, draws) = (Model::new(keys), Requests::new(keys, self.seed));
        let (test, is_recovering) = (self, false);
        Ok(Run { test, server, client, model, draws, start, is_recovering, summary })
    }

    /// Returns the budget with 3 %, and the documented memory beside it.
    fn resident_limit(&self) -> u64 {
        let allocator = MIN_ALLOCATOR_BYTES.max(self.memory / 32);
        self.memory + self.memory * 3 / 100 + STACK_BYTES + 2 * MAX_VALUE_BYTES + allocator
    }
}

impl Run<'_> {
    /// Sends a batch of mixed requests, and checks the replies.
    fn batch(&mut self) -> Result<(), Failure> {
        let sent_ms = self.send_batch()?;
        Ok(self.client.receive(sent_ms, &mut self.model, &mut self.summary.counts)?)
    }

    fn send_batch(&mut self) -> Result<u64, Failure> {
        for _ in 0..BATCH {
            let request = self.draws.next(&mut self.model);
            self.client.add(request, &self.model);
        }
        let sent = self.client.send();
        Ok(sent.map_err(BatchError::Io)?)
    }

    /// Reads keys and checks their values.
    fn read(&mut self, keys: &[u32]) -> Result<(), Failure> {
        for &key in keys {
            self.client.add(Request::Get { key }, &self.model);
        }
        let sent_ms = self.client.send().map_err(BatchError::Io)?;
        Ok(self.client.receive(sent_ms, &mut self.model, &mut self.summary.counts)?)
    }

    /// Kills the server while it executes a batch, starts it again, and reads the keys that were
    /// changed last.
    fn kill(&mut self) -> Result<(), Failure> {
        let sent_ms = self.send_batch()?;
        self.server.kill();
        match self.client.receive(sent_ms, &mut self.model, &mut self.summary.counts) {
            // Requests without a reply may or may not have been executed.
            Ok(()) | Err(BatchError::Io(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.server.start_again()?;
        self.client = Client::new(self.server.connect()?, self.start)?;
        self.summary.kills += 1;
        self.is_recovering = true;
        self.read_recent()
    }

    fn read_recent(&mut self) -> Result<(), Failure> {
        let recent = self.draws.recent.clone();
        recent.chunks(BATCH as usize).try_for_each(|keys| self.read(keys))
    }

    /// Adds the time and the number of kills to the message of a failed check.
    fn with_context(&self, failure: Failure) -> Failure {
        let Failure::Check(message) = failure else { return failure };
        let (kills, seconds) = (self.summary.kills, self.start.elapsed().as_secs_f64());
        let recovering = if self.is_recovering { ", still recovering" } else { "" };
        Failure::Check(format!("{message}\n  after {seconds:.1} s, kills: {kills}{recovering}"))
    }

    /// Compares memory, disk and counters of the server with the budgets.
    fn sample(&mut self) -> Result<(), Failure> {
        self.summary.samples = self.start.elapsed().as_secs() + 1;
        let info = self.client.info("disk")?;
        let resident = self.server.resident_bytes()?;
        let disk = self.server.disk_bytes()?;
        let Summary { resident_limit, disk_limit, .. } = self.summary;
        self.summary.max_resident_bytes = self.summary.max_resident_bytes.max(resident);
        self.summary.max_disk_bytes = self.summary.max_disk_bytes.max(disk);
        let failed = [
            (resident > resident_limit, "the server exceeds its memory"),
            (disk > disk_limit, "the files of the server exceed its disk"),
            (field(&info, "disk_bad_records") > 0, "the server found damaged records"),
            (field(&info, "disk_off") > 0, "the server uses its disk no more"),
        ];
        if let Some((_, what)) = failed.into_iter().find(|(is_failed, _)| *is_failed) {
            return Err(Failure::Check(format!(
                "{what}: {resident} resident bytes without \
                 pages of files, of {resident_limit} (budget {}, 3 %, and the documented \
                 overhead); {disk} bytes of files, of {disk_limit}\n{}",
                self.test.memory,
                info.trim_end(),
            )));
        }
        if self.is_recovering && field(&info, "disk_recovering") == 0 {
            self.is_recovering = false;
            self.read_recent()?;
        }
        Ok(())
    }
}

/// Returns a number of the reply to `INFO`, or 0 if there is none.
fn field(info: &str, name: &str) -> u64 {
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(field, _)| *field == name);
    found.and_then(|(_, value)| value.trim_end().parse().ok()).unwrap_or(0)
}

fn progress_bar(seconds: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("soak [{wide_bar}] {pos}/{len} s, {eta} left {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    ProgressBar::new(seconds).with_style(style)
}

/// Draws requests: reads mostly of frequent keys, changes of all keys.
struct Requests {
    keys: u32,
    random: Random,
    frequent: Draws,
    /// The last changed keys. The oldest is replaced first.
    recent: Vec<u32>,
    next_recent: usize,
}

impl Requests {
    fn new(keys: u32, seed: u64) -> Self {
        let frequent = Draws::new(Distribution::Zipf(0.99), keys, seed);
        let random = Random::new(seed);
        Self { keys, random, frequent, recent: Vec::new(), next_recent: 0 }
    }

    fn next(&mut self, model: &mut Model) -> Request {
        let kind = self.random.below(100);
        let is_frequent = self.random.below(2) == 0;
        let key = if is_frequent { self.frequent.draw() } else { self.random.below(self.keys) };
        if kind < 45 {
            return Request::Get { key };
        }
        if kind < 50 && !self.recent.is_empty() {
            let at = self.random.below(self.recent.len() as u32) as usize;
            return Request::Get { key: self.recent[at] };
        }
        self.add_recent(key);
        if kind < 57 {
            return Request::Remove { key };
        }
        let ttl_ms = match kind {
            57..65 => MIN_TTL_MS + self.random.below(MAX_TTL_MS - MIN_TTL_MS),
            _ => 0,
        };
        Request::Set { key, version: model.next_version(key), ttl_ms: ttl_ms.into() }
    }

    fn add_recent(&mut self, key: u32) {
        if self.recent.len() < RECENT_KEYS {
            return self.recent.push(key);
        }
        self.recent[self.next_recent] = key;
        self.next_recent = (self.next_recent + 1) % RECENT_KEYS;
    }
}

impl Summary {
    fn text(&self) -> String {
        let Counts { reads, hits, writes, removals, written_bytes } = self.counts;
        format!(
            "{} s, {} kills, {} samples: all checks passed\n\
             {} reads, of which {} hits; {} writes of {}; {} removals\n\
             resident at most {} of {}, files at most {} of {}\n",
            self.seconds,
            self.kills,
            self.samples,
            grouped(reads),
            grouped(hits),
            grouped(writes),
            bytes(written_bytes),
            grouped(removals),
            bytes(self.max_resident_bytes),
            bytes(self.resident_limit),
            bytes(self.max_disk_bytes),
            bytes(self.disk_limit),
        )
    }

    fn json(&self) -> String {
        let Counts { reads, hits, writes, removals, written_bytes } = self.counts;
        format!(
            "{{\"seconds\":{},\"reads\":{reads},\"hits\":{hits},\"writes\":{writes},\
             \"removals\":{removals},\"written_bytes\":{written_bytes},\"kills\":{},\
             \"samples\":{},\"max_resident_bytes\":{},\"resident_limit_bytes\":{},\
             \"max_disk_bytes\":{},\"disk_limit_bytes\":{}}}\n",
            self.seconds,
            self.kills,
            self.samples,
            self.max_resident_bytes,
            self.resident_limit,
            self.max_disk_bytes,
            self.disk_limit,
        )
    }
}
