//! The state that all connections share.

use super::big_keys::{BigKeyReport, BigKeys};
use super::catalog::Catalog;
use super::clients::{ClientSummary, Clients};
use super::debug_access::Debugging;
use super::hot_keys::{HotKeys, Sampler};
use super::iterations::IterationTotals;
use super::memcached::ForwardedError;
use super::metrics::{Metrics, Totals};
use super::rates::{PerSecond, Rates, Sample};
use super::settings::Settings;
use super::slowlog::SlowLog;
use super::snapshots::{SnapshotKey, Snapshots};
use super::users::Users;
use super::value_limit::ValueLimit;
use crate::cluster::Cluster;
use crate::compression::Compression;
use crate::log;
use crate::warm_restart::{RestoreProgress, WarmRestart};
use nuthatch_cache::{Cache, Guard, Stats};
use nuthatch_listen::LiveTable;
use nuthatch_tiered::TieredCache;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// The function that `CONFIG REWRITE` calls: it writes the changeable settings, by their Redis
/// names, to the settings file.
pub struct Rewrite(Box<Rewriting>);

type Rewriting = dyn Fn(&[(&'static str, String)]) -> Result<(), String> + Send + Sync;

impl Rewrite {
    /// Creates it from a function. If the function fails, it returns the text of the error.
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

/// A function that returns metrics of another part of the program, in the Prometheus text format.
/// The admin endpoint calls it for each request and appends the text to its own metrics.
pub struct Exposition(Box<dyn Fn() -> String + Send + Sync>);

impl Exposition {
    /// Creates it from a function that returns the text.
    pub fn new(text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Box::new(text))
    }

    /// Returns the current text.
    pub(crate) fn text(&self) -> String {
        (self.0)()
    }
}

impl std::fmt::Debug for Exposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exposition")
    }
}

/// A function that returns tables of another part of the program for the live page.
pub struct LiveTables(Box<dyn Fn() -> Vec<LiveTable> + Send + Sync>);

impl LiveTables {
    /// Creates it from a function that returns the tables.
    pub fn new(tables: impl Fn() -> Vec<LiveTable> + Send + Sync + 'static) -> Self {
        Self(Box::new(tables))
    }

    /// Returns the current tables.
    pub(crate) fn tables(&self) -> Vec<LiveTable> {
        (self.0)()
    }
}

impl std::fmt::Debug for LiveTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LiveTables")
    }
}

/// Returns whether the client may execute the RESP command that a request corresponds to, with
/// these keys.
pub(crate) type MayExecute<'a> = dyn Fn(&str, &[&[u8]]) -> bool + 'a;

