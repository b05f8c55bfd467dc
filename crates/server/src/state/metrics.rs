//! What the threads of a server count: calls, errors and times of each command, bytes, connections.
//!
//! Each thread writes to a [`Metrics`] of its own and takes no lock to do so; [`Totals`] adds them
//! up. `INFO`, `LATENCY HISTOGRAM` and the page of metrics all read totals, and so agree.
//!
//! Reading the clock takes longer than many commands do. So commands over one key, whose requests
//! and replies are short, are timed in groups: the clock is read after [`GROUP`] of them, and each
//! is given its share. All others are timed alone, and so is everything while the slow log wants
//! commands below [`ALONE_BELOW_US`].

use super::IterationTotals;
use super::Settings;
use super::catalog::Catalog;
use super::counter::Counter;
use super::histogram::Histogram;
use super::iterations::Iterations;
use super::other_requests;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// How many short commands one reading of the clock may be for.
const GROUP: usize = 16;
/// A request or reply up to so many bytes is short.
const SHORT_LEN: usize = 4 << 10;
/// A slow log for shorter times than this needs each command's own.
const ALONE_BELOW_US: i64 = 1000;

/// What one thread counts. It alone writes here, except for errors.
#[derive(Debug)]
pub struct Metrics {
    /// The clock's readings are counted from here.
    start: Instant,
    /// When the clock was read last, in nanoseconds; none while nothing is being executed.
    read_ns: Counter,
    running: Counter,
    /// The numbers of the commands since then.
    group: [Counter; GROUP],
    group_len: Counter,
    commands: Box<[OnceLock<Box<CommandMetrics>>]>,
    received: Counter,
    sent: Counter,
    connections: Counter,
    output_limits: Counter,
    iterations: Iterations,
    /// By code. Rare enough for a lock, which only readers contend for.
    errors: Mutex<BTreeMap<String, u64>>,
}

#[derive(Debug, Default)]
struct CommandMetrics {
    calls: Counter,
    failed: Counter,
    rejected: Counter,
    ns: Counter,
    /// The part of `ns` that is counted in `times`, too: tracking can be switched off.
    tracked_ns: Counter,
    times: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            read_ns: Counter::default(),
            running: Counter::default(),
            group: Default::default(),
            group_len: Counter::default(),
            commands: (0..other_requests::COUNT).map(|_| OnceLock::new()).collect(),
            received: Counter::default(),
            sent: Counter::default(),
            connections: Counter::default(),
            output_limits: Counter::default(),
            iterations: Iterations::default(),
            errors: Mutex::default(),
        }
    }
}

impl Metrics {
    /// Counts bytes that were received.
    pub fn add_received(&self, bytes: u64) {
        self.received.add(bytes);
    }

    /// Counts bytes that were sent.
    pub fn add_sent(&self, bytes: u64) {
        self.sent.add(bytes);
    }

    /// Counts a connection that was accepted.
    pub fn add_connection(&self) {
        self.connections.add(1);
    }

    /// Counts a client that must take some of its answers before it gets more.
    pub fn add_output_limit(&self) {
        self.output_limits.add(1);
    }

    /// A turn of the thread's event loop begins: it was woken.
    pub fn begin_iteration(&self) {
        self.iterations.begin(self.now_ns());
    }

    /// A turn of the thread's event loop is over: it waits for what comes next.
    pub fn end_iteration(&self) {
        self.iterations.end(self.now_ns());
    }

    /// The turns of the thread's event loop.
    pub(crate) fn iterations(&self) -> IterationTotals {
        self.iterations.totals()
    }

    /// The end of a batch of requests: commands that are not timed yet are timed now, and what
    /// comes before the next command is no command's time.
    pub fn settle(&self, settings: &Settings) {
        self.read_clock(settings);
        self.running.set(0);
    }

    /// Whether a request so long that is over one key can be timed in a group.
    #[inline]
    pub(crate) fn is_short_len(request_len: usize, settings: &Settings) -> bool {
        request_len <= SHORT_LEN && !(0..ALONE_BELOW_US).contains(&settings.slower_than_us())
    }

    /// A command begins.
    #[inline]
    pub(crate) fn begin(&self, short: bool, settings: &Settings) {
        if self.running.get() == 0 {
            self.running.set(1);
            self.read_ns.set(self.now_ns());
        } else if !short && self.group_len.get() > 0 {
            self.read_clock(settings);
        }
    }

    /// A command is done. Answers the nanoseconds it took if they were taken for it: where there
    /// are others in its group, they are counted in, but what took long was this one.
    #[inline]
    pub(crate) fn end(
        &self,
        number: usize,
        (short, reply_len): (bool, usize),
        settings: &Settings,
    ) -> Option<u64> {
        let len = self.group_len.get() as usize;
        self.group[len % GROUP].set(number as u64);
        self.group_len.set(len as u64 + 1);
        let alone = !short || reply_len > SHORT_LEN;
        if alone || len + 1 >= GROUP {
            let ns = self.read_clock(settings);
            return alone.then_some(ns);
        }
        None
    }

