//! What all connections share.

use super::catalog::Catalog;
use super::clients::Clients;
use super::debug_access::Debugging;
use super::iterations::IterationTotals;
use super::metrics::{Metrics, Totals};
use super::rates::{PerSecond, Rates, Sample};
use super::settings::Settings;
use super::slowlog::SlowLog;
use super::users::Users;
use super::value_limit::ValueLimit;
use crate::log;
use nuthatch_cache::{Cache, Stats};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Writes settings to the file that they came from: those that can change, by Redis's names, with
/// their values as texts.
pub struct Rewrite(Box<Rewriting>);

type Rewriting = dyn Fn(&[(&'static str, String)]) -> Result<(), String> + Send + Sync;

impl Rewrite {
    /// What `CONFIG REWRITE` is to do. It answers what went wrong.
    pub fn new(
        rewrite: impl Fn(&[(&'static str, String)]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Box::new(rewrite))
    }

    pub(crate) fn run(&self, settings: &[(&'static str, String)]) -> Result<(), String> {
        (self.0)(settings)
    }
}

impl std::fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rewrite")
    }
}

/// What another part of the program counts, in Prometheus's text.
pub struct Exposition(Box<dyn Fn() -> String + Send + Sync>);

impl Exposition {
    /// Asks this for the text, whenever somebody wants to know.
    pub fn new(text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Box::new(text))
    }

    /// The text at this moment.
    pub(crate) fn text(&self) -> String {
        (self.0)()
    }
}

impl std::fmt::Debug for Exposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exposition")
    }
}

/// When connections take more than this part of the budget, they must make do with less.
const HELD_RATIO: u64 = 2;

/// When they take no more than this part again, nothing needs to be spared.
const SPARE_RATIO: u64 = 4;

/// When connections take much memory, one that sends a request longer than this is closed, or
/// requests that wait for `EXEC`.
const MAX_INPUT_WHEN_SHORT: usize = 64 << 10;

/// Limits of such requests while items and connections use the whole budget and nothing may be
/// evicted: together this part of the budget, and at least this many bytes for each connection.
const INPUT_RATIO_WHEN_EXHAUSTED: u64 = 8;
const MIN_INPUT_WHEN_SHORT: usize = 4 << 10;

/// The allocator returns freed memory to the system once connections hold less than at their peak
/// by this part of the budget, and by this many bytes at least.
const FREED_RATIO: u64 = 32;
const MIN_FREED: u64 = 4 << 20;

/// The same for so many quarters of the budget, with long values that are being received.
const MAX_IN_PLACE_QUARTERS: u64 = 3;

/// Of the budget, a value may take so many eighths that is gathered with its request.
const MAX_COPIED_EIGHTHS: u64 = 3;

/// However little memory there is, an answer may be so long.
const MIN_REPLY_LEN: u64 = 64 << 10;

/// The server, as commands see it.
#[derive(Debug)]
pub struct Server {
    /// The cache.
    pub cache: Arc<Cache>,
    /// All commands.
    pub(crate) catalog: &'static Catalog,
    /// What `CONFIG` changes.
    pub settings: Settings,
    /// All connections.
    pub clients: Clients,
    /// The port that is told to clients.
    pub port: u16,
    /// What its threads wait with, which clients are told: empty if there are none.
    pub event_loop: &'static str,
    /// Whether the cache evicts, which clients are told as its policy.
    pub evicts: bool,
    /// Who may use `DEBUG`.
    pub debug: Debugging,
    /// What `CONFIG GET` tells besides: settings that stay as they are, by Redis's names.
    pub fixed_settings: Vec<(&'static str, String)>,
    /// What `CONFIG REWRITE` does, where there is a file of settings.
    pub rewrite: Option<Rewrite>,
    /// What other parts of the program count, in Prometheus's text: the admin port tells it.
    pub extra_metrics: Vec<Exposition>,
    /// Whether the default user must keep a password, since others can reach this machine.
    pub must_keep_password: bool,
    pub(crate) slowlog: SlowLog,
    pub(crate) started: Instant,
    /// Tells this run of the server from others.
    pub(crate) run_id: String,
    /// Whether threads are to stop.
    stopping: AtomicBool,
    /// When connections are closed although something is under way, once the server drains.
    drains_until: OnceLock<Instant>,
    users: RwLock<Users>,
    /// How often the users were replaced.
    users_changes: AtomicU64,
    threads: Mutex<Vec<Arc<Metrics>>>,
    /// Bytes that connections and buffers take of the budget.
    held: AtomicIsize,
    /// Maximum of that since the allocator last returned freed memory to the system.
    peak_held: AtomicU64,
    /// Rates over the last second.
    rates: Mutex<Rates>,
    /// What was counted when `CONFIG RESETSTAT` was called.
    before: Mutex<(Totals, Stats)>,
}

impl Server {
    /// A server of this cache, with these commands.
    pub(crate) fn with_catalog(cache: Arc<Cache>, catalog: &'static Catalog) -> Self {
        let random = RandomState::new();
        let words = (0..3).map(|number| format!("{:016x}", random.hash_one(number)));
        let mut run_id: String = words.collect();
        run_id.truncate(40);
        Self {
            cache,
            catalog,
            settings: Settings::default(),
            clients: Clients::default(),
            port: 0,
            event_loop: "",
            evicts: true,
            debug: Debugging::default(),
            fixed_settings: Vec::new(),
            rewrite: None,
            extra_metrics: Vec::new(),
            must_keep_password: false,
            slowlog: SlowLog::default(),
            started: Instant::now(),
            run_id,
            stopping: AtomicBool::new(false),
            drains_until: OnceLock::new(),
            users: RwLock::default(),
            users_changes: AtomicU64::new(0),
            threads: Mutex::default(),
            held: AtomicIsize::new(0),
            peak_held: AtomicU64::new(0),
            rates: Mutex::default(),
            before: Mutex::default(),
        }
    }

    /// The same server with these users.
    #[must_use]
    pub fn with_users(self, users: Users) -> Self {
        Self { users: RwLock::new(users), ..self }
    }

    /// Makes whoever serves stop, and wakes up those who sleep.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Begins to drain, for at most so long. Returns false if it has begun before.
    pub(crate) fn drain(&self, patience: Duration) -> bool {
        let mut begins = false;
        self.drains_until.get_or_init(|| {
            begins = true;
            // Logged before a thread sees it: the process may end at once.
            log::draining(patience);
            let now = Instant::now();
            // A time that is too far for the clock is a day.
            now.checked_add(patience).unwrap_or(now + Duration::from_hours(24))
        });
        begins
    }

    /// Returns when draining ends at the latest, if it has begun.
    pub(crate) fn drains_until(&self) -> Option<Instant> {
        self.drains_until.get().copied()
    }

    /// Returns whether the server drains or stops.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_stopping() || self.drains_until().is_some()
    }

    /// Replaces all users. Connections adopt the rights of theirs, or are closed: see
    /// [`Client::renew_user`](super::Client::renew_user).
    pub(crate) fn replace_users(&self, users: Users) {
        *self.users_mut() = users;
        self.users_changes.fetch_add(1, Ordering::Release);
    }

    /// Returns how often the users were replaced.
    pub(crate) fn users_changes(&self) -> u64 {
        self.users_changes.load(Ordering::Acquire)
    }

    /// Whether whoever serves is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The longest value in bytes: what the cache can keep, or a client may send.
    pub fn max_value_len(&self) -> usize {
        self.value_limit().0
    }

    /// Returns the maximum length of a value in bytes, and what sets it.
    pub(crate) fn value_limit(&self) -> (usize, ValueLimit) {
        let setting = usize::try_from(self.settings.max_bulk_len()).unwrap_or(usize::MAX);
        let cache = self.cache.max_value_len();
        if setting <= cache {
            (setting, ValueLimit::Setting)
        } else {
            (cache, ValueLimit::of_cache(cache))
        }
    }

    /// Returns the maximum length of a value that is copied from its request, and so needs its
    /// memory twice.
    pub(crate) fn gathered_limit(&self) -> (usize, ValueLimit) {
        let copied = self.cache.memory() / 8 * MAX_COPIED_EIGHTHS;
        let copied = usize::try_from(copied).unwrap_or(usize::MAX);
        let (max, limit) = self.value_limit();
        if copied < max { (copied, ValueLimit::CopiedMemory) } else { (max, limit) }
    }

    /// Counts memory that connections and buffers take of the budget, or give back.
    pub(crate) fn hold(&self, bytes: isize) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.cache.reserve(u64::try_from(held).unwrap_or(0));
    }

    /// Bytes that connections and buffers take.
    pub(crate) fn held(&self) -> u64 {
        u64::try_from(self.held.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns whether connections have freed so much memory that the allocator should return it to
    /// the system.
    pub(crate) fn has_freed_memory(&self) -> bool {
        let (held, peak) = (self.held(), self.peak_held.load(Ordering::Relaxed));
        if held > peak {
            self.peak_held.fetch_max(held, Ordering::Relaxed);
        }
        self.is_much(peak.saturating_sub(held))
    }

    /// Begins a new peak. Returns false if another thread has done so.
    pub(crate) fn begin_peak(&self) -> bool {
        let held = self.held();
        self.is_much(self.peak_held.swap(held, Ordering::Relaxed).saturating_sub(held))
    }

    fn is_much(&self, freed: u64) -> bool {
        freed >= (self.cache.memory() / FREED_RATIO).max(MIN_FREED)
    }

    /// Returns whether connections must make do with less memory: they take much of it, or items
    /// and connections use the whole budget and nothing may be evicted.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.holds_much() || self.cache.is_exhausted()
    }

    /// Returns two limits in bytes of the requests of one connection that are incomplete or wait
    /// for `EXEC`: beyond the first, the value that is arriving is discarded, and beyond the
    /// second, the connection is closed. Both apply while connections take much memory.
    ///
    /// While items and connections use the whole budget and nothing may be evicted, the first is an
    /// equal share of an eighth of the budget.
    pub(crate) fn input_limits(&self) -> (usize, usize) {
        let max = if self.holds_much() { MAX_INPUT_WHEN_SHORT } else { usize::MAX };
        if !self.cache.is_exhausted() {
            return (max, max);
        }
        let share = self.cache.memory() / INPUT_RATIO_WHEN_EXHAUSTED;
        let share = share / (self.clients.len() as u64).max(1);
        ((share as usize).clamp(MIN_INPUT_WHEN_SHORT, MAX_INPUT_WHEN_SHORT), max)
    }

    /// Returns whether connections take much of the memory.
    pub(crate) fn holds_much(&self) -> bool {
        self.room_held() == 0
    }

    /// Bytes that connections may still take, before they must make do with less.
    fn room_held(&self) -> u64 {
        let (memory, held) = (self.cache.memory(), self.held());
        let max = memory / HELD_RATIO;
        let with_in_place = memory / 4 * MAX_IN_PLACE_QUARTERS;
        max.min(with_in_place.saturating_sub(self.cache.pending_bytes())).saturating_sub(held)
    }

    /// Whether a value of so many bytes may be received into the cache before its request is whole:
    /// connections must keep some room.
    pub(crate) fn may_receive_in_place(&self, len: usize) -> bool {
        let taken = self.held() + self.cache.pending_bytes() + len as u64;
        taken < self.cache.memory() / 4 * MAX_IN_PLACE_QUARTERS && !self.is_short_of_memory()
    }

    /// Whether there is room for what connections may want later. In between, all stays as it is.
    pub(crate) fn has_memory_to_spare(&self) -> bool {
        self.held() <= self.cache.memory() / SPARE_RATIO
    }

    /// The longest answer to one request in bytes, as much as connections may still take. One that
    /// may become longer by far than its request is held to that.
    pub fn max_reply_len(&self) -> usize {
        usize::try_from(self.room_held().max(MIN_REPLY_LEN)).unwrap_or(usize::MAX)
    }

    /// Where a thread counts. Each thread takes its own, once.
    pub fn thread(&self) -> Arc<Metrics> {
        let metrics = Arc::new(Metrics::default());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(Arc::clone(&metrics));
        metrics
    }

    /// What all threads have counted since the server started.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().for_each(|metrics| totals.add(metrics, self.catalog));
        totals
    }

    /// The turns of each thread's event loop, in the order in which threads began to count.
    pub fn iterations(&self) -> Vec<IterationTotals> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().map(|metrics| metrics.iterations()).collect()
    }

    /// Takes a sample of what is counted, for rates. Each thread does so once in a second in which
    /// it is woken, before it executes anything.
    pub(crate) fn sample_rates(&self) {
        // If another thread is at it, one sample is enough.
        if let Ok(mut rates) = self.rates.try_lock() {
            let now = Instant::now();
            rates.sample(now, || self.sample(now));
        }
    }

    /// Returns what was counted for each second of about the last one.
    pub(crate) fn rates(&self) -> PerSecond {
        let now = self.sample(Instant::now());
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).until(&now)
    }

    fn sample(&self, at: Instant) -> Sample {
        let stats = self.cache.stats();
        let misses = stats.misses_absent + stats.misses_expired + stats.misses_evicted;
        let hits = stats.hits;
        let mut sample = Sample { at, calls: 0, received: 0, sent: 0, hits, misses };
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for metrics in &*threads {
            let (received, sent) = metrics.traffic();
            sample.calls += metrics.calls();
            sample.received += received;
            sample.sent += sent;
        }
        sample
    }

    /// How many requests went to the slow log since the server started, and how many are in it.
    pub fn slow_requests(&self) -> (u64, u64) {
        self.slowlog.counts()
    }

    /// How long the server has been there.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// What was counted since `CONFIG RESETSTAT`.
    pub(crate) fn totals_since_reset(&self) -> Totals {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        self.totals().since(&before.0)
    }

    /// What the cache has counted now, and what it had at `CONFIG RESETSTAT`.
    pub(crate) fn stats(&self) -> (Stats, Stats) {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        (self.cache.stats(), before.1)
    }

    /// Counts anew from here on, for those who ask through commands.
    pub(crate) fn reset_counts(&self) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        *before = (self.totals(), self.cache.stats());
    }

    pub(crate) fn users(&self) -> RwLockReadGuard<'_, Users> {
        self.users.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn users_mut(&self) -> RwLockWriteGuard<'_, Users> {
        self.users.write().unwrap_or_else(PoisonError::into_inner)
    }
}