/// Executes requests of memcached that other nodes of the cluster forward.
pub(crate) trait ForwardedRequests: std::fmt::Debug + Send + Sync {
    /// Executes the request of a line with a value, which is empty for most. Returns its reply.
    fn execute(
        &self,
        place: (&Guard<'_>, &Server),
        is_permitted: bool,
        may: &MayExecute<'_>,
        request: (&[u8], &[u8]),
    ) -> Result<Vec<u8>, ForwardedError>;

    /// Returns the reply to a request for which there is no memory even after the guard was
    /// renewed.
    fn out_of_memory(
        &self,
        place: (&Guard<'_>, &Server),
        request: (&[u8], &[u8]),
    ) -> Option<Vec<u8>>;
}

/// Connections use much memory if they hold one of this many bytes of the budget, or more.
const HELD_RATIO: u64 = 2;

/// Connections use little memory again if they hold at most one of this many bytes of the budget.
const SPARE_RATIO: u64 = 4;

/// Maximum bytes of the requests of a connection that are incomplete or wait for `EXEC`, while
/// connections use much memory. A connection with more is closed.
const MAX_INPUT_WHEN_SHORT: usize = 64 << 10;

/// The same limit while items and connections use the whole budget and nothing may be evicted: all
/// connections together may use one of this many bytes of the budget.
const INPUT_RATIO_WHEN_EXHAUSTED: u64 = 8;
/// Each connection may use this many bytes even if its share is less.
const MIN_INPUT_WHEN_SHORT: usize = 4 << 10;

/// The allocator returns freed memory to the system once connections hold less than at their peak:
/// by one of this many bytes of the budget.
const FREED_RATIO: u64 = 32;
/// The same difference must have at least this many bytes.
const MIN_FREED: u64 = 4 << 20;

/// Connections use much memory, too, if together with values that are received in place they hold
/// this many quarters of the budget.
const MAX_IN_PLACE_QUARTERS: u64 = 3;

/// Maximum length of a value that is gathered in a buffer with its request and then copied, in
/// eighths of the budget.
const MAX_COPIED_EIGHTHS: u64 = 3;

/// Maximum length of a reply while connections use much memory.
const MIN_REPLY_LEN: u64 = 64 << 10;

/// The state of a server that all connections share: the cache, settings, users and metrics.
#[derive(Debug)]
pub struct Server {
    /// The cache.
    pub cache: Arc<Cache>,
    /// All commands.
    pub(crate) catalog: &'static Catalog,
    /// The changeable settings.
    pub settings: Settings,
    /// All connections.
    pub clients: Clients,
    /// The port that `INFO` reports as `tcp_port`. [`Running::serve`](crate::Running::serve) sets
    /// it to that of the first RESP listener with one, or to 0.
    pub port: u16,
    /// The name of the I/O backend that `INFO` reports as `multiplexing_api`. `Running::serve` sets
    /// it.
    pub event_loop: &'static str,
    /// Whether the cache evicts, for `CONFIG GET maxmemory-policy`. `Running::serve` sets it.
    pub evicts: bool,
    /// Which clients may use `DEBUG`.
    pub debug: Debugging,
    /// Names and values of further settings of `CONFIG GET` that never change, by their Redis
    /// names.
    pub fixed_settings: Vec<(&'static str, String)>,
    /// Implements `CONFIG REWRITE`. `None` if there is no settings file: the command fails then.
    pub rewrite: Option<Rewrite>,
    /// Metrics of other parts of the program, for the admin endpoint.
    pub extra_metrics: Vec<Exposition>,
    /// Tables of other parts of the program, for the live page.
    pub live_reports: Vec<LiveTables>,
    /// Compresses values. By default only those whose client asks for it.
    pub compression: Arc<Compression>,
    /// Keeps the items when the server stops and starts again. `None` if they are lost.
    pub warm_restart: Option<Arc<WarmRestart>>,
    /// The snapshots whose keys are served beside those of the cache, if there are any.
    pub snapshots: Option<Snapshots>,
    /// The cluster of which this server is a node, if there is one.
    pub cluster: Option<Arc<Cluster>>,
    /// Executes requests of memcached that other nodes of the cluster forward.
    pub(crate) forwarded_requests: Option<Arc<dyn ForwardedRequests>>,
    /// The disk tier of the cache, if it has one.
    pub disk: Option<Arc<TieredCache>>,
    /// Maximum time for writing the items of the memory to the disk tier when the server stops.
    pub max_dump_time: Duration,
    /// Whether `CONFIG SET requirepass ""` is refused, since other machines can connect.
    pub must_keep_password: bool,
    pub(crate) slowlog: SlowLog,
    /// When the certificates of its listeners expire, in seconds since 1970.
    certificate_expiry: RwLock<Vec<Option<u64>>>,
    pub(crate) hot_keys: HotKeys,
    pub(crate) big_keys: BigKeys,
    pub(crate) started: Instant,
    /// Identifies this run of the server.
    pub(crate) run_id: String,
    /// Whether threads must stop.
    stopping: AtomicBool,
    /// When remaining connections are closed, once the server drains.
    drains_until: OnceLock<Instant>,
    users: RwLock<Users>,
    /// How often users were replaced.
    users_changes: AtomicU64,
    threads: Mutex<Vec<Arc<Metrics>>>,
    /// Bytes of the budget that connections and buffers hold.
    held: AtomicIsize,
    /// Maximum of `held` since the allocator last returned freed memory to the system.
    peak_held: AtomicU64,
    /// Rates over the last second.
    rates: Mutex<Rates>,
    /// The counters at the last `CONFIG RESETSTAT`.
    before: Mutex<(Totals, Stats)>,
}

impl Server {
    /// Creates a server of this cache with these commands.
    pub(crate) fn with_catalog(cache: Arc<Cache>, catalog: &'static Catalog) -> Self {
        let random = RandomState::new();
        let words = (0..3).map(|number| format!("{:016x}", random.hash_one(number)));
        let mut run_id: String = words.collect();
        run_id.truncate(40);
        let hasher = RandomState::new();
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
            live_reports: Vec::new(),
            compression: Arc::default(),
            warm_restart: None,
            snapshots: None,
            cluster: None,
            forwarded_requests: None,
            disk: None,
            max_dump_time: Duration::from_secs(30),
            must_keep_password: false,
            slowlog: SlowLog::default(),
            certificate_expiry: RwLock::default(),
            hot_keys: HotKeys::new(hasher.clone()),
            big_keys: BigKeys::new(hasher),
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

    /// Replaces the users. By default there is only the user `default`, with all permissions and
    /// without a password.
    #[must_use]
    pub fn with_users(self, users: Users) -> Self {
        Self { users: RwLock::new(users), ..self }
    }

    /// Returns the key of a snapshot that this key stands for; `None` for a key of the cache.
    #[inline]
    pub(crate) fn snapshot_key<'a>(&'a self, key: &'a [u8]) -> Option<SnapshotKey<'a>> {
        self.snapshots.as_ref()?.key(key)
    }

    /// Returns the mode of the server, as Redis calls it.
    pub(crate) fn mode(&self) -> &'static str {
        if self.cluster.is_some() { "cluster" } else { "standalone" }
    }

    /// Returns the number of keys: items of the cache and entries of snapshots.
    pub(crate) fn keys(&self) -> u64 {
        self.cache.len() + self.snapshots.as_ref().map_or(0, Snapshots::entries)
    }

    /// Makes threads stop, and ends `DEBUG SLEEP`.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Begins to drain for at most this time. Returns false if the server drains already.
    pub(crate) fn drain(&self, patience: Duration) -> bool {
        let mut begins = false;
        self.drains_until.get_or_init(|| {
            begins = true;
            // Logged before a thread sees it: the process may end at once.
            log::draining(patience);
            let now = Instant::now();
            // A time beyond the range of the clock becomes a day.
            now.checked_add(patience).unwrap_or(now + Duration::from_hours(24))
        });
        begins
    }

    /// Returns the end of draining, if it has begun.
    pub(crate) fn drains_until(&self) -> Option<Instant> {
        self.drains_until.get().copied()
    }

    /// Returns whether the server drains or stops.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_stopping() || self.drains_until().is_some()
    }

    /// Replaces all users. Connections apply the new permissions or are closed: see
    /// [`Client::renew_user`](super::Client::renew_user).
    pub(crate) fn replace_users(&self, users: Users) {
        *self.users_mut() = users;
        self.users_changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of times that users were replaced.
    pub(crate) fn users_changes(&self) -> u64 {
        self.users_changes.load(Ordering::Acquire)
    }

    /// Returns whether threads must stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Returns the maximum length of a value in bytes: the setting `proto-max-bulk-len`, or that of
    /// the cache if it is less.
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

    /// Returns the maximum length of a value that is copied from the buffer of its request, so that
    /// it needs its memory twice; and what sets the limit.
    pub(crate) fn gathered_limit(&self) -> (usize, ValueLimit) {
        let copied = self.cache.memory() / 8 * MAX_COPIED_EIGHTHS;
        let copied = usize::try_from(copied).unwrap_or(usize::MAX);
        let (max, limit) = self.value_limit();
        if copied < max { (copied, ValueLimit::CopiedMemory) } else { (max, limit) }
    }

    /// Adds `bytes`, which may be negative, to the memory of connections and buffers, and reserves
    /// the sum in the budget of the cache.
    pub(crate) fn hold(&self, bytes: isize) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.cache.reserve(u64::try_from(held).unwrap_or(0));
    }

    /// Reserves what the memory for compression has grown by.
    #[inline]
    pub(crate) fn hold_compression(&self) {
        let change = self.compression.take_memory_change();
        if change != 0 {
            self.hold(change);
        }
    }

    /// Returns the bytes that connections and buffers hold.
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

    /// Resets the peak to the bytes that connections hold now. Returns whether they were far below
    /// it: false if another thread has reset it.
    pub(crate) fn begin_peak(&self) -> bool {
        let held = self.held();
        self.is_much(self.peak_held.swap(held, Ordering::Relaxed).saturating_sub(held))
    }

    fn is_much(&self, freed: u64) -> bool {
        freed >= (self.cache.memory() / FREED_RATIO).max(MIN_FREED)
    }

    /// Returns whether connections must use less memory: they use much, or items and connections
    /// use the whole budget and nothing may be evicted.
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

    /// Returns whether connections use much memory: half of the budget or more, or three quarters
    /// together with values that are received in place.
    pub(crate) fn holds_much(&self) -> bool {
        self.room_held() == 0
    }

    /// Returns the bytes that connections may take in addition before they use much memory.
    fn room_held(&self) -> u64 {
        let (memory, held) = (self.cache.memory(), self.held());
        let max = memory / HELD_RATIO;
        let with_in_place = memory / 4 * MAX_IN_PLACE_QUARTERS;
        max.min(with_in_place.saturating_sub(self.cache.pending_bytes())).saturating_sub(held)
    }

    /// Returns whether a write that finds no memory waits, since items are being written to disk.
    pub(crate) fn waits_for_disk(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.waits_for_disk())
    }

    /// Returns whether a value of this length may be received in place. Some memory must be left
    /// for connections.
    pub(crate) fn may_receive_in_place(&self, len: usize) -> bool {
        let taken = self.held() + self.cache.pending_bytes() + len as u64;
        taken < self.cache.memory() / 4 * MAX_IN_PLACE_QUARTERS && !self.is_short_of_memory()
    }

    /// Returns whether connections use little memory again. While they use more than this and less
    /// than much, saving memory neither starts nor stops.
    pub(crate) fn has_memory_to_spare(&self) -> bool {
        self.held() <= self.cache.memory() / SPARE_RATIO
    }

    /// Returns the maximum length of a reply in bytes, for replies that may be far longer than
    /// their request: what is left of the memory that connections may use, but at least 64 KiB.
    pub fn max_reply_len(&self) -> usize {
        usize::try_from(self.room_held().max(MIN_REPLY_LEN)).unwrap_or(usize::MAX)
    }

    /// Registers a worker thread, and returns its metrics. Each worker thread calls it once.
    pub fn thread(&self) -> Arc<Metrics> {
        let metrics = Arc::new(Metrics::default());
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(Arc::clone(&metrics));
        metrics
    }

    /// Returns the metrics of all threads since the server started, added up.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().for_each(|metrics| totals.add(metrics, self.catalog));
        totals
    }