    /// Reads the clock, and gives each command since the last reading its share.
    fn read_clock(&self, settings: &Settings) -> u64 {
        let len = (self.group_len.get() as usize).min(GROUP);
        if len == 0 {
            return 0;
        }
        let now = self.now_ns();
        let elapsed = now.saturating_sub(self.read_ns.get());
        let share = elapsed / len as u64;
        let tracked = settings.tracks_latency();
        for same in self.group[..len].chunk_by(|one, next| one.get() == next.get()) {
            let Some(metrics) = self.command(same[0].get() as usize) else { continue };
            let count = same.len() as u64;
            metrics.calls.add(count);
            metrics.ns.add(share * count);
            if tracked {
                metrics.times.add(share, count);
                metrics.tracked_ns.add(share * count);
            }
        }
        self.read_ns.set(now);
        self.group_len.set(0);
        elapsed
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn command(&self, number: usize) -> Option<&CommandMetrics> {
        self.commands.get(number).map(|metrics| &**metrics.get_or_init(Box::default))
    }

    /// Returns the calls of all commands.
    pub(crate) fn calls(&self) -> u64 {
        let commands = self.commands.iter().filter_map(OnceLock::get);
        commands.map(|command| command.calls.get()).sum()
    }

    /// Returns the bytes that were received, and those that were sent.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.received.get(), self.sent.get())
    }

    /// Counts an answer that is an error: of a command that was refused before it ran, or of one
    /// that ran, or of none that is known.
    pub(crate) fn error(&self, text: &str, number: Option<usize>, ran: bool) {
        let code = text.split(' ').next().unwrap_or_default();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match errors.get_mut(code) {
            Some(count) => *count += 1,
            None => drop(errors.insert(code.to_owned(), 1)),
        }
        drop(errors);
        if let Some(metrics) = number.and_then(|number| self.command(number)) {
            if ran { &metrics.failed } else { &metrics.rejected }.add(1);
        }
    }
}

/// What threads have counted, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Connections accepted.
    pub connections: u64,
    /// How often a client had to take some of its answers before it got more.
    pub output_limits: u64,
    /// Of each command, by its name, those that were called or refused.
    pub commands: BTreeMap<&'static str, CommandTotals>,
    /// Errors by their code.
    pub errors: BTreeMap<String, u64>,
}

/// What threads have counted of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTotals {
    /// How often it ran.
    pub calls: u64,
    /// How often it answered an error.
    pub failed: u64,
    /// How often it was refused, and did not run.
    pub rejected: u64,
    /// The time it took in all.
    pub ns: u64,
    /// The part of that time that is counted in `times`.
    pub tracked_ns: u64,
    /// How often it took how long, by buckets: see [`bucket_end_ns`].
    pub times: Vec<u64>,
}

/// The nanoseconds up to which the times of a bucket go, for that of [`CommandTotals::times`].
pub fn bucket_end_ns(bucket: usize) -> u64 {
    super::histogram::end_ns(bucket)
}

impl Totals {
    /// Adds what a thread has counted.
    pub(crate) fn add(&mut self, metrics: &Metrics, catalog: &Catalog) {
        self.received += metrics.received.get();
        self.sent += metrics.sent.get();
        self.connections += metrics.connections.get();
        self.output_limits += metrics.output_limits.get();
        for (name, one) in other_requests::names(catalog).zip(&metrics.commands) {
            let Some(one) = one.get() else { continue };
            let sum = self.commands.entry(name).or_default();
            sum.calls += one.calls.get();
            sum.failed += one.failed.get();
            sum.rejected += one.rejected.get();
            sum.ns += one.ns.get();
            sum.tracked_ns += one.tracked_ns.get();
            sum.times.resize(super::histogram::BUCKETS, 0);
            sum.times.iter_mut().zip(one.times.counts()).for_each(|(sum, count)| *sum += count);
        }
        let errors = metrics.errors.lock().unwrap_or_else(PoisonError::into_inner);
        for (code, count) in &*errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
    }

    /// What was counted since `earlier`.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        self.received -= earlier.received.min(self.received);
        self.sent -= earlier.sent.min(self.sent);
        self.connections -= earlier.connections.min(self.connections);
        self.output_limits -= earlier.output_limits.min(self.output_limits);
        for (name, before) in &earlier.commands {
            let Some(now) = self.commands.get_mut(name) else { continue };
            now.calls = now.calls.saturating_sub(before.calls);
            now.failed = now.failed.saturating_sub(before.failed);
            now.rejected = now.rejected.saturating_sub(before.rejected);
            now.ns = now.ns.saturating_sub(before.ns);
            now.tracked_ns = now.tracked_ns.saturating_sub(before.tracked_ns);
            let times = now.times.iter_mut().zip(&before.times);
            times.for_each(|(now, before)| *now = now.saturating_sub(*before));
        }
        self.commands.retain(|_, one| one.calls + one.rejected + one.failed > 0);
        for (code, before) in &earlier.errors {
            let Some(now) = self.errors.get_mut(code) else { continue };
            *now = now.saturating_sub(*before);
        }
        self.errors.retain(|_, count| *count > 0);
        self
    }

    /// Calls of all commands.
    pub fn calls(&self) -> u64 {
        self.commands.values().map(|command| command.calls).sum()
    }
}
