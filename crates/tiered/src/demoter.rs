//! The demoter: writes items to disk before writers have to evict them, and makes room on disk.

use crate::convert::{on_disk, record_of};
use crate::shared::Shared;
use crate::stats::Counters;
use crate::waiting::RoomWaiters;
use nuthatch_cache::{Demotions, Session};
use nuthatch_tier::{Directory, Error, Place, Record, Tier};
use std::thread;
use std::time::Duration;

/// Maximum bytes of items that are chosen at a time. They are written in one or a few batches.
const MAX_CHOSEN_BYTES: usize = 1 << 20;

/// Assumed rate of writers in bytes per millisecond. While there is enough free memory, the demoter
/// looks at it again after the time in which writers fill the spare segments at this rate.
const WRITE_RATE: u64 = 1 << 20;
/// Limits of that time.
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// Minimum number of spare segments: segments that the demoter keeps free beyond those at which
/// writers evict.
const MIN_SPARE_SEGMENTS: u32 = 4;
/// One of this many segments of the budget is a spare one.
const SPARE_SEGMENT_RATIO: u64 = 64;

/// Entries of a directory that are removed from the index under one guard.
const ENTRIES_PER_GUARD: usize = 256;

/// Writes items to disk until the tier stops.
pub(crate) fn run(shared: &Shared, room_waiters: &RoomWaiters) {
    let _closing = CloseOnDrop(room_waiters);
    demote_all(shared, room_waiters);
}

/// Closes the waiters when the demoter ends, also after a panic: no further memory is freed.
struct CloseOnDrop<'a>(&'a RoomWaiters);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn demote_all(shared: &Shared, room_waiters: &RoomWaiters) {
    let (Ok(mut session), Ok(mut remover)) = (shared.cache.session(), shared.cache.session())
    else {
        return shared.state.fail(&"no session is free");
    };
    room_waiters.set_demoter();
    let granule = shared.cache.granule_len() as u64;
    let spare_segments = (shared.cache.memory() / granule / SPARE_SEGMENT_RATIO) as u32;
    let demoter = Demoter { shared, spare_segments: spare_segments.max(MIN_SPARE_SEGMENTS) };
    let pause = Duration::from_millis(u64::from(demoter.spare_segments) * granule / WRITE_RATE);
    let pause = pause.clamp(MIN_PAUSE, MAX_PAUSE);
    while !shared.state.is_stopping() {
        if shared.state.is_off() {
            // Nothing can be written, so items have to be evicted.
            shared.cache.set_evicts_unwritten(true);
            break;
        }
        demoter.remove_unused(&mut remover);
        let is_short = session.should_demote(demoter.spare_segments);
        let has_written = is_short && demoter.step(&mut session, &mut remover);
        room_waiters.call(is_short);
        if !has_written {
            thread::park_timeout(pause);
        }
    }
}

struct Demoter<'a> {
    shared: &'a Shared,
    spare_segments: u32,
}