    /// Returns the iterations of each event loop, in the order in which threads were registered.
    pub fn iterations(&self) -> Vec<IterationTotals> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().map(|metrics| metrics.iterations()).collect()
    }

    /// Takes a sample of counters for rates. Each thread calls it at most once a second, after a
    /// wait and before it executes requests.
    pub(crate) fn sample_rates(&self) {
        // If another thread is taking a sample, one is enough.
        if let Ok(mut rates) = self.rates.try_lock() {
            let now = Instant::now();
            rates.sample(now, || self.sample(now));
        }
    }

    /// Returns the rates of about the last second.
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

    /// Returns the number of slow requests since the server started, and the number in the slow
    /// log.
    pub fn slow_requests(&self) -> (u64, u64) {
        self.slowlog.counts()
    }

    /// Returns the sampler of keys of a worker thread. Each worker thread calls it once.
    pub(crate) fn hot_key_sampler(&self) -> Sampler {
        self.hot_keys.sampler()
    }

    /// Sets when the certificates of its listeners expire, in seconds since 1970.
    pub(crate) fn set_certificate_expiry(&self, times: Vec<Option<u64>>) {
        *self.certificate_expiry.write().unwrap_or_else(PoisonError::into_inner) = times;
    }

    /// Returns when the certificates of its listeners expire, in seconds since 1970.
    pub(crate) fn certificate_expiry(&self) -> Vec<Option<u64>> {
        self.certificate_expiry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Continues the scan for the longest items, and returns those that it has found.
    pub(crate) fn big_keys(&self) -> BigKeyReport {
        self.big_keys.report(&self.cache)
    }

    /// Returns the number of connections, and those that hold the most memory, at most this many.
    pub(crate) fn largest_clients(&self, now_ms: u64, max: usize) -> (usize, Vec<ClientSummary>) {
        self.clients.largest(now_ms, max, self.catalog)
    }

    /// Returns the time since the server started.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the totals since `CONFIG RESETSTAT`.
    pub(crate) fn totals_since_reset(&self) -> Totals {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        self.totals().since(&before.0)
    }

    /// Returns the statistics of the cache now and at `CONFIG RESETSTAT`.
    pub(crate) fn stats(&self) -> (Stats, Stats) {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        (self.cache.stats(), before.1)
    }

    /// Returns the progress of restoring the items of the last run.
    pub(crate) fn restore_progress(&self) -> RestoreProgress {
        self.warm_restart.as_deref().map(WarmRestart::progress).unwrap_or_default()
    }

    /// Resets the counters that commands report.
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
