//! One thread's way into a cache.

use crate::arena::Tail;
use crate::cache::Cache;
use crate::epoch::{Alone, Pin, Place};
use crate::error::Result;
use crate::expiry::ExpiryScan;
use crate::hash::KeyHash;
use crate::item::{Facts, Head, Item};
use crate::put::EXPIRY_CLASSES;
use crate::reclaim::Victim;
use crate::segments::{Queue, Segment};
use crate::slot::{FREQUENT, Slot};
use crate::stats::Counters;
use crate::table::Position;
use crate::write::{Condition, Expiry, Outcome, Write};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many times a session looks for free memory, and yields to threads that hold guards, before
/// it gives up.
const MAX_RELIEF_TRIES: usize = 10_000;

/// A write that found no room pauses between its looks after it has yielded so often. The pauses
/// together are at most as long as [`Options::guard_wait`](crate::Options::guard_wait).
const YIELDS_BEFORE_PAUSE: usize = 1000;
const PAUSE: Duration = Duration::from_micros(200);

/// A number that no session has.
pub(crate) const NO_SESSION: u64 = u64::MAX;

/// Sessions of all caches that there have been.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Items whose heads are asked for ahead while all are removed.
const CLEARED_AHEAD: usize = 16;

/// Bytes of an item's head and of its key, about.
const HEAD_AND_KEY: usize = 32;

/// Numbers for compare-and-set taken at a time.
const CAS_NUMBERS: u64 = 1024;

/// What a session writes to, for each queue and class of expiry.
#[derive(Default)]
pub(crate) struct Open {
    pub(crate) tails: [[Option<(Segment, Tail)>; EXPIRY_CLASSES]; 2],
    /// The segment that is being reclaimed.
    pub(crate) victim: Option<Victim>,
    /// The scan for expired items that is under way.
    pub(crate) expiry: Option<Box<ExpiryScan>>,
    /// Segments to seal once all items of [`Turn::set_all`] are in the index, while that runs.
    pub(crate) deferred: Option<Vec<(Segment, Tail, Queue)>>,
    /// Room is short: every write reclaims some.
    pub(crate) pressed: bool,
    /// Segments that should be free beyond those that always should.
    pub(crate) wanted: u32,
}

