//! How memory comes back: segments are reclaimed one by one, a few items with each write, so that
//! no write waits for a whole one.
//!
//! In this order:
//! 1. segments with expired items, and those of which little else is left: see `expiry.rs`;
//! 2. segments with little in them that is still in the index: that is moved to others. This
//!    happens also when room is not short but most of it is wasted;
//! 3. with eviction, the oldest segment of the small queue while that has more than its part of
//!    all, otherwise the oldest of the main queue. From the small one, items that were asked for go
//!    to the main queue, and the others go, noted in the ghost queue; in the main queue, what was
//!    asked for goes round again, and the rest goes for good.
//!
//! A large item is never moved: where it would be, its segment goes to the end of the queue.

use crate::cache::Cache;
use crate::config::Eviction;
use crate::expiry::Cursor;
use crate::hash::KeyHash;
use crate::item::Item;
use crate::segments::{Queue, Segment};
use crate::session::{Open, Turn};

/// Of how many segments one is kept free, at least so many, and so many for each session.
const SPARE_PART: u32 = 32;
const SPARE_LEAST: u32 = 4;
const SPARE_EACH: u32 = 2;

/// Items looked at together: their lines of the index are asked for before the first is.
const GROUP: usize = 16;

/// Items looked at by one who looks for a group of those that are not gone.
const PASSED: usize = 4 * GROUP;

/// Bytes looked at for each byte written, when room is short.
const WORK: usize = 4;

/// The small queue has this part of the memory of items. A larger one keeps what is new for longer,
/// which helps where popularity changes all at once; a smaller one leaves more to what has proved
/// itself.
const SMALL_PART: u64 = 32;

/// How often an item of the small queue must be asked for to stay.
const STAYS_FROM: u32 = 1;

/// Why a segment is reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Most of its items have expired, and the rest moves. The segment is still in its queue.
    Expired,
    /// Little in it is still in the index, which stays in this queue.
    Sparse(Queue),
    /// Room is short.
    Evicted(Queue),
}

/// A segment that is being reclaimed, and how far that is.
#[derive(Debug)]
pub(crate) struct Victim {
    segment: Segment,
    reason: Reason,
    /// The items that were not looked at yet.
    cursor: Cursor,
    /// The items before those that nothing was decided on yet, and their number: their lines of the
    /// index were asked for, and are there by the time the next items are looked at.
    group: [(u64, KeyHash); GROUP],
    count: usize,
}

impl Victim {
    fn new(cache: &Cache, segment: Segment, reason: Reason) -> Self {
        let cursor = Cursor::new(cache.segments.items(segment));
        Self { segment, reason, cursor, group: [(0, KeyHash(0)); GROUP], count: 0 }
    }

    /// Returns a segment of which little is left after its expired items were removed.
    pub(crate) fn of_expired(cache: &Cache, segment: Segment) -> Self {
        Self::new(cache, segment, Reason::Expired)
    }

    /// Whether all its items were decided on.
    fn is_done(&self) -> bool {
        self.cursor.is_at_end() && self.count == 0
    }

    /// Leaves the segment to others, which reclaim it from the start.
    pub(crate) fn put_back(self, cache: &Cache) {
        match self.reason {
            Reason::Expired => {}
            Reason::Sparse(queue) | Reason::Evicted(queue) => {
                cache.segments.push(self.segment, queue);
            }
        }
    }
}

/// What becomes of an item of a segment that is reclaimed.
enum Fate {
    /// Its time is over.
    Expires,
    /// It makes room.
    Goes,
    /// It is moved, with this frequency.
    Moves(Queue, u32),
}

impl Cache {
    /// Segments that should be free. Below that, every write reclaims some.
    pub(crate) fn spare(&self) -> u32 {
        let least = SPARE_LEAST + SPARE_EACH * self.epochs.sessions();
        (self.segments.count() / SPARE_PART).max(least)
    }

    /// Whether fewer segments are free than should be, and so many that are wanted besides.
    fn is_short(&self, wanted: u32) -> bool {
        let room = self.segments.room(&self.epochs);
        let enough = self.spare() + wanted;
        if wanted > 0 {
            return room.with_all < enough;
        }
        // Evicting one large item may do for long, but only once turns are over.
        room.now < enough && (room.now < self.floor() || room.with_large < enough)
    }

    /// Whether writes should reclaim something: since room is short, or since much of it is wasted.
    pub(crate) fn wants_reclaim(&self, wanted: u32) -> bool {
        self.is_short(wanted) || self.segments.is_wasteful()
    }

