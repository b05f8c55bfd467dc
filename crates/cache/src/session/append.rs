//! Appending items to open segments, and pointing the index at them.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Facts, Head};
use crate::memory::arena::{Arena, Tail};
use crate::memory::meta::{Queue, Segment};
use crate::session::state::{EXPIRY_CLASSES, Expect, Open, Turn};

const CLASS_ENDS_MS: [u64; EXPIRY_CLASSES - 2] = [5 * 60_000, 4 * 3_600_000];

/// The tail to replace, and where the segments go that are not to be sealed at once.
type Tails<'o> = (&'o mut Option<(Segment, Tail)>, &'o mut Option<Vec<(Segment, Tail, Queue)>>);

impl Turn<'_> {
    /// Points the index at an item that was written, if it holds what is expected.
    pub(crate) fn publish(
        &self,
        (key, hash): (&[u8], KeyHash),
        place: u64,
        expect: Expect,
    ) -> Result<bool> {
        let Cache { arena, tables, ghost, .. } = self.cache();
        let mut table = tables.lock(arena, hash);
        let mut old_len = 0;
        let found = table.find(|slot| {
            let len = self.len_if(key, slot);
            old_len = len.unwrap_or(old_len);
            len.is_some()
        });
        let found_place = found.map(|position| position.slot.place());
        if expect != Expect::Anything && expect != Expect::Place(found_place) {
            return Ok(false);
        }
        if let Some(position) = found {
            table.replace(position, place);
            drop(table);
            self.note_gone(position.slot.place(), old_len);
        } else if table.insert(place) {
            drop(table);
            ghost.remove(hash);
        } else {
            return Err(Error::Full);
        }
        self.session.counters.stored.add(1);
        Ok(true)
    }

    /// Writes an item to the tail for its queue and expiry, and counts it as live; nothing if that
    /// would leave fewer than `keep` segments free.
    pub(crate) fn write_item(
        &self,
        open: &mut Open,
        queue: Queue,
        (key, value): (&[u8], &[u8]),
        (facts, keep): (Facts, u32),
    ) -> Option<(u64, usize)> {
        let Cache { arena, segments, .. } = self.cache();
        let Open { tails, deferred, pressed, .. } = open;
        let tail = &mut tails[queue as usize][self.class(facts.expires_ms)];
        let len = key.len() + value.len() + Head::MOST;
        if tail.as_ref().is_none_or(|(_, tail)| tail.room() < len) {
            *pressed |= !self.open_tail((tail, deferred), queue, facts.expires_ms, keep);
        }
        let (segment, tail) = tail.as_mut().filter(|(_, tail)| tail.room() >= len)?;
        let epoch_ms = segments.epoch_ms(segment.number);
        let head = Head::new(key.len(), value.len(), facts, epoch_ms);
        let place = tail.place();
        arena.prefetch_behind(tail, head.len());
        head.write(arena.room(tail, head.len()), key, epoch_ms).copy_from_slice(value);
        segments.add_live(segment.number, head.len(), facts.expires_ms);
        Some((place, head.len()))
    }

    /// Takes back an item that the index never pointed at. It is not marked as gone: the next one
    /// begins where it did.
    pub(super) fn forget(
        &self,
        open: &mut Open,
        queue: Queue,
        facts: Facts,
        (place, len): (u64, usize),
    ) {
        let class = self.class(facts.expires_ms);
        if let Some((_, tail)) = &mut open.tails[queue as usize][class] {
            Arena::take_back(tail, len);
        }
        let Cache { segments, epochs, .. } = self.cache();
        segments.remove_live(epochs, place, len);
    }

    fn class(&self, expires_ms: Option<u64>) -> usize {
        let Some(at) = expires_ms else { return 0 };
        let left = at.saturating_sub(self.now_ms());
        1 + CLASS_ENDS_MS.iter().take_while(|end| left > **end).count()
    }

    /// Gives a tail a new segment; false if some should be reclaimed now.
    fn open_tail(
        &self,
        (tail, deferred): Tails<'_>,
        queue: Queue,
        expires_ms: Option<u64>,
        keep: u32,
    ) -> bool {
        let Cache { segments, epochs, .. } = self.cache();
        // Short expiries count from now, or from shortly before the first one.
        let far = expires_ms.unwrap_or(0).saturating_sub(Head::EXPIRY_REACH_MS / 2);
        let epoch_ms = self.now_ms().max(far);
        let opened = loop {
            match segments.open(epochs, epoch_ms, keep) {
                Some(opened) => break opened,
                // Memory of large items may be on its way back.
                None if self.cache().give_back() => {}
                None => return false,
            }
        };
        if let Some(marks) = self.marks(opened.0.number) {
            marks.clear(segments.len());
        }
        if let Some((segment, tail)) = tail.replace(opened) {
            match deferred {
                Some(deferred) => deferred.push((segment, tail, queue)),
                None => segments.seal(epochs, segment, &tail, queue),
            }
        }
        !self.cache().wants_reclaim(0)
    }
}

/// Returns an error if a key or a value is too long.
#[inline]
pub(crate) fn check_item(cache: &Cache, key: &[u8], value: &[u8]) -> Result<()> {
    check_len("key", key, Cache::KEY_MOST)?;
    check_len("value", value, cache.value_most())
}

#[inline]
fn check_len(what: &'static str, bytes: &[u8], most: usize) -> Result<()> {
    if bytes.len() > most { Err(too_long(what, bytes.len(), most)) } else { Ok(()) }
}

#[cold]
fn too_long(what: &'static str, len: usize, most: usize) -> Error {
    Error::TooLong { what, len, most }
}
