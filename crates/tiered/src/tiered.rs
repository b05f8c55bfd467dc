//! A cache with a disk tier: opening, reading and closing it.

use crate::error::OpenError;
use crate::options::{Event, Options, WhenBehind};
use crate::reads::Reads;
use crate::records::ItemRecords;
use crate::shared::Shared;
use crate::state::State;
use crate::stats::{Counters, DiskStats};
use crate::waiting::{RoomWaiters, Waiter};
use crate::{demoter, dump, reads, recovery};
use nuthatch_cache::{Cache, Clock, OnDisk, Options as CacheOptions, SystemClock};
use nuthatch_tier::{Error, FolderState, Options as TierOptions, Removals, RemovedRecords, Tier};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Numbers for compare-and-set that a cache may assign in a millisecond, on average, without
/// reaching those of the next run.
const CAS_PER_MS: u64 = 1 << 20;

/// A cache whose evicted items go to disk. Sessions of its [`cache`](Self::cache) are used as those
/// of a cache without a disk, except that an operation may need an item from disk.
pub struct TieredCache {
    pub(crate) shared: Arc<Shared>,
    pub(crate) reads: Arc<Reads>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) room_waiters: Arc<RoomWaiters>,
    when_behind: WhenBehind,
    /// Whether writers wait for the disk in any case.
    must_wait: AtomicBool,
}

impl TieredCache {
    /// Opens the folder of the disk tier, creates the cache, and begins to recover the items of the
    /// last run.
    ///
    /// # Errors
    ///
    /// - [`OpenError::Disk`] if another process uses the folder, another version wrote it, its
    ///   manifest is damaged, a limit is out of its range, or the system refuses to read or write
    ///   it.
    /// - [`OpenError::Cache`] if an option of the cache is out of its range.
    /// - [`OpenError::Thread`] if the system cannot create a thread.
    pub fn open(cache: CacheOptions, options: &Options) -> Result<Self, OpenError> {
        let disk = Arc::clone(&options.disk);
        let tier_options = TierOptions { disk, ..TierOptions::new(options.max_bytes) };
        let (mut tier, mut recovery) = Tier::open(&options.folder, &tier_options)?;
        let state = Arc::new(State::new(Arc::clone(&options.on_event)));
        for damage in &recovery.damage {
            state.report(Event::Damaged(damage.clone()));
        }
        let records = recovery.records;
        let untrusted = match recovery.state {
            FolderState::LostPower => Some(Event::PowerLost { records }),
            FolderState::Outdated => Some(Event::Outdated { records }),
            FolderState::New | FolderState::NotClosed | FolderState::Closed => None,
        };
        let to_recover = if untrusted.is_some() { 0 } else { records };
        if let Some(event) = untrusted {
            state.report(event);
            tier.clear()?;
        }
        let removals = removals_of(&mut tier)?;
        if !recovery.removed.has_commits() {
            removals.commit()?;
        }
        let records = ItemRecords::new(tier.reader(), removals, Arc::clone(&state));
        let records = Arc::new(records);
        let first_cas = SystemClock.now_ms().saturating_mul(CAS_PER_MS).max(1);
        let cache = cache.seed(tier.hash_seed()).first_cas(first_cas);
        let cache = match options.partitions {
            None => cache,
            Some((partition_of, _)) => cache.partitions(partition_of),
        };
        let cache = Cache::new(cache.records(Arc::clone(&records) as _))?;
        cache.set_evicts_unwritten(options.when_behind == WhenBehind::Drop);
        let files: Vec<_> = tier.files().iter().map(|file| file.number).collect();
        let removed = std::mem::take(&mut recovery.removed);
        Counters::add(&state.counters.to_recover, to_recover);
        let shared = Shared::new(Arc::new(cache), tier, records, state, options);
        let shared = Arc::new(shared);
        let (reads, when_behind) = (Arc::default(), options.when_behind);
        let threads = Mutex::default();
        let (room_waiters, must_wait) = (Arc::default(), AtomicBool::new(false));
        let tiered = Self { shared, reads, threads, room_waiters, when_behind, must_wait };
        tiered.start(options.readers, files, removed).map_err(OpenError::Thread)?;
        Ok(tiered)
    }

