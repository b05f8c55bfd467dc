//! Segment reclamation: frees memory for new items.
//!
//! Reclamation is incremental. Each write processes a bounded number of bytes of one victim segment
//! ([`SCAN_BYTES_PER_WRITTEN_BYTE`]), so no write pays for a whole segment.
//!
//! Victims are chosen in this order:
//! 1. **Expired**: segments with expired items are scanned for them, and those of which little is
//!    left are emptied. See `expire_step.rs`.
//! 2. **Sparse**: few bytes are live. The live items are moved to an open segment (compaction).
//!    This also happens while memory is sufficient, if most bytes in use are dead. A segment from
//!    which nothing was removed is no victim if it is more than half full: its items would leave as
//!    many bytes unused elsewhere.
//! 3. **Evicted**, if eviction is enabled (S3-FIFO): the oldest segment of the small queue while
//!    that queue exceeds its share, otherwise the oldest of the main queue.
//!   - Small queue: items that were read move to the main queue. The others are evicted and
//!     remembered in the ghost queue.
//!   - Main queue: items that were read since the last pass are reinserted with a lower frequency.
//!     The others are evicted.
//!
//! A large item is never copied. Instead of moving it, reclamation puts its segment at the end of
//! the queue.
//!
//! Source: Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023.

use crate::cache::Cache;
use crate::config::Eviction;
use crate::hash::KeyHash;
use crate::index::slot::Slot;
use crate::item::Item;
use crate::memory::meta::Queue;
use crate::memory::queues::End;
use crate::session::state::{Guard, WriteState};
use crate::session::victim::{PREFETCH_GROUP, Reason, Victim};

/// Maximum number of items that are examined for one group, removed items included.
const MAX_EXAMINED_PER_GROUP: usize = 4 * PREFETCH_GROUP;

/// Bytes examined for each byte written, while memory is short.
const SCAN_BYTES_PER_WRITTEN_BYTE: usize = 4;

/// The small queue may use one of this many bytes of all items. A larger share keeps new items
/// longer, which helps when popularity changes suddenly. A smaller share leaves more to items that
/// were read.
const SMALL_QUEUE_RATIO: u64 = 32;

/// Reads that an item in the small queue needs in order to move to the main queue.
const MIN_READS_TO_PROMOTE: u32 = 1;

/// What happens to an item of a victim segment.
enum Decision {
    /// The item has expired and is removed.
    Expire,
    /// The item is evicted.
    Evict,
    /// The item moves to this queue, with this frequency.
    Move(Queue, u32),
}