/// One thread's way into a cache.
pub struct Session<'c> {
    pub(crate) cache: &'c Cache,
    place: Place,
    pub(crate) counters: Arc<Counters>,
    pub(crate) open: RefCell<Open>,
    /// Bytes of a large item for which there was no room in this turn.
    pub(crate) wanted: Cell<usize>,
    now_ms: Cell<u64>,
    /// What no other session of any cache has.
    pub(crate) number: u64,
    /// Turns so far.
    turns: Cell<u64>,
    cas: Cell<Range<u64>>,
}

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

    fn begin(&self) -> Turn<'_> {
        self.now_ms.set(self.cache.clock.now_ms());
        self.count_turn();
        Turn { pin: self.cache.epochs.pin(self.place), session: self, alone: None }
    }

    fn count_turn(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    /// What the turn has that is under way, and no other one of any session.
    #[inline]
    pub(crate) fn turn_number(&self) -> (u64, u64) {
        (self.number, self.turns.get())
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

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// A session's turn. Items that were read in it stay as they are until it ends.
pub struct Turn<'s> {
    pub(crate) session: &'s Session<'s>,
    pub(crate) pin: Pin<'s>,
    /// Goes after the pin.
    alone: Option<Alone<'s>>,
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

/// What the index must hold for a write to happen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Anything,
    /// The item at this place, or none.
    Place(Option<u64>),
}

impl Turn<'_> {
    #[inline]
    pub(crate) fn cache(&self) -> &Cache {
        self.session.cache
    }

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

    /// The time of this turn, in milliseconds since the beginning of 1970.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.session.now_ms.get()
    }

    /// Asks for the line of the index that a key's lookup begins with. With many keys, first this
    /// for all, then [`prefetch_item`](Self::prefetch_item) for all, then the lookups.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.cache().tables.prefetch(&self.cache().arena, hash);
    }

    /// As [`prefetch`](Self::prefetch), ahead of a write. Then comes
    /// [`prefetch_head`](Self::prefetch_head).
    #[inline]
    pub fn prefetch_to_write(&self, hash: KeyHash) {
        self.cache().tables.prefetch_to_write(&self.cache().arena, hash);
    }

    /// Asks for the item that a key's slot of the index points at.
    #[inline]
    pub fn prefetch_item(&self, hash: KeyHash) {
        let Cache { arena, tables, segments, .. } = self.cache();
        // The first that has the key's tag: nearly always the key's own.
        if let Some(found) = tables.find(arena, hash, |_| true) {
            arena.prefetch_item(found.slot.place(), segments.item_len());
        }
    }

    /// As [`prefetch_item`](Self::prefetch_item), for an item that is to be replaced: of that, only
    /// the key is looked at.
    #[inline]
    pub fn prefetch_head(&self, hash: KeyHash) {
        let Cache { arena, tables, segments, .. } = self.cache();
        if let Some(found) = tables.find(arena, hash, |_| true) {
            let place = found.slot.place();
            arena.prefetch_item(place, HEAD_AND_KEY);
            let segment = segments.of(place);
            segments.prefetch_live(segment);
            if let Some(marks) = self.marks(segment) {
                marks.prefetch(place);
            }
        }
    }

    /// The item that begins at this place.
    #[inline]
    pub(crate) fn item(&self, place: u64, frequency: u32) -> Item<'_> {
        let Cache { arena, segments, .. } = self.cache();
        let head = Head::read(
            |len| arena.read(&self.pin, place, len),
            || segments.epoch_ms(segments.of(place)),
        );
        let bytes = arena.read(&self.pin, place, head.len());
        Item { bytes, head, frequency, session: self.session.number }
    }

    /// Bytes of the item that a slot points at, if it has this key.
    #[inline]
    pub(crate) fn len_if(&self, key: &[u8], slot: Slot) -> Option<usize> {
        let arena = &self.cache().arena;
        Head::len_if(|len| arena.read(&self.pin, slot.place(), len), key)
    }

    #[inline]
    fn position(&self, key: &[u8], hash: KeyHash) -> Option<Position> {
        let Cache { arena, tables, .. } = self.cache();
        tables.find(arena, hash, |slot| self.len_if(key, slot).is_some())
    }

    #[inline]
    pub(crate) fn is_over(&self, item: &Item<'_>) -> bool {
        item.expires_ms().is_some_and(|at| at <= self.now_ms())
    }

    /// The item of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Item<'_>> {
        self.get_hashed(key, self.cache().hash(key))
    }

    /// As [`get`](Self::get), with the hash of the key.
    #[inline]
    pub fn get_hashed(&self, key: &[u8], hash: KeyHash) -> Option<Item<'_>> {
        let counters = &self.session.counters;
        let Some(position) = self.position(key, hash) else {
            let evicted = self.cache().ghost.contains(hash);
            let misses = if evicted { &counters.misses_evicted } else { &counters.misses_absent };
            misses.add(1);
            return None;
        };
        let frequency = position.slot.frequency();
        let item = self.item(position.slot.place(), frequency);
        if self.is_over(&item) {
            counters.misses_expired.add(1);
            return None;
        }
        counters.hits.add(1);
        if frequency < FREQUENT {
            self.cache().tables.count_use(&self.cache().arena, hash, position);
        }
        Some(item)
    }

    /// The item of a key, without counting a lookup or a use.
    pub fn peek(&self, key: &[u8]) -> Option<Item<'_>> {
        self.peek_hashed(key, self.cache().hash(key)).0
    }

    /// As [`peek`](Self::peek), and what the index holds, expired or not.
    fn peek_hashed(&self, key: &[u8], hash: KeyHash) -> (Option<Item<'_>>, Expect) {
        let Some(position) = self.position(key, hash) else { return (None, Expect::Place(None)) };
        let place = position.slot.place();
        let item = self.item(place, position.slot.frequency());
        let item = if self.is_over(&item) { None } else { Some(item) };
        (item, Expect::Place(Some(place)))
    }

    /// Stores a value. Where there is no room in this turn, [`Full`](crate::Error::Full) says so,
    /// and a large value for which some can be made finds it after [`renew`](Self::renew), or in
    /// the next turn.
    pub fn set(&self, key: &[u8], value: &[u8], write: &Write<'_>) -> Result<Outcome> {
        self.set_hashed(key, self.cache().hash(key), value, write)
    }

    /// As [`set`](Self::set), with the hash of the key.
    pub fn set_hashed(
        &self,
        key: &[u8],
        hash: KeyHash,
        value: &[u8],
        write: &Write<'_>,
    ) -> Result<Outcome> {
        if write.condition == Condition::Always && write.expiry != Expiry::Keep {
            let facts = write.facts(self.now_ms(), None);
            self.put((key, hash), value, facts, Expect::Anything)?;
            return Ok(Outcome::Stored);
        }
        loop {
            let (current, expect) = self.peek_hashed(key, hash);
            if let Some(refused) = refusal(write.condition, current) {
                return Ok(refused);
            }
            let facts = write.facts(self.now_ms(), current.and_then(|item| item.expires_ms()));
            if self.put((key, hash), value, facts, expect)? {
                return Ok(Outcome::Stored);
            }
        }
    }

    /// Stores a value as `decide` says, which is given the item that there is; with `None` all
    /// stays as it is. Nobody else's write comes between; `decide` may be called again when one
    /// tries to.
    pub fn set_by<'w, R>(
        &self,
        key: &[u8],
        value: &[u8],
        mut decide: impl FnMut(Option<Item<'_>>) -> (Option<Write<'w>>, R),
    ) -> Result<R> {
        let hash = self.cache().hash(key);
        loop {
            let (current, expect) = self.peek_hashed(key, hash);
            let (write, answer) = decide(current);
            let Some(write) = write else { return Ok(answer) };
            let facts = write.facts(self.now_ms(), current.and_then(|item| item.expires_ms()));
            if self.put((key, hash), value, facts, expect)? {
                return Ok(answer);
            }
        }
    }

    /// Replaces the item of a key by what `change` makes of it. Nobody else's write comes between;
    /// `change` may be called again when one tries to. It writes the new value to the buffer it is
    /// given, which is empty, and answers how to store it; with `None` all stays as it is. An item
    /// that would be expired at once is not written: the old one is removed, which needs no memory.
    pub fn update<'w, R>(
        &self,
        key: &[u8],
        mut change: impl FnMut(Option<Item<'_>>, &mut Vec<u8>) -> (Option<Write<'w>>, R),
    ) -> Result<R> {
        let hash = self.cache().hash(key);
        let mut value = Vec::new();
        loop {
            let (current, expect) = self.peek_hashed(key, hash);
            value.clear();
            let (write, answer) = change(current, &mut value);
            let Some(write) = write else { return Ok(answer) };
            let facts = write.facts(self.now_ms(), current.and_then(|item| item.expires_ms()));
            let has_expired = facts.expires_ms.is_some_and(|at_ms| at_ms <= self.now_ms());
            let is_done = if has_expired {
                self.remove_expected(key, hash, expect).is_some()
            } else {
                self.put((key, hash), &value, facts, expect)?
            };
            if is_done {
                return Ok(answer);
            }
        }
    }

    /// The item of a key, with a number for compare-and-set, which it gets now if it had none.
    pub fn with_cas(&self, key: &[u8]) -> Result<Option<(Item<'_>, u64)>> {
        let hash = self.cache().hash(key);
        loop {
            let Some(item) = self.get_hashed(key, hash) else { return Ok(None) };
            if let Some(cas) = item.cas() {
                return Ok(Some((item, cas)));
            }
            let (Some(item), expect) = self.peek_hashed(key, hash) else { return Ok(None) };
            let facts = Facts { cas: Some(self.new_cas()), ..item.head.facts };
            self.put((key, hash), item.value(), facts, expect)?;
        }
    }

    /// A number for compare-and-set that no item has.
    pub fn new_cas(&self) -> u64 {
        let mut numbers = self.session.cas.take();
        if numbers.is_empty() {
            let first = self.cache().take_cas(CAS_NUMBERS);
            numbers = first..first + CAS_NUMBERS;
        }
        let number = numbers.start;
        self.session.cas.set(number + 1..numbers.end);
        number
    }

    /// Removes a key; whether it was there.
    pub fn remove(&self, key: &[u8]) -> bool {
        self.remove_hashed(key, self.cache().hash(key))
    }

    /// As [`remove`](Self::remove), with the hash of the key.
    pub fn remove_hashed(&self, key: &[u8], hash: KeyHash) -> bool {
        self.remove_expected(key, hash, Expect::Anything).unwrap_or(false)
    }

    /// Removes a key if the index holds what is expected, and returns whether the key was there.
    /// Returns `None` if the index holds something else.
    fn remove_expected(&self, key: &[u8], hash: KeyHash, expect: Expect) -> Option<bool> {
        let Cache { arena, tables, .. } = self.cache();
        let mut table = tables.lock(arena, hash);
        let found = table.find(|slot| self.len_if(key, slot).is_some());
        let found_place = found.map(|position| position.slot.place());
        if expect != Expect::Anything && expect != Expect::Place(found_place) {
            return None;
        }
        let Some(position) = found else { return Some(false) };
        let item = self.item(position.slot.place(), 0);
        table.remove(position);
        drop(table);
        self.note_gone(position.slot.place(), item.head.len());
        let was_there = !self.is_over(&item);
        let counters = &self.session.counters;
        if was_there { &counters.removed } else { &counters.expired }.add(1);
        Some(was_there)
    }

    /// Removes everything that is there now.
    pub fn clear(&self) {
        let Cache { arena, tables, .. } = self.cache();
        for number in 0..tables.count() {
            let slots = tables.clear(arena, number);
            for (at, slot) in slots.iter().enumerate() {
                if let Some(ahead) = slots.get(at + CLEARED_AHEAD) {
                    arena.prefetch(ahead.place(), 1);
                }
                let item = self.item(slot.place(), 0);
                self.note_gone(slot.place(), item.head.len());
            }
        }
    }
}

/// Why a write is refused, if it is.
fn refusal(condition: Condition<'_>, current: Option<Item<'_>>) -> Option<Outcome> {
    let holds = match (condition, current) {
        (Condition::Always, _) | (Condition::Absent, None) | (Condition::Present, Some(_)) => true,
        (Condition::Absent, Some(_)) => false,
        (_, None) => return Some(Outcome::Missing),
        (Condition::Cas(cas), Some(item)) => item.cas() == Some(cas),
        (Condition::Value(value), Some(item)) => item.value() == value,
    };
    if holds { None } else { Some(Outcome::Exists) }
}
