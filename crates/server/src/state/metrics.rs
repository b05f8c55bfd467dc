//! Metrics of the worker threads: calls, errors and durations of commands, bytes and connections.
//!
//! Each thread writes to its own [`Metrics`] without locks, and [`Totals`] adds them. `INFO`,
//! `LATENCY HISTOGRAM` and the admin endpoint all read totals, so they agree.
//!
//! Reading the clock takes longer than many commands. So single-key commands with short requests
//! and replies are timed in groups: the clock is read once for up to [`GROUP`] of them, and each
//! counts with an equal share of the time. Other commands are timed one by one; so are all commands
//! while the threshold of the slow log is below [`ALONE_BELOW_US`].

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

/// Maximum short commands that share a reading of the clock.
const GROUP: usize = 16;
/// Maximum bytes of a short request or reply.
const SHORT_LEN: usize = 4 << 10;
/// With a threshold of the slow log below this, in microseconds, each command is timed alone.
const ALONE_BELOW_US: i64 = 1000;

/// The metrics of one worker thread. Only that thread may call methods that count.
#[derive(Debug)]
pub struct Metrics {
    /// The origin of the thread's clock.
    start: Instant,
    /// The last reading of the clock, in nanoseconds. Valid while commands are being executed.
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
    /// By code. Errors are so rare that a lock is cheap, and only readers contend for it.
    errors: Mutex<BTreeMap<String, u64>>,
}

#[derive(Debug, Default)]
struct CommandMetrics {
    calls: Counter,
    failed: Counter,
    rejected: Counter,
    ns: Counter,
    /// The part of `ns` that is in `times`, since tracking can be disabled.
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
    /// Counts received bytes.
    pub fn add_received(&self, bytes: u64) {
        self.received.add(bytes);
    }

    /// Counts sent bytes.
    pub fn add_sent(&self, bytes: u64) {
        self.sent.add(bytes);
    }

    /// Counts an accepted connection.
    pub fn add_connection(&self) {
        self.connections.add(1);
    }

    /// Counts that a client was paused: it must read replies before more requests are executed.
    pub fn add_output_limit(&self) {
        self.output_limits.add(1);
    }

    /// Begins an iteration of the event loop. Call it after the wait for events.
    pub fn begin_iteration(&self) {
        self.iterations.begin(self.now_ns());
    }

    /// Ends an iteration of the event loop. Call it before the wait for events.
    pub fn end_iteration(&self) {
        self.iterations.end(self.now_ns());
    }

    /// Returns the iterations of the thread's event loop.
    pub(crate) fn iterations(&self) -> IterationTotals {
        self.iterations.totals()
    }

    /// Ends a batch: times the commands that were not timed yet. The time from here to the next
    /// command is not counted.
    pub fn settle(&self, settings: &Settings) {
        self.read_clock(settings);
        self.running.set(0);
    }

    /// Returns whether a request of this length over one key is timed in a group.
    #[inline]
    pub(crate) fn is_short_len(request_len: usize, settings: &Settings) -> bool {
        request_len <= SHORT_LEN && !(0..ALONE_BELOW_US).contains(&settings.slower_than_us())
    }

    /// Begins a command.
    #[inline]
    pub(crate) fn begin(&self, short: bool, settings: &Settings) {
        if self.running.get() == 0 {
            self.running.set(1);
            self.read_ns.set(self.now_ns());
        } else if !short && self.group_len.get() > 0 {
            self.read_clock(settings);
        }
    }

    /// Ends a command. If it was not part of a group, returns the nanoseconds since the clock was
    /// read. They include short commands that waited to be timed before it, which took much less.
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

    /// Reads the clock, and divides the time since the last reading among the commands.
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

    /// Returns received and sent bytes.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.received.get(), self.sent.get())
    }

    /// Counts an error reply: of a command that ran, or that was refused, or that is unknown.
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

/// The sums of the metrics of all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes received from clients.
    pub received: u64,
    /// Bytes sent to clients.
    pub sent: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Times that a client was paused, since it had to read replies first.
    pub output_limits: u64,
    /// Commands that were called or refused, by name, such as `get`, `client|list` and
    /// `memcached|mg`.
    pub commands: BTreeMap<&'static str, CommandTotals>,
    /// Error replies by code, which is the first word of the text, such as `WRONGPASS`.
    pub errors: BTreeMap<String, u64>,
}

/// The metrics of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTotals {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that replied with an error.
    pub failed: u64,
    /// The number of requests that were refused before they ran.
    pub rejected: u64,
    /// The total duration of the calls in nanoseconds.
    pub ns: u64,
    /// The part of `ns` that is counted in `times`: durations of calls while `latency-tracking` was
    /// on.
    pub tracked_ns: u64,
    /// The number of calls by duration: see [`bucket_end_ns`].
    pub times: Vec<u64>,
}

/// Returns the upper bound of a bucket of [`CommandTotals::times`] in nanoseconds, exclusive.
pub fn bucket_end_ns(bucket: usize) -> u64 {
    super::histogram::end_ns(bucket)
}

impl Totals {
    /// Adds the metrics of a thread.
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

    /// Returns how many requests this node of a cluster has refused, by kind: those with these
    /// errors.
    pub(crate) fn refused_by_cluster(&self) -> [(&'static str, u64); 3] {
        ["moved", "crossslot", "clusterdown"].map(|kind| {
            let count = self.errors.get(&kind.to_ascii_uppercase());
            (kind, count.copied().unwrap_or_default())
        })
    }

    /// Returns the difference from earlier totals.
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

    /// Returns the number of calls of all commands.
    pub fn calls(&self) -> u64 {
        self.commands.values().map(|command| command.calls).sum()
    }
}