impl Guard<'_> {
    /// Reclaims memory before a write of `bytes` bytes, if memory is short.
    pub(crate) fn reclaim_for_write(&self, state: &mut WriteState, bytes: usize) {
        let cache = self.cache();
        if !cache.tables.has_spare_pages()
            && let Some((start, len)) = cache.segments.take_for_index(&cache.epochs)
        {
            cache.tables.add_segment(start, len);
            cache.update_reserved();
        }
        if state.memory_pressure && !self.session.keeps_items.get() {
            cache.release_pages();
            self.reclaim(state, bytes * SCAN_BYTES_PER_WRITTEN_BYTE + 256);
        }
    }

    /// Examines items of victims until `bytes` bytes were examined or enough memory is free.
    /// Returns `false` if nothing more can be reclaimed.
    pub(crate) fn reclaim(&self, state: &mut WriteState, bytes: usize) -> bool {
        let segments = &self.cache().segments;
        let mut left = bytes as u64;
        while left > 0 {
            // A victim kept from an earlier guard may have been retired and reused. From here on,
            // this guard keeps it.
            let kept = state.victim.take().filter(|kept| segments.is_current(kept.segment));
            if kept.is_none()
                && let Some(bytes) = self.scan_expired(state, MAX_EXAMINED_PER_GROUP)
            {
                left = left.saturating_sub(bytes.max(1));
                if state.expiry_scan.is_none() && state.victim.is_none() {
                    state.memory_pressure = self.cache().should_reclaim(state.extra_segments);
                    if !state.memory_pressure {
                        break;
                    }
                }
                continue;
            }
            let choose = || self.choose_victim(state.extra_segments, self.cache().may_evict());
            let Some(mut victim) = kept.or_else(choose) else {
                state.memory_pressure = false;
                return false;
            };
            let before = victim.cursor.at();
            let moved = self.process_group(state, &mut victim);
            left = left.saturating_sub(victim.cursor.at() - before);
            if !moved {
                // There is no room to move its items to.
                victim.return_to_queue(self.cache());
                return false;
            }
            if !victim.is_done() {
                state.victim = Some(victim);
                continue;
            }
            state.memory_pressure = self.cache().should_reclaim(state.extra_segments);
            if !state.memory_pressure {
                break;
            }
        }
        true
    }

    /// Chooses the next victim. If `may_evict` is not set, only from sparse segments.
    pub(super) fn choose_victim(&self, extra_segments: u32, may_evict: bool) -> Option<Victim> {
        let cache = self.cache();
        let segments = &cache.segments;
        let new = |segment, reason| Victim::new(cache, segment, reason);
        let is_short = cache.is_below_target(extra_segments);
        let max_sixteenths = match cache.eviction {
            _ if !is_short => 8,
            Eviction::S3Fifo => 4,
            Eviction::None => 14,
        };
        if let Some((segment, queue)) = segments.pop_emptiest(max_sixteenths) {
            return Some(new(segment, Reason::Sparse(queue)));
        }
        if !may_evict || !is_short {
            return None;
        }
        let (small, main) = segments.queued_bytes();
        // While the small queue is far too long, promotions do not evict anything from the main
        // queue.
        let is_far_too_long = small * SMALL_QUEUE_RATIO > 2 * (small + main);
        cache.ghost.set_promotion_window(if is_far_too_long {
            u64::MAX
        } else {
            segments.promotion_window()
        });
        let first =
            if small * SMALL_QUEUE_RATIO > small + main { Queue::Small } else { Queue::Main };
        let other = if first == Queue::Small { Queue::Main } else { Queue::Small };
        [first, other]
            .into_iter()
            .find_map(|queue| Some(new(segments.pop_oldest(queue)?, Reason::Evicted(queue))))
    }

    /// Fetches the next group of items and processes the previous one. Returns `false` if an item
    /// had to move and there was no room.
    pub(super) fn process_group(&self, state: &mut WriteState, victim: &mut Victim) -> bool {
        let (group, count) = (victim.group, victim.count);
        self.next_group(victim);
        let evicted = &self.session.counters.evicted;
        let before = evicted.get();
        let mut group = group[..count].iter();
        let all_processed =
            group.all(|(address, hash)| self.process_item(state, victim, (*hash, *address)));
        self.cache().segments.add_evicted(evicted.get() - before);
        all_processed
    }

    /// Fetches the next group of items and prefetches their index lines. Skips items that were
    /// removed.
    fn next_group(&self, victim: &mut Victim) {
        let removed = self.removed_bits(victim.segment.number);
        victim.count = 0;
        for _ in 0..MAX_EXAMINED_PER_GROUP {
            if victim.count == PREFETCH_GROUP {
                break;
            }
            let Some((address, item, is_removed)) =
                victim.cursor.next(|address| self.item(address, 0), removed)
            else {
                break;
            };
            if is_removed {
                continue;
            }
            let hash = self.cache().hash(item.key());
            self.prefetch_line(hash);
            victim.group[victim.count] = (address, hash);
            victim.count += 1;
        }
    }

    /// Processes one item if the index still points to it. Returns `false` if it had to move and
    /// there was no room.
    fn process_item(
        &self,
        state: &mut WriteState,
        victim: &Victim,
        (hash, address): (KeyHash, u64),
    ) -> bool {
        let cache = self.cache();
        let points_to_item = |slot: Slot| slot.address() == address;
        let found = cache.tables.find(&cache.arena, hash, points_to_item);
        let Some(found) = found.filter(|found| !found.slot.is_on_disk()) else { return true };
        let item = self.item(address, found.slot.frequency());
        let counters = &self.session.counters;
        match self.decide(victim.reason, &item) {
            Decision::Expire => {
                self.remove_at(hash, address, item).then(|| counters.expired.add(1))
            }
            Decision::Evict => {
                if self.evict(state, (hash, address), item) {
                    // Keys evicted from the main queue are not remembered.
                    if victim.reason != Reason::Evicted(Queue::Main) {
                        cache.ghost.insert(hash, || cache.len());
                    }
                }
                return true;
            }
            Decision::Move(queue, frequency) if cache.segments.is_large(victim.segment.number) => {
                self.requeue_large(victim, (hash, address), (queue, frequency));
                return true;
            }
            Decision::Move(queue, frequency) => {
                return self.move_item(state, (hash, address), item, (queue, frequency));
            }
        };
        true
    }

    /// Removes an item from memory: the index points to its record, if it has one; if demotions are
    /// collected, it is written to disk first. Returns whether it left memory or will.
    fn evict(
        &self,
        state: &mut WriteState,
        (hash, address): (KeyHash, u64),
        item: Item<'_>,
    ) -> bool {
        if self.evict_to_record(hash, address, &item) {
            return true;
        }
        if let Some(demotions) = &mut state.demotions {
            // If it has a record, the item file is about to be removed. Should the process end
            // before, there must not be two records of one key.
            self.note_record_of(&item);
            demotions.items.push((hash, address));
            demotions.bytes += item.header.len();
            return true;
        }
        self.evict_from_memory(hash, address, item)
    }

    /// Evicts an item that is not on disk. Returns whether the index pointed to it.
    fn evict_from_memory(&self, hash: KeyHash, address: u64, item: Item<'_>) -> bool {
        // If it has a record, the item file is about to be removed. Until then, the record would
        // be found after a crash, although the key may have another value by then.
        self.note_record_of(&item);
        let is_removed = self.remove_at(hash, address, item);
        self.session.counters.evicted.add(u64::from(is_removed));
        is_removed
    }

    /// Returns what happens to an item, given the reason for which its segment is reclaimed.
    fn decide(&self, reason: Reason, item: &Item<'_>) -> Decision {
        let frequency = item.frequency();
        match reason {
            _ if self.is_expired(item) => Decision::Expire,
            Reason::Sparse(queue) => Decision::Move(queue, frequency),
            Reason::Evicted(Queue::Small) if frequency >= MIN_READS_TO_PROMOTE => {
                Decision::Move(Queue::Main, 0)
            }
            Reason::Evicted(Queue::Main) if frequency > 0 => {
                Decision::Move(Queue::Main, frequency - 1)
            }
            Reason::Evicted(_) => Decision::Evict,
        }
    }

    /// Keeps a large item in place and adds its segment to a queue again.
    fn requeue_large(
        &self,
        victim: &Victim,
        (hash, address): (KeyHash, u64),
        (queue, frequency): (Queue, u32),
    ) {
        let Cache { arena, tables, segments, .. } = self.cache();
        let mut table = tables.lock(arena, hash);
        let Some(position) = table.find_address(address) else { return };
        table.relocate(position, address, frequency);
        drop(table);
        segments.push(victim.segment, queue, End::Newest);
    }

    /// Copies an item to an open segment. Returns `false` if there is no room.
    fn move_item(
        &self,
        state: &mut WriteState,
        (hash, address): (KeyHash, u64),
        item: Item<'_>,
        (queue, frequency): (Queue, u32),
    ) -> bool {
        let cache = self.cache();
        let payload = (item.key(), item.value());
        let Some((to, len)) = self.append_item(state, queue, payload, (item.header.metadata, 0))
        else {
            if self.evict_to_record(hash, address, &item) {
                return true;
            }
            // With eviction, an item that cannot move is evicted.
            if !cache.may_evict() {
                return false;
            }
            self.evict_from_memory(hash, address, item);
            return true;
        };
        let mut table = cache.tables.lock(&cache.arena, hash);
        if let Some(position) = table.find_address(address) {
            table.relocate(position, to, frequency);
            drop(table);
            self.record_removed(address, item.header.len());
            self.session.counters.moved_bytes.add(len as u64);
        } else {
            drop(table);
            self.record_removed(to, len);
        }
        true
    }
}