    /// Whether a turn can begin, after one in which a large item of so many bytes found no room.
    pub(crate) fn has_room(&self, wanted: usize) -> bool {
        if wanted > 0 {
            return self.segments.fits_large(&self.epochs, wanted, self.floor());
        }
        self.segments.room(&self.epochs).now >= self.least_at_hand()
    }

    /// Segments that must be free for a turn to begin.
    pub(crate) fn least_at_hand(&self) -> u32 {
        self.spare() - self.spare() / 4
    }

    /// Segments that should have memory ahead of their use: no more than the floor, so that what
    /// large items leave free need not go back for the next one.
    pub(crate) fn ahead(&self) -> u32 {
        SPARE_LEAST / 2 + SPARE_EACH / 2 * self.epochs.sessions()
    }

    /// Segments that only what is moved may use: were there none left, nothing could be.
    pub(crate) fn floor(&self) -> u32 {
        self.spare() / 2
    }
}

impl Turn<'_> {
    /// Before so many bytes are written, reclaims some where room is short.
    pub(crate) fn make_room(&self, open: &mut Open, bytes: usize) {
        let cache = self.cache();
        if !cache.tables.has_units()
            && let Some((start, len)) = cache.segments.take_for_index(&cache.epochs)
        {
            cache.tables.add_segment(start, len);
            cache.note_reserved();
        }
        if open.pressed {
            cache.give_back();
            self.reclaim(open, bytes * WORK + 256);
        }
    }

    /// Looks at items of segments to reclaim, until so many bytes were looked at; false if there is
    /// nothing to reclaim.
    pub(crate) fn reclaim(&self, open: &mut Open, bytes: usize) -> bool {
        let segments = &self.cache().segments;
        let mut left = bytes as u64;
        while left > 0 {
            // One that is left from an earlier turn may be over, and somebody else's by now. From
            // here on it stays what it is until this turn ends.
            let kept = open.victim.take().filter(|kept| segments.lives(kept.segment));
            if kept.is_none()
                && let Some(bytes) = self.scan_expired(open, PASSED)
            {
                left = left.saturating_sub(bytes.max(1));
                if open.expiry.is_none() && open.victim.is_none() {
                    open.pressed = self.cache().wants_reclaim(open.wanted);
                    if !open.pressed {
                        break;
                    }
                }
                continue;
            }
            let Some(mut victim) = kept.or_else(|| self.choose(open.wanted)) else {
                open.pressed = false;
                return false;
            };
            let before = victim.cursor.at();
            let moved = self.walk(open, &mut victim);
            left = left.saturating_sub(victim.cursor.at() - before);
            if !moved {
                // No room for what would have to move.
                victim.put_back(self.cache());
                return false;
            }
            if !victim.is_done() {
                open.victim = Some(victim);
                continue;
            }
            open.pressed = self.cache().wants_reclaim(open.wanted);
            if !open.pressed {
                break;
            }
        }
        true
    }

    /// The next segment to reclaim.
    fn choose(&self, wanted: u32) -> Option<Victim> {
        let cache = self.cache();
        let segments = &cache.segments;
        let new = |segment, reason| Victim::new(cache, segment, reason);
        let short = cache.is_short(wanted);
        let sparse = match cache.eviction {
            _ if !short => segments.len() / 2,
            Eviction::S3Fifo => segments.len() / 4,
            Eviction::None => segments.len() / 8 * 7,
        };
        if let Some((segment, queue)) = segments.pop_emptiest(sparse) {
            return Some(new(segment, Reason::Sparse(queue)));
        }
        if cache.eviction == Eviction::None || !short {
            return None;
        }
        let (small, main) = segments.queued();
        // While the small queue is far too long, what comes back pushes nothing out of the main
        // one.
        let is_free = small * SMALL_PART > 2 * (small + main);
        cache.ghost.set_reach(if is_free { u64::MAX } else { segments.reach() });
        let first = if small * SMALL_PART > small + main { Queue::Small } else { Queue::Main };
        let other = if first == Queue::Small { Queue::Main } else { Queue::Small };
        [first, other]
            .into_iter()
            .find_map(|queue| Some(new(segments.pop(queue)?, Reason::Evicted(queue))))
    }

    /// Looks at the next items of a segment, and decides on those it had looked at before; false if
    /// one had to move and there was no room.
    fn walk(&self, open: &mut Open, victim: &mut Victim) -> bool {
        let (group, count) = (victim.group, victim.count);
        self.look_ahead(victim);
        let evicted = &self.session.counters.evicted;
        let before = evicted.get();
        let mut group = group[..count].iter();
        let went = group.all(|(place, hash)| self.settle(open, victim, (*hash, *place)));
        self.cache().segments.add_evicted(evicted.get() - before);
        went
    }

    /// Looks at the next items: those that are gone are passed by.
    fn look_ahead(&self, victim: &mut Victim) {
        let marks = self.marks(victim.segment.number);
        victim.count = 0;
        for _ in 0..PASSED {
            if victim.count == GROUP {
                break;
            }
            let Some((place, item, is_gone)) = victim.cursor.next(self, marks) else { break };
            if is_gone {
                continue;
            }
            let hash = self.cache().hash(item.key());
            self.prefetch(hash);
            victim.group[victim.count] = (place, hash);
            victim.count += 1;
        }
    }

    /// Decides on one item, if the index still points at it.
    fn settle(&self, open: &mut Open, victim: &Victim, (hash, place): (KeyHash, u64)) -> bool {
        let cache = self.cache();
        let is_it = |slot: crate::slot::Slot| slot.place() == place;
        let Some(found) = cache.tables.find(&cache.arena, hash, is_it) else { return true };
        let item = self.item(place, found.slot.frequency());
        let counters = &self.session.counters;
        match self.fate(victim.reason, &item) {
            Fate::Expires => self.take_out(hash, place, item).then(|| counters.expired.add(1)),
            Fate::Goes => self.take_out(hash, place, item).then(|| {
                // What went round the main queue in vain had its time.
                if victim.reason != Reason::Evicted(Queue::Main) {
                    cache.ghost.insert(hash, || cache.len());
                }
                counters.evicted.add(1);
            }),
            Fate::Moves(queue, frequency) if cache.segments.is_large(victim.segment.number) => {
                self.stand_in_line(victim, (hash, place), (queue, frequency));
                return true;
            }
            Fate::Moves(queue, frequency) => {
                return self.relocate(open, (hash, place), item, (queue, frequency));
            }
        };
        true
    }

    fn fate(&self, reason: Reason, item: &Item<'_>) -> Fate {
        let frequency = item.frequency();
        match reason {
            _ if self.is_over(item) => Fate::Expires,
            Reason::Expired => Fate::Moves(Queue::Small, frequency),
            Reason::Sparse(queue) => Fate::Moves(queue, frequency),
            Reason::Evicted(Queue::Small) if frequency >= STAYS_FROM => Fate::Moves(Queue::Main, 0),
            Reason::Evicted(Queue::Main) if frequency > 0 => {
                Fate::Moves(Queue::Main, frequency - 1)
            }
            Reason::Evicted(_) => Fate::Goes,
        }
    }

    /// Removes an item from the index, unless that points elsewhere by now.
    pub(crate) fn take_out(&self, hash: KeyHash, place: u64, item: Item<'_>) -> bool {
        let cache = self.cache();
        let mut table = cache.tables.lock(&cache.arena, hash);
        let Some(position) = table.find(|slot| slot.place() == place) else { return false };
        table.remove(position);
        drop(table);
        self.note_gone(place, item.head.len());
        true
    }

    /// A large item stays where it is, and its segment waits in a queue again.
    fn stand_in_line(
        &self,
        victim: &Victim,
        (hash, place): (KeyHash, u64),
        (queue, frequency): (Queue, u32),
    ) {
        let Cache { arena, tables, segments, .. } = self.cache();
        let mut table = tables.lock(arena, hash);
        let Some(position) = table.find(|slot| slot.place() == place) else { return };
        table.relocate(position, place, frequency);
        drop(table);
        match victim.reason {
            // It is in its queue still.
            Reason::Expired => {}
            Reason::Sparse(_) | Reason::Evicted(_) => segments.requeue(victim.segment, queue),
        }
    }

    /// Writes an item elsewhere; false if there is no room.
    fn relocate(
        &self,
        open: &mut Open,
        (hash, place): (KeyHash, u64),
        item: Item<'_>,
        (queue, frequency): (Queue, u32),
    ) -> bool {
        let cache = self.cache();
        let payload = (item.key(), item.value());
        let Some((to, len)) = self.write_item(open, queue, payload, (item.head.facts, 0)) else {
            // With eviction, what cannot be kept goes.
            if cache.eviction == Eviction::None {
                return false;
            }
            if self.take_out(hash, place, item) {
                self.session.counters.evicted.add(1);
            }
            return true;
        };
        let mut table = cache.tables.lock(&cache.arena, hash);
        if let Some(position) = table.find(|slot| slot.place() == place) {
            table.relocate(position, to, frequency);
            drop(table);
            self.note_gone(place, item.head.len());
            self.session.counters.moved_bytes.add(len as u64);
        } else {
            drop(table);
            self.note_gone(to, len);
        }
        true
    }
}
