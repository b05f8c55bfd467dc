//! Appending items to open segments, and pointing the index to them. Nothing here reclaims memory.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::index::table::Position;
use crate::index::tables::LockedTable;
use crate::item::{Header, Metadata};
use crate::memory::arena::{Arena, Tail};
use crate::memory::meta::{Queue, Segment};
use crate::session::state::{EXPIRY_CLASSES, Expect, Guard, WriteState};

/// Upper bounds of the expiry classes, in milliseconds from now: five minutes and four hours.
const EXPIRY_CLASS_ENDS_MS: [u64; EXPIRY_CLASSES - 2] = [5 * 60_000, 4 * 3_600_000];

/// The tail to replace, and the list for segments whose sealing is deferred.
type Tails<'o> = (&'o mut Option<(Segment, Tail)>, &'o mut Option<Vec<(Segment, Tail, Queue)>>);

impl Guard<'_> {
    /// Points the index to an item that was written, if the index holds what is expected. Returns
    /// whether it did.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the index has no room for another key.
    pub(crate) fn publish(
        &self,
        (key, hash): (&[u8], KeyHash),
        address: u64,
        expect: Expect,
    ) -> Result<bool> {
        let Cache { arena, tables, ghost, .. } = self.cache();
        loop {
            let mut table = tables.lock(arena, hash);
            let mut old_len = 0;
            let found = match expect {
                Expect::Place(place) => table.find_place(place),
                _ => table.find(|slot| {
                    let len = self.len_if_key(key, slot);
                    old_len = len.unwrap_or(old_len);
                    len.is_some()
                }),
            };
            let slot = found.map(|position| position.slot);
            if !expect.is_met(slot, || self.cache().may_restore(hash)) {
                return Ok(false);
            }
            if !matches!(expect, Expect::Unchanged { .. } | Expect::Place(_)) {
                self.note_changed(hash);
            }
            if let Some(position) = found.filter(|found| !found.slot.is_on_disk()) {
                self.note_item_removed(position.slot.address());
                table.replace(position, address);
                drop(table);
                self.record_removed(position.slot.address(), old_len);
                break;
            }
            if let Some(position) = found {
                self.replace_on_disk(&mut table, position, (address, expect));
                return Ok(true);
            }
            if table.insert(address, expect.frequency()) {
                if let Some(items) = table.unlock() {
                    tables.split(arena, items, self);
                }
                ghost.remove(hash);
                break;
            }
            drop(table);
            if !tables.make_room(arena, hash, self) {
                return Err(Error::Full);
            }
        }
        self.session.counters.stored.add(1);
        Ok(true)
    }

    /// Points the slot of an item on disk to an item in memory.
    #[cold]
    fn replace_on_disk(
        &self,
        table: &mut LockedTable<'_>,
        position: Position,
        (address, expect): (u64, Expect),
    ) {
        let counters = &self.session.counters;
        if !matches!(expect, Expect::Anything | Expect::Received { .. }) {
            counters.promoted.add(1);
            return table.replace(position, address);
        }
        self.note_record_removed(position.slot);
        table.replace(position, address);
        // The slot of another key may have been the first. It is rare that there is more than one.
        while let Some(other) = table.find(|_| false) {
            self.note_record_removed(other.slot);
            table.remove(other);
        }
        counters.stored.add(1);
    }

    /// Points the index to the record of an item on disk, if the key has no item and was not
    /// changed. Returns whether it did.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub(super) fn publish_on_disk(
        &self,
        hash: KeyHash,
        place: u64,
        frequency: u32,
    ) -> Result<bool> {
        let Cache { arena, tables, .. } = self.cache();
        loop {
            let mut table = tables.lock(arena, hash);
            if !self.cache().may_restore(hash) {
                return Ok(false);
            }
            if table.insert_on_disk(place, frequency) {
                if let Some(items) = table.unlock() {
                    tables.split(arena, items, self);
                }
                return Ok(true);
            }
            drop(table);
            if !tables.make_room(arena, hash, self) {
                return Err(Error::Full);
            }
        }
    }

    /// Appends an item to the open segment for its queue and expiry, and counts it as live. Returns
    /// its address and length, or `None` if a new segment would leave at most `keep` free.
    pub(crate) fn append_item(
        &self,
        state: &mut WriteState,
        queue: Queue,
        (key, value): (&[u8], &[u8]),
        (metadata, keep): (Metadata, u32),
    ) -> Option<(u64, usize)> {
        let Cache { arena, segments, .. } = self.cache();
        let WriteState { tails, deferred_seals, memory_pressure, .. } = state;
        let tail = &mut tails[queue as usize][self.expiry_class(metadata.expires_ms)];
        let len = key.len() + value.len() + Header::MAX_LEN;
        if tail.as_ref().is_none_or(|(_, tail)| tail.remaining() < len) {
            *memory_pressure |=
                !self.open_tail((tail, deferred_seals), queue, metadata.expires_ms, keep);
        }
        let (segment, tail) = tail.as_mut().filter(|(_, tail)| tail.remaining() >= len)?;
        let base_ms = segments.base_ms(segment.number);
        let header = Header::new(key.len(), value.len(), metadata, base_ms);
        let address = tail.address();
        arena.prefetch_behind(tail, header.len());
        header.write(arena.allocate(tail, header.len()), key, base_ms).copy_from_slice(value);
        segments.add_live(segment.number, header.len(), metadata.expires_ms);
        Some((address, header.len()))
    }

    /// Removes the item that was appended last, which the index never pointed to. The next item
    /// starts at its address, so its removed bit is not set.
    pub(super) fn undo_append(
        &self,
        state: &mut WriteState,
        queue: Queue,
        metadata: Metadata,
        (address, len): (u64, usize),
    ) {
        let class = self.expiry_class(metadata.expires_ms);
        if let Some((_, tail)) = &mut state.tails[queue as usize][class] {
            Arena::undo_allocate(tail, len);
        }
        let Cache { segments, epochs, .. } = self.cache();
        segments.remove_live(epochs, address, len);
    }

    /// Returns the expiry class of an item: 0 without expiry, later ones by the time that is left.
    fn expiry_class(&self, expires_ms: Option<u64>) -> usize {
        let Some(at) = expires_ms else { return 0 };
        let left = at.saturating_sub(self.now_ms());
        1 + EXPIRY_CLASS_ENDS_MS.iter().take_while(|end| left > **end).count()
    }

    /// Replaces a tail by that of a new segment. Returns `false` if there is none, or if memory
    /// should be reclaimed now.
    fn open_tail(
        &self,
        (tail, deferred_seals): Tails<'_>,
        queue: Queue,
        expires_ms: Option<u64>,
        keep: u32,
    ) -> bool {
        let Cache { segments, epochs, .. } = self.cache();
        // Short expiries are relative to now, or to a time shortly before the first expiry.
        let far = expires_ms.unwrap_or(0).saturating_sub(Header::MAX_SHORT_EXPIRY_MS / 2);
        let base_ms = self.now_ms().max(far);
        let opened = loop {
            match segments.open(epochs, base_ms, keep) {
                Some(opened) => break opened,
                // Pages of large items may have to be returned to the system first.
                None if self.cache().release_pages() => {}
                None => return false,
            }
        };
        if let Some(removed) = self.removed_bits(opened.0.number) {
            removed.clear(segments.len());
        }
        if let Some((segment, tail)) = tail.replace(opened) {
            if let Some(deferred_seals) = deferred_seals {
                deferred_seals.push((segment, tail, queue));
            } else {
                self.log_before_seal();
                segments.seal(epochs, segment, &tail, queue);
            }
        }
        !self.cache().should_reclaim(0)
    }
}

/// Checks the lengths of a key and a value.
///
/// # Errors
///
/// [`Error::TooLong`] if either exceeds its maximum.
#[inline]
pub(crate) fn check_item(cache: &Cache, key: &[u8], value: &[u8]) -> Result<()> {
    check_len("key", key, Cache::MAX_KEY_LEN)?;
    check_len("value", value, cache.max_value_len())
}

#[inline]
fn check_len(what: &'static str, bytes: &[u8], max: usize) -> Result<()> {
    if bytes.len() > max { Err(too_long(what, bytes.len(), max)) } else { Ok(()) }
}

#[cold]
fn too_long(what: &'static str, len: usize, max: usize) -> Error {
    Error::TooLong { what, len, max }
}
