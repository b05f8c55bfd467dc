//! Demotion: choosing items that are written to disk, and pointing the index to their records.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::item::{Header, Item, NO_SESSION};
use crate::session::demotions::Demotions;
use crate::session::state::{Guard, Session};

/// Maximum number of items that are examined for expiry before each victim.
const MAX_EXPIRY_CHECKS: usize = 4096;

impl Session<'_> {
    /// Returns whether items should be written to disk now: whether fewer segments are free than
    /// those at which writers begin to evict, `spare_segments` more, and those that a write
    /// requested. If enough are free, the request has ended.
    pub fn should_demote(&self, spare_segments: u32) -> bool {
        let _guard = self.begin();
        let is_short = self.cache.is_below_target(self.cache.spare_and_requested(spare_segments));
        if !is_short {
            self.cache.end_request();
        }
        is_short
    }

    /// Chooses items to demote: about `bytes` bytes of them, or fewer if then enough segments are
    /// free, as for [`should_demote`](Self::should_demote). Items that have a record already are
    /// demoted at once: the index points to the record then.
    ///
    /// A [`Session`] that calls this must call [`finish_demotions`](Self::finish_demotions) for all
    /// that it returns.
    pub fn choose_demotions(&mut self, bytes: usize, spare_segments: u32) -> Demotions {
        let guard = self.begin();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.demotions = Some(Demotions::default());
        let segments = &self.cache.segments;
        let free_segments = self.cache.spare_and_requested(spare_segments);
        loop {
            let kept = state.victim.take().filter(|kept| segments.is_current(kept.segment));
            let kept = kept.or_else(|| {
                while guard.scan_expired(state, MAX_EXPIRY_CHECKS).is_some() {}
                state.victim.take().or_else(|| guard.choose_victim(free_segments, true))
            });
            let Some(mut victim) = kept else {
                self.cache.end_request();
                break;
            };
            let segment_ref = segments.acquire_ref(victim.segment.number);
            if let Some(demotions) = &mut state.demotions {
                demotions.segments.push(segment_ref);
            }
            let mut has_room = true;
            let mut is_enough = false;
            while has_room && !is_enough && !victim.is_done() {
                has_room = guard.process_group(state, &mut victim);
                is_enough = state.demotions.as_ref().is_some_and(|all| all.bytes >= bytes);
            }
            if !has_room {
                victim.return_to_queue(self.cache);
                break;
            }
            if !victim.is_done() {
                state.victim = Some(victim);
            }
            if is_enough {
                break;
            }
        }
        state.demotions.take().unwrap_or_default()
    }

    /// Calls `each` with each item of `demotions`, and returns what it returned.
    ///
    /// # Panics
    ///
    /// If `demotions` are from another cache.
    pub fn map_demotions<R>(
        &self,
        demotions: &Demotions,
        mut each: impl FnMut(&Item<'_>, KeyHash) -> R,
    ) -> Vec<R> {
        let Cache { arena, segments, .. } = self.cache;
        let items = demotions.items.iter().map(|(hash, address)| {
            let number = segments.segment_of(*address);
            // One of these references keeps the segment of the item.
            let segment_ref = demotions.segments.iter().find(|it| it.number() == number);
            let segment_ref = segment_ref.expect("a reference to the segment");
            let read = |len| arena.read_referenced(segment_ref, *address, len);
            let header = Header::read(read, || segments.base_ms(number));
            let bytes = read(header.len());
            each(&Item { bytes, header, frequency: 0, session: NO_SESSION }, *hash)
        });
        items.collect()
    }

    /// Removes the items of `demotions` from memory. `places` has the place of the record of each
    /// item, or `None` for an item that was not written, which is evicted. The index points to the
    /// records afterwards. Records of items that were replaced or removed meanwhile are noted as
    /// removed.
    pub fn finish_demotions(&mut self, demotions: Demotions, places: &[Option<u64>]) {
        let Demotions { items, segments, .. } = demotions;
        let guard = self.begin();
        for ((hash, address), place) in items.iter().zip(places) {
            guard.finish_demotion(*hash, *address, *place);
        }
        drop(guard);
        for segment_ref in &segments {
            self.cache.segments.release_ref(&self.cache.epochs, segment_ref);
        }
    }
}

impl Guard<'_> {
    /// Removes an item from memory, whose record is at a place. Does nothing if the index does not
    /// point to the item any more.
    fn finish_demotion(&self, hash: KeyHash, address: u64, place: Option<u64>) {
        let Cache { arena, tables, .. } = self.cache();
        let item = self.item(address, 0);
        let mut table = tables.lock(arena, hash);
        let Some(position) = table.find_address(address) else {
            // The record is of an item that is out of date.
            if let Some(place) = place {
                self.note_place_removed(place);
            }
            return;
        };
        match place {
            Some(place) => table.move_to_disk(position, place, 0),
            None => table.remove(position),
        }
        drop(table);
        self.record_removed(address, item.header.len());
        self.session.counters.evicted.add(u64::from(place.is_none()));
        self.session.counters.demoted.add(u64::from(place.is_some()));
        self.cache().segments.add_evicted(1);
    }

    /// Points the index to the record of an item in memory that has not changed since it was read
    /// from there. Returns `false` if it has no record.
    pub(super) fn evict_to_record(&self, hash: KeyHash, address: u64, item: &Item<'_>) -> bool {
        let Cache { arena, tables, records, .. } = self.cache();
        let Some(records) = records else { return false };
        let place = item.header.metadata.record.and_then(|id| records.records.place(id));
        let Some(place) = place else { return false };
        let mut table = tables.lock(arena, hash);
        if let Some(position) = table.find_address(address) {
            table.move_to_disk(position, place, 0);
            drop(table);
            self.record_removed(address, item.header.len());
            self.session.counters.demoted_unchanged.add(1);
        }
        true
    }
}
