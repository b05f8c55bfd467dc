//! Entering the parts of a written record into the index.

use super::Outcome;
use crate::id::Id;
use crate::index::Index;
use crate::index::sets::Inserted;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::not_kept::NotKeptReason;
use crate::segment::appender::Reservation;
use crate::segment::record::Record;
use crate::segments::Segments;
use std::sync::atomic::Ordering;

/// Maximum number of times that a record is entered because its index was replaced.
const MAX_TRIES: usize = 8;
/// Words that find no space in an index that cannot grow, before growth is tried again.
const GROWTH_PAUSE: u32 = 1000;

impl Segments {
    /// Enters the parts of a record, again if the index was replaced meanwhile.
    pub(super) fn enter(&self, reservation: &Reservation, record: &Record<'_>) -> Outcome {
        let mut displaced = 0;
        for _ in 0..MAX_TRIES {
            // The index may have been replaced since the put began.
            let Some(index) = self.index() else { return Outcome::NotKept(NotKeptReason::Folder) };
            let Some(slot) = slot_of(index, reservation) else {
                return Outcome::NotKept(NotKeptReason::NoRoom);
            };
            let place = Place { slot, offset: reservation.offset };
            let outcome = self.enter_into(index, place, record, &mut displaced);
            let is_latest = self.indexes.latest().is_some_and(|last| std::ptr::eq(last, index));
            let is_replaced = index.is_copied() || !is_latest;
            if !is_replaced && index.table().number(slot) != reservation.number {
                // Another process evicted the segment, and may have searched for its words before
                // they were entered.
                for number in (record.first..).take(record.parts.len()) {
                    index.sets().remove(Id::new(record.name, number).hash(), place);
                }
                return Outcome::NotKept(NotKeptReason::NoRoom);
            }
            if !is_replaced {
                return match outcome {
                    Outcome::Kept if displaced > 0 => Outcome::Displaced { parts: displaced },
                    outcome => outcome,
                };
            }
            // The copy may have been made before the words were entered. Waits until it is
            // complete, and enters them there.
            match self.folder_guard_for_put() {
                Ok(Some(guard)) => drop(guard),
                Ok(None) => break,
                Err(error) => return Outcome::NotKept(NotKeptReason::of(&error)),
            }
        }
        Outcome::NotKept(NotKeptReason::Busy)
    }

    /// Enters the parts of a record into an index, and grows the index when it is full.
    fn enter_into(
        &self,
        index: &Index,
        place: Place,
        record: &Record<'_>,
        displaced: &mut u64,
    ) -> Outcome {
        let table = index.table();
        let is_gone = |place: Place| table.number(place.slot) == 0;
        let mut outcome = Outcome::Kept;
        for (number, part) in (record.first..).zip(record.parts) {
            let id = Id::new(record.name, number);
            let hash = id.hash();
            if index.sets().insert(hash, place, 0, is_gone) == Inserted::Full {
                if self.grow(index) {
                    return outcome;
                }
                if index.sets().displace(hash, place) {
                    index.word(at::DISPLACED).fetch_add(1, Ordering::Relaxed);
                    *displaced += 1;
                }
            }
            // Another process or thread may have stored the same part meanwhile.
            let Some(sum) = self.other_checksum(index, &id, place, record.label) else { continue };
            index.sets().remove(hash, place);
            let first_conflict =
                if let Outcome::Duplicate { conflict } = outcome { conflict } else { None };
            outcome = Outcome::Duplicate {
                conflict: first_conflict.or((sum != part.checksum).then_some(number)),
            };
        }
        outcome
    }

    /// Returns the checksum of a part that is also stored at another place than `except`.
    fn other_checksum(&self, index: &Index, id: &Id, except: Place, label: &[u8]) -> Option<u64> {
        let mut places = index.sets().lookup(id.hash()).filter(|(_, place)| *place != except);
        places.find_map(|(_, place)| {
            let head = self.segment(index, place.slot)?.head(place.offset)?;
            let is_stored = head.holds(id, label) && !head.is_expired(self.options.clock.now_ms());
            is_stored.then(|| head.position(id.number).map(|part| head.parts[part].checksum))?
        })
    }

    /// Grows an index in which a word found no space. Returns whether there is another index now.
    fn grow(&self, full_index: &Index) -> bool {
        let pause = &self.growth_pause;
        let decrement = |count: u32| count.checked_sub(1);
        if pause.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement).is_ok() {
            return false;
        }
        let Ok(Some(mut guard)) = self.folder_guard_for_put() else { return false };
        let has_grown = !std::ptr::eq(guard.index, full_index) || guard.grow(true).unwrap_or(false);
        if !has_grown {
            pause.store(GROWTH_PAUSE, Ordering::Relaxed);
        }
        has_grown
    }
}

/// Returns the slot of the segment in which a record was written.
fn slot_of(index: &Index, reservation: &Reservation) -> Option<u32> {
    if index.family == reservation.family {
        return Some(reservation.slot);
    }
    // A rebuilt index may have the segment in another slot.
    let mut rows = index.table().rows();
    rows.find(|(_, row)| row.file_number == reservation.number).map(|(slot, _)| slot)
}
