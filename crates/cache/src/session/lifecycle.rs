//! Sessions and guards from begin to end, and freeing memory between guards.

use crate::cache::Cache;
use crate::error::Result;
use crate::memory::meta::Queue;
use crate::session::state::{Guard, Session};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of times that a session tries to free memory, and yields to threads that hold
/// guards, before it gives up.
const MAX_FREE_TRIES: usize = 10_000;

/// Number of times that a write without memory yields before it starts to pause between tries. The
/// pauses together take at most [`Options::guard_wait`](crate::Options::guard_wait).
const YIELDS_BEFORE_PAUSE: usize = 1000;

const PAUSE: Duration = Duration::from_micros(200);

/// Identifier of the next session of any cache in the process.
static NEXT_SESSION_ID: AtomicU64 = AtomicU64::new(0);

impl<'c> Session<'c> {
    pub(crate) fn new(cache: &'c Cache) -> Result<Self> {
        Ok(Self {
            cache,
            slot: cache.epochs.register()?,
            counters: cache.register_counters(),
            state: RefCell::default(),
            requested_bytes: Cell::new(0),
            now_ms: Cell::new(cache.clock.now_ms()),
            id: NEXT_SESSION_ID.fetch_add(1, Ordering::Relaxed),
            guard_count: Cell::new(0),
            cas: Cell::new(0..0),
            on_disk: RefCell::default(),
            needs_disk: Cell::new(false),
            keeps_items: Cell::new(false),
        })
    }

    /// Begins an epoch guard. Keep guards short, for example a batch of requests: memory that any
    /// session frees during a guard becomes available after it ends.
    ///
    /// If too little memory is free, this reclaims some first, and may wait for the guards of other
    /// sessions. It sleeps, for at most [`Options::guard_wait`](crate::Options::guard_wait), only
    /// if a large item or a pending value found no memory under the last guard of this session.
    pub fn guard(&mut self) -> Guard<'_> {
        if self.cache.segments.has_pages_to_release() {
            self.cache.release_pages();
        }
        if self.requested_bytes.get() > 0 {
            self.free_memory(true);
        } else if self.cache.segments.available_now() < self.cache.min_free_for_guard() {
            self.free_memory(false);
        }
        self.begin()
    }

    /// Begins an epoch guard as [`guard`](Self::guard) does, without freeing memory.
    pub fn guard_without_freeing(&mut self) -> Guard<'_> {
        self.begin()
    }

    /// Waits until all guards that other sessions have now are ended.
    pub fn wait_for_guards_of_others(&mut self) {
        self.begin().begin_exclusive();
    }

    /// Frees memory if none is free, or too little for the large item that a write requested.
    /// Returns whether there is enough now. Called between guards, since memory that is freed under
    /// a guard becomes available after it. If `waits` is set, waits for the guards of other
    /// sessions that keep memory.
    fn free_memory(&self, waits: bool) -> bool {
        let requested = self.requested_bytes.take();
        let segments = requested.div_ceil(self.cache.segments.len() as usize) as u32;
        self.state.borrow_mut().extra_segments = segments;
        let is_freed = self.free_memory_for(requested, waits);
        self.state.borrow_mut().extra_segments = 0;
        is_freed
    }

    fn free_memory_for(&self, requested: usize, waits: bool) -> bool {
        let Cache { segments, .. } = self.cache;
        let mut rounds = 0;
        for _ in 0..MAX_FREE_TRIES {
            loop {
                let guard = self.begin();
                let freed_before = segments.freed();
                if self.cache.has_memory_for(requested) {
                    return true;
                }
                let freed = self.cache.release_pages()
                    || guard.reclaim(&mut self.state.borrow_mut(), segments.len() as usize);
                drop(guard);
                if freed {
                    break;
                }
                let awaits = segments.awaits_other_threads(freed_before);
                if !awaits || !self.wait_for_guards(&mut rounds, waits) {
                    return false;
                }
            }
        }
        false
    }

    /// Waits a moment for other sessions to end their guards. Returns `false` if the time limit is
    /// reached: the thread of such a session may be descheduled for any time.
    fn wait_for_guards(&self, rounds: &mut usize, pauses: bool) -> bool {
        *rounds += 1;
        let yields = if pauses { YIELDS_BEFORE_PAUSE } else { MAX_FREE_TRIES };
        if *rounds <= yields {
            std::thread::yield_now();
            return true;
        }
        if *rounds == yields + 1 && pauses {
            self.counters.guard_waits.add(1);
        }
        let max_pauses = self.cache.guard_wait.as_micros() / PAUSE.as_micros();
        let may_pause = pauses && ((*rounds - yields) as u128) <= max_pauses;
        if may_pause {
            // Guards do not signal their end: that would slow down every reader.
            std::thread::park_timeout(PAUSE);
        }
        may_pause
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        for (queue, tails) in [Queue::Small, Queue::Main].into_iter().zip(&mut state.tails) {
            for (segment, tail) in tails.iter_mut().filter_map(Option::take) {
                self.cache.segments.seal(&self.cache.epochs, segment, &tail, queue);
            }
        }
        if let Some(victim) = state.victim.take() {
            victim.return_to_queue(self.cache);
        }
        if let Some(scan) = state.expiry_scan.take() {
            scan.abandon(&self.cache.segments, self.now_ms.get());
        }
        self.cache.epochs.unregister(self.slot);
        self.cache.unregister_counters(&self.counters);
    }
}

impl Guard<'_> {
    /// Ends this epoch guard, frees memory for a write that failed with
    /// [`Full`](crate::Error::Full), and begins the next guard. Returns whether memory is free now:
    /// then retry the write. Items that were read before are not accessible any more. The
    /// [time](Self::now_ms) of the guard does not change.
    ///
    /// Freed memory becomes available when all guards that other sessions began earlier have ended.
    /// If no other memory can be freed, waits for those guards, at most for
    /// [`Options::guard_wait`](crate::Options::guard_wait).
    pub fn renew(&mut self) -> bool {
        self.log_removed_records();
        // Otherwise the guard would keep the memory that is waited for.
        self.epoch.suspend();
        let is_freed = self.session.free_memory(true);
        self.cache().epochs.resume(&self.epoch);
        self.session.count_guard();
        is_freed
    }

    /// Ends this guard and begins an exclusive one: waits until no other session holds a guard, and
    /// makes other sessions wait before they begin one. So other sessions see none or all of the
    /// changes that are made until [`end_exclusive`](Self::end_exclusive) or the end of the guard.
    /// Does nothing if the guard is exclusive already.
    pub fn begin_exclusive(&mut self) {
        if self.exclusive.is_none() {
            self.log_removed_records();
            self.epoch.suspend();
            let Session { cache, slot, .. } = self.session;
            self.exclusive = Some(cache.epochs.wait_for_exclusive(*slot));
            cache.epochs.resume(&self.epoch);
            self.session.count_guard();
        }
    }

    /// Makes this guard a normal one again, so that other sessions can begin guards.
    pub fn end_exclusive(&mut self) {
        self.exclusive = None;
    }
}

impl Cache {
    /// Opens a session, which one thread at a time can use. Dropping the session closes it.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySessions`](crate::Error::TooManySessions) if 1,024 sessions are open.
    pub fn session(&self) -> Result<Session<'_>> {
        Session::new(self)
    }
}