    fn start(&self, readers: usize, files: Vec<u64>, removed: RemovedRecords) -> io::Result<()> {
        if !files.is_empty() {
            self.shared.cache.begin_restore();
            self.shared.state.is_recovering.store(true, Ordering::SeqCst);
            self.spawn("nuthatch-recovery", move |shared| recovery::run(shared, &files, &removed))?;
        }
        let room_waiters = Arc::clone(&self.room_waiters);
        self.spawn("nuthatch-demoter", move |shared| demoter::run(shared, &room_waiters))?;
        let (reads, room_waiters) = (Arc::clone(&self.reads), Arc::clone(&self.room_waiters));
        self.spawn("nuthatch-reads", move |shared| {
            reads::run(shared, &reads, &room_waiters, readers);
        })
    }

    fn spawn(&self, name: &str, work: impl FnOnce(&Shared) + Send + 'static) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = Builder::new().name(name.to_owned()).spawn(move || work(&shared))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Returns the cache.
    #[must_use]
    pub fn cache(&self) -> &Arc<Cache> {
        &self.shared.cache
    }

    /// Reads an item from disk and promotes it to memory. Calls `waiter` with this token when the
    /// operation that needs it can be repeated.
    pub fn read(&self, on_disk: OnDisk, waiter: &Arc<dyn Waiter>, token: u64) {
        self.reads.request(on_disk, waiter, token);
    }

    /// Returns the statistics of the disk tier.
    #[must_use]
    pub fn stats(&self) -> DiskStats {
        let Shared { reader, state, .. } = &*self.shared;
        DiskStats {
            bytes: reader.used_bytes(),
            max_bytes: reader.max_bytes(),
            files: reader.numbers().len() as u64,
            queued_reads: self.reads.count(),
            is_recovering: state.is_recovering.load(Ordering::Relaxed),
            is_off: state.is_off(),
            ..state.counters.read()
        }
    }

    /// Returns whether a write that found no memory should wait, since items are being written to
    /// disk.
    #[must_use]
    pub fn waits_for_disk(&self) -> bool {
        let state = &self.shared.state;
        let waits = self.when_behind == WhenBehind::Wait || self.must_wait.load(Ordering::SeqCst);
        waits && !state.is_off() && !state.is_stopping()
    }

    /// Sets whether writers wait for the disk, as with [`WhenBehind::Wait`], even if the option is
    /// [`WhenBehind::Drop`].
    pub fn set_must_wait(&self, must_wait: bool) {
        let Shared { cache, state, .. } = &*self.shared;
        if self.must_wait.swap(must_wait, Ordering::SeqCst) != must_wait {
            let drops = self.when_behind == WhenBehind::Drop && !must_wait;
            cache.set_evicts_unwritten(drops);
            if state.is_off() {
                // The demoter has ended.
                cache.set_evicts_unwritten(true);
            }
        }
    }

    /// Calls `waiter` with this token when a write that found no memory can be repeated.
    pub fn wait_for_room(&self, waiter: &Arc<dyn Waiter>, token: u64) {
        self.room_waiters.add_writer((Arc::clone(waiter), token));
    }

    /// Makes [`close`](Self::close) end at once, without writing further items.
    pub fn cancel_dump(&self) {
        self.shared.state.cancel_dump();
    }

    /// Ends all threads, and writes the items that are only in memory to disk, the most read ones
    /// first, until `until`. No other session may use the cache. Does nothing if it was closed
    /// already.
    ///
    /// # Errors
    ///
    /// Returns the error of the disk. What was written is recovered by the next
    /// [`open`](Self::open).
    pub fn close(&self, until: Instant) -> Result<(), Error> {
        self.end_threads();
        let Some(mut tier) = self.shared.tier().take() else { return Ok(()) };
        if self.shared.state.is_off() {
            return Ok(());
        }
        let dumped = dump::run(&self.shared, &mut tier, until);
        if self.shared.state.is_dump_cancelled() {
            return Ok(());
        }
        dumped.and(tier.close())
    }

    fn end_threads(&self) {
        self.shared.state.stop();
        self.reads.close();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            thread.thread().unpark();
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Begins the removal log. Removes item files if there is no space for it.
fn removals_of(tier: &mut Tier) -> Result<Removals, Error> {
    loop {
        match tier.removals() {
            Err(Error::BudgetReached { .. }) if tier.remove_oldest()?.is_some() => {}
            result => return result,
        }
    }
}

impl Drop for TieredCache {
    /// Ends all threads. Without [`close`](Self::close), it is the same as the death of the
    /// process.
    fn drop(&mut self) {
        self.end_threads();
    }
}

impl fmt::Debug for TieredCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TieredCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
