//! Entering the parts of a record that is written into the index.

use super::Outcome;
use crate::id::Id;
use crate::index::Index;
use crate::index::sets::Inserted;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::not_kept::Reason;
use crate::segment::appender::Space;
use crate::segment::record::Record;
use crate::segments::Segments;
use std::sync::atomic::Ordering;

/// Maximum number of times that a record is entered again because its index is replaced.
const ENTER_TRIES: usize = 8;

impl Segments {
    /// Enters the parts of a record that is written into the index.
    pub(super) fn enter(&self, space: &Space, record: &Record<'_>) -> Outcome {
        let mut displaced = 0;
        for _ in 0..ENTER_TRIES {
            // It may be another one than when the put began.
            let Some(index) = self.index() else { return Outcome::NotKept(Reason::Folder) };
            let Some(slot) = slot_of(index, space) else {
                return Outcome::NotKept(Reason::NoRoom);
            };
            let place = Place { slot, offset: space.offset };
            let outcome = self.enter_into(index, place, record, &mut displaced);
            let last = self.indexes.last().is_some_and(|last| std::ptr::eq(last, index));
            let replaced = index.is_copied() || !last;
            if !replaced && index.table().number(slot) != space.number {
                // Evicted meanwhile, by a process that may have looked for words before they were
                // there.
                for number in (record.first..).take(record.parts.len()) {
                    index.sets().remove(Id::new(record.name, number).hash(), place);
                }
                return Outcome::NotKept(Reason::NoRoom);
            }
            if !replaced {
                return match outcome {
                    Outcome::Kept if displaced > 0 => Outcome::Displaced { parts: displaced },
                    outcome => outcome,
                };
            }
            // The copy may have been made before or after. Wait for it, and enter them there.
            match self.turn() {
                Ok(Some(turn)) => drop(turn),
                Ok(None) => break,
                Err(error) => return Outcome::NotKept(Reason::of(&error)),
            }
        }
        Outcome::NotKept(Reason::Busy)
    }

    /// Enters parts into the index, and grows the index when it is full.
    fn enter_into(
        &self,
        index: &Index,
        place: Place,
        record: &Record<'_>,
        displaced: &mut u64,
    ) -> Outcome {
        let table = index.table();
        let gone = |place: Place| table.number(place.slot) == 0;
        let mut outcome = Outcome::Kept;
        for (number, part) in (record.first..).zip(record.parts) {
            let id = Id::new(record.name, number);
            let hash = id.hash();
            if index.sets().insert(hash, place, 0, gone) == Inserted::Full {
                if self.grow(index) {
                    return outcome;
                }
                if index.sets().displace(hash, place) {
                    index.word(at::DISPLACED).fetch_add(1, Ordering::Relaxed);
                    *displaced += 1;
                }
            }
            // Another one may have put the same part since it was looked for.
            let Some(sum) = self.other_sum(index, &id, place, record.label) else { continue };
            index.sets().remove(hash, place);
            let before = if let Outcome::Met { other } = outcome { other } else { None };
            outcome = Outcome::Met { other: before.or((sum != part.sum).then_some(number)) };
        }
        outcome
    }

    /// The checksum of a part that lies elsewhere too.
    fn other_sum(&self, index: &Index, id: &Id, but: Place, label: &[u8]) -> Option<u64> {
        let mut places = index.sets().of(id.hash()).filter(|(_, place)| *place != but);
        places.find_map(|(_, place)| {
            let head = self.segment(index, place.slot)?.head(place.offset)?;
            let there = head.holds(id, label) && !head.expired(self.options.clock.now_ms());
            there.then(|| head.position(id.number).map(|part| head.parts[part].sum))?
        })
    }
}

/// Returns the slot of the segment in which a record was written.
fn slot_of(index: &Index, space: &Space) -> Option<u32> {
    if index.family == space.family {
        return Some(space.slot);
    }
    // The index was made again, and may have the segment in another slot.
    let mut rows = index.table().rows();
    rows.find(|(_, row)| row.file == space.number).map(|(slot, _)| slot)
}
