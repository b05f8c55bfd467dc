//! One thread's way into a cache.

use crate::cache::Cache;
use crate::error::Result;
use crate::memory::meta::Queue;
use crate::session::state::{Session, Turn};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many times a session looks for free memory, and yields to threads that hold guards, before
/// it gives up.
const MAX_RELIEF_TRIES: usize = 10_000;

/// A write that found no room pauses between its looks after it has yielded so often. The pauses
/// together are at most as long as [`Options::guard_wait`](crate::Options::guard_wait).
const YIELDS_BEFORE_PAUSE: usize = 1000;

const PAUSE: Duration = Duration::from_micros(200);

/// Sessions of all caches that there have been.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

impl<'c> Session<'c> {
    pub(crate) fn new(cache: &'c Cache) -> Result<Self> {
        Ok(Self {
            cache,
            place: cache.epochs.enter()?,
            counters: cache.enroll(),
            open: RefCell::default(),
            wanted: Cell::new(0),
            now_ms: Cell::new(cache.clock.now_ms()),
            number: SESSIONS.fetch_add(1, Ordering::Relaxed),
            turns: Cell::new(0),
            cas: Cell::new(0..0),
        })
    }

    /// Begins a turn: the time is that of its beginning. Keep turns short, a batch of requests say:
    /// memory that anybody frees during a turn comes back after it.
    pub fn turn(&mut self) -> Turn<'_> {
        if self.cache.segments.is_owing() {
            self.cache.give_back();
        }
        if self.wanted.get() > 0 {
            self.relieve(true);
        } else if self.cache.segments.available_at_once() < self.cache.least_at_hand() {
            self.relieve(false);
        }
        self.begin()
    }

    /// Makes room if there is none at all, or none for a large item, and returns whether there is
    /// some. Called between guards, since memory that is freed under a guard is free after it. With
    /// `waits`, waits for guards of other sessions that keep memory.
    fn relieve(&self, waits: bool) -> bool {
        let wanted = self.wanted.take();
        let segments = wanted.div_ceil(self.cache.segments.len() as usize) as u32;
        self.open.borrow_mut().wanted = segments;
        let relieved = self.relieve_for(wanted, waits);
        self.open.borrow_mut().wanted = 0;
        relieved
    }

    fn relieve_for(&self, wanted: usize, waits: bool) -> bool {
        let Cache { segments, .. } = self.cache;
        let mut rounds = 0;
        for _ in 0..MAX_RELIEF_TRIES {
            loop {
                let guard = self.begin();
                if self.cache.has_room(wanted) {
                    return true;
                }
                let freed = self.cache.give_back()
                    || guard.reclaim(&mut self.open.borrow_mut(), segments.len() as usize);
                drop(guard);
                if freed {
                    break;
                }
                if !segments.awaits_others() || !self.wait_for_guards(&mut rounds, waits) {
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
        let yields = if pauses { YIELDS_BEFORE_PAUSE } else { MAX_RELIEF_TRIES };
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
            // No event tells of the end of a guard: to signal it would slow down every reader.
            std::thread::park_timeout(PAUSE);
        }
        may_pause
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let open = self.open.get_mut();
        for (queue, tails) in [Queue::Small, Queue::Main].into_iter().zip(&mut open.tails) {
            for (segment, tail) in tails.iter_mut().filter_map(Option::take) {
                self.cache.segments.seal(&self.cache.epochs, segment, &tail, queue);
            }
        }
        if let Some(victim) = open.victim.take() {
            victim.put_back(self.cache);
        }
        if let Some(scan) = open.expiry.take() {
            scan.abandon(&self.cache.segments, self.now_ms.get());
        }
        self.cache.epochs.leave(self.place);
        self.cache.dismiss(&self.counters);
    }
}

impl Turn<'_> {
    /// Ends this epoch guard and begins the next one, after freeing memory for a write that failed
    /// with [`Full`](crate::Error::Full). Returns whether there is free memory: then retry the
    /// write.
    ///
    /// Freed memory becomes usable when all guards that other sessions began earlier have ended. If
    /// nothing else can be freed, waits for those guards, at most for
    /// [`Options::guard_wait`](crate::Options::guard_wait).
    pub fn renew(&mut self) -> bool {
        // Suspended, or the pin would keep what is waited for.
        self.pin.suspend();
        let relieved = self.session.relieve(true);
        self.cache().epochs.renew(&self.pin);
        self.session.count_turn();
        relieved
    }

    /// Ends this turn and begins one in which no other session is in one: what is done until
    /// [`be_with_others`](Self::be_with_others), or the end, is seen whole or not at all. Waits
    /// until the others' turns are over, and they wait for this one.
    pub fn be_alone(&mut self) {
        if self.alone.is_none() {
            self.pin.suspend();
            let Session { cache, place, .. } = self.session;
            self.alone = Some(cache.epochs.wait_until_alone(*place));
            cache.epochs.renew(&self.pin);
            self.session.count_turn();
        }
    }

    /// Lets the others go on.
    pub fn be_with_others(&mut self) {
        self.alone = None;
    }
}

impl Cache {
    /// Opens a session, for one thread at a time.
    pub fn session(&self) -> Result<Session<'_>> {
        Session::new(self)
    }
}
