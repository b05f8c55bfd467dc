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
use crate::hash::KeyHash;
use crate::item::Item;
use crate::memory::meta::Queue;
use crate::session::state::{Open, Turn};
use crate::session::victim::{GROUP, Reason, Victim};

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

/// What becomes of an item of a segment that is reclaimed.
enum Fate {
    /// Its time is over.
    Expires,
    /// It makes room.
    Goes,
    /// It is moved, with this frequency.
    Moves(Queue, u32),
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
            let Some((place, item, is_gone)) =
                victim.cursor.next(|place| self.item(place, 0), marks)
            else {
                break;
            };
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
        let is_it = |slot: crate::index::slot::Slot| slot.place() == place;
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