impl Demoter<'_> {
    /// Writes the next items. Returns whether there were any. `remover` is the session for removing
    /// item files.
    fn step(&self, session: &mut Session<'_>, remover: &mut Session<'_>) -> bool {
        let max_bytes = MAX_CHOSEN_BYTES.min(2 * self.shared.cache.granule_len());
        let demotions = session.choose_demotions(max_bytes, self.spare_segments);
        let is_empty = demotions.is_empty();
        let mut guard = self.shared.tier();
        let Some(tier) = &mut *guard else {
            let places = vec![None; demotions.len()];
            session.finish_demotions(demotions, &places);
            return false;
        };
        let places = self.write((session, remover), tier, &demotions);
        session.finish_demotions(demotions, &places);
        if !is_empty && !self.shared.state.is_off() {
            // Only now is it known which of the items were replaced or removed meanwhile. After an
            // error, some records are of items that were dropped.
            self.shared.records.commit();
        }
        !is_empty
    }

    /// Writes items, and returns the places of their records: `None` for those that were not
    /// written.
    fn write(
        &self,
        (session, remover): (&Session<'_>, &mut Session<'_>),
        tier: &mut Tier,
        demotions: &Demotions,
    ) -> Vec<Option<u64>> {
        let Shared { state, .. } = self.shared;
        let counters = &state.counters;
        let before = tier.written_bytes();
        let first = tier.files().last().map_or(0, |file| file.number);
        let mut suspended = 0;
        let mut places = session.map_demotions(demotions, |item, hash| {
            if self.shared.is_suspended(hash) {
                suspended += 1;
                return None;
            }
            let record = record_of(item, hash.to_u64()).filter(|_| !state.is_off())?;
            let place = self.append(remover, (tier, first), &record)?;
            Counters::add(&counters.written, 1);
            let len = item.key().len() + item.value().len();
            Counters::add(&counters.written_item_bytes, len as u64);
            Some(place.pack())
        });
        if let Err(error) = tier.flush() {
            state.fail(&error);
        }
        if state.is_off() {
            places.fill(None);
        }
        Counters::add(&counters.written_bytes, tier.written_bytes() - before);
        let dropped = places.iter().filter(|place| place.is_none()).count();
        Counters::add(&counters.dropped, dropped as u64 - suspended);
        places
    }

    /// Appends a record, and removes the oldest item files if there is no room for the next one.
    /// Returns the place of the record, or `None` if it was not written. The item file `first` and
    /// those after it stay: they have records to which the index does not point yet.
    fn append(
        &self,
        remover: &mut Session<'_>,
        (tier, first): (&mut Tier, u64),
        record: &Record<'_>,
    ) -> Option<Place> {
        loop {
            let error = match tier.append(record) {
                Ok(place) => return Some(place),
                Err(Error::BudgetReached { .. }) => {
                    if tier.files().first().is_none_or(|oldest| oldest.number >= first) {
                        return None;
                    }
                    match self.remove_oldest(remover, tier) {
                        Ok(true) => continue,
                        Ok(false) => return None,
                        Err(error) => error,
                    }
                }
                // A key of the maximum length, or an item that is longer than the disk.
                Err(Error::TooLong { .. }) => return None,
                Err(error) => error,
            };
            self.shared.state.fail(&error);
            return None;
        }
    }

    /// Removes item files without items after all were removed, and the oldest one if the removal
    /// log needs its space.
    fn remove_unused(&self, session: &mut Session<'_>) {
        let Shared { records, state, .. } = self.shared;
        let mut guard = self.shared.tier();
        let Some(tier) = &mut *guard else { return };
        let cleared_before = records.take_cleared();
        let is_cleared =
            |tier: &Tier| tier.files().first().is_some_and(|oldest| oldest.number < cleared_before);
        let mut result = Ok(true);
        while matches!(result, Ok(true)) && (is_cleared(tier) || tier.lacks_room_for_removals()) {
            result = self.remove_oldest(session, tier);
        }
        if let Err(error) = result {
            state.fail(&error);
        }
    }

    /// Removes the oldest item file. Returns `false` if there is none but the open one.
    fn remove_oldest(&self, session: &mut Session<'_>, tier: &mut Tier) -> Result<bool, Error> {
        let Shared { records, state, .. } = self.shared;
        let Some(oldest) = tier.files().first().filter(|file| file.is_sealed).copied() else {
            return Ok(false);
        };
        let directory = self.shared.directory(oldest.number);
        records.set_leaving(oldest.number);
        // A guard that began before may still point a slot to the file.
        session.wait_for_guards_of_others();
        // The file is removed first: while it exists, the index must know its items, since those
        // that are replaced have to be noted as removed.
        let removed = tier.remove_file(oldest.number);
        if let Some(directory) = directory.filter(|_| removed.is_ok()) {
            let removed = forget_all(session, &directory);
            Counters::add(&state.counters.removed_for_room, removed);
        }
        records.set_leaving(0);
        removed.map(|()| true)
    }
}

/// Removes the items of an item file from the index. Returns how many there were.
fn forget_all(session: &mut Session<'_>, directory: &Directory) -> u64 {
    let mut removed = 0;
    let mut entries = directory.iter().peekable();
    while entries.peek().is_some() {
        let guard = session.guard_without_freeing();
        for entry in entries.by_ref().take(ENTRIES_PER_GUARD) {
            removed += u64::from(guard.forget(on_disk(&entry)));
        }
    }
    removed
}
