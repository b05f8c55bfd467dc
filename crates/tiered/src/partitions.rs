//! The items on disk of some partitions of the keys: making them invalid, and reading them.

use crate::convert::on_disk;
use crate::first_records::FirstRecords;
use crate::options::Event;
use crate::promote::LONG_READ;
use crate::shared::Shared;
use crate::tiered::TieredCache;
use nuthatch_cache::{Guard, KeyHash, Session};
use nuthatch_tier::{AlignedBuffer, Directory, Entry, Place, ReadError, Record, RecordId};
use std::ops::ControlFlow;

/// Entries of a directory that are compared with the index under one guard.
const ENTRIES_PER_GUARD: usize = 256;

/// Records are read together if at most this many blocks are between them: reading those takes
/// less time than another read.
const MAX_GAP_BLOCKS: u64 = 16;

/// Records that are read together begin within this many blocks.
const MAX_RUN_BLOCKS: u64 = (LONG_READ / 4096) as u64;

/// A record on disk that may have the current item of its key.
#[derive(Debug)]
pub struct DiskRecord<'r> {
    /// The record.
    pub record: Record<'r>,
    place: Place,
    id: RecordId,
}

/// Selects partitions.
pub type Selects<'s> = &'s dyn Fn(u16) -> bool;

impl TieredCache {
    /// Returns a number that identifies the folder. Ids of its records mean nothing in another one.
    #[must_use]
    pub fn folder_id(&self) -> u64 {
        self.shared.folder_id
    }

    /// Returns which records of each partition are valid; `None` without
    /// [partitions](crate::Options::partitions).
    #[must_use]
    pub fn first_records(&self) -> Option<&FirstRecords> {
        self.shared.first_records.as_ref()
    }

    /// Makes all records of some partitions invalid, and writes none of their items to disk, until
    /// [`resume`](Self::resume). Items that are in memory stay. Wait for the guards of other
    /// sessions afterwards: records that were read before may still be promoted until then.
    pub fn suspend(&self, partitions: impl Iterator<Item = u16>) {
        // The demoter is not writing then.
        let _tier = self.shared.tier();
        if let Some(first_records) = &self.shared.first_records {
            partitions.for_each(|partition| first_records.set(partition, FirstRecords::SUSPENDED));
        }
    }

    /// Makes the records of some partitions valid that are written from now on.
    pub fn resume(&self, partitions: impl Iterator<Item = u16>) {
        let tier = self.shared.tier();
        // Without a writer, no record is written any more.
        let next = tier.as_ref().map_or(FirstRecords::LATER, |tier| tier.next_id().pack());
        if let Some(first_records) = &self.shared.first_records {
            partitions.for_each(|partition| first_records.set(partition, next));
        }
    }

    /// Removes the items of invalid records of these partitions from the index. Stops if
    /// `is_wanted` returns `false`. Returns the number of items that were removed.
    pub fn forget_invalid(
        &self,
        session: &mut Session<'_>,
        partitions: Selects<'_>,
        is_wanted: &dyn Fn() -> bool,
    ) -> u64 {
        let mut forgotten = 0;
        for number in self.item_files() {
            if !is_wanted() {
                break;
            }
            let Some(directory) = self.shared.directory(number) else { continue };
            let is_invalid = |entry: &Entry| {
                let partition = KeyHash::from_u64(entry.hash).partition();
                partitions(partition) && !self.shared.is_valid(number, entry)
            };
            let mut entries = directory.iter().filter(is_invalid).peekable();
            while entries.peek().is_some() {
                let guard = session.guard_without_freeing();
                for entry in entries.by_ref().take(ENTRIES_PER_GUARD) {
                    // If the file was removed meanwhile, the place may be that of another record.
                    // It is not removed while the guard exists.
                    let id = self.shared.reader.record_id(entry.place);
                    let is_it = id.is_some_and(|id| id.file == number);
                    forgotten += u64::from(is_it && guard.forget_invalid(on_disk(&entry)));
                }
            }
        }
        forgotten
    }

    /// Returns the numbers of the item files, the oldest first.
    #[must_use]
    pub fn item_files(&self) -> Vec<u64> {
        self.shared.reader.numbers()
    }

    /// Reads the records of an item file that may have the current items of keys of these
    /// partitions, until `visit` returns [`ControlFlow::Break`]. Items that are promoted meanwhile
    /// are visited as well. Records that are damaged are reported, and left out.
    pub fn visit_records(
        &self,
        session: &mut Session<'_>,
        (number, partitions): (u64, Selects<'_>),
        visit: &mut dyn FnMut(&mut Session<'_>, &DiskRecord<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(directory) = self.shared.directory(number) else {
            return ControlFlow::Continue(());
        };
        let places = self.candidates(session, &directory, (number, partitions));
        let mut buffer = AlignedBuffer::new(0);
        for run in places.chunk_by(|place, next| is_near(*place, *next)) {
            for part in parts(run) {
                self.visit_run(session, part, &mut buffer, visit)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns whether the index points to a record, so that its item is current.
    #[must_use]
    pub fn is_current(&self, guard: &Guard<'_>, found: &DiskRecord<'_>) -> bool {
        let DiskRecord { record, place, id } = found;
        // The place may be that of another record, if the item file was removed meanwhile.
        self.shared.reader.record_id(*place) == Some(*id)
            && guard.find_on_disk(record.key).is_some_and(|found| found.place() == place.pack())
    }

    /// Returns the places of records that may be current, in ascending order.
    fn candidates(
        &self,
        session: &mut Session<'_>,
        directory: &Directory,
        (number, partitions): (u64, Selects<'_>),
    ) -> Vec<Place> {
        let is_wanted = |entry: &Entry| {
            let partition = KeyHash::from_u64(entry.hash).partition();
            partitions(partition) && self.shared.is_valid(number, entry)
        };
        let mut entries = directory.iter().filter(is_wanted).peekable();
        let mut places = Vec::new();
        while entries.peek().is_some() {
            let guard = session.guard_without_freeing();
            let chunk = entries.by_ref().take(ENTRIES_PER_GUARD);
            let current = chunk.filter(|entry| guard.may_be_current(on_disk(entry)));
            places.extend(current.map(|entry| entry.place));
        }
        places
    }

    /// Reads records that are near each other in one read.
    fn visit_run(
        &self,
        session: &mut Session<'_>,
        places: &[Place],
        buffer: &mut AlignedBuffer,
        visit: &mut dyn FnMut(&mut Session<'_>, &DiskRecord<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Shared { reader, state, .. } = &*self.shared;
        let plans = reader.read_plans(places).unwrap_or_default();
        let Some(first) = plans.first() else { return ControlFlow::Continue(()) };
        let mut long_buffer = AlignedBuffer::new(0);
        let buffer = if first.len() > 2 * LONG_READ { &mut long_buffer } else { buffer };
        let filled = reader.fill(first, buffer);
        for plan in &plans {
            let bytes = filled.clone().map(|()| &buffer.as_slice()[..plan.len()]);
            match bytes.and_then(|bytes| plan.parse_any(bytes)) {
                Ok(record) => {
                    visit(session, &DiskRecord { record, place: plan.place(), id: plan.id() })?;
                }
                Err(ReadError::Damaged(damage)) => state.report(Event::Damaged(damage)),
                Err(_) => {}
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns whether two records of a file are read together.
fn is_near(place: Place, next: Place) -> bool {
    next.first_block() <= place.first_block() + u64::from(place.blocks) + MAX_GAP_BLOCKS
}

/// Divides records that follow each other into those that are read together.
fn parts(places: &[Place]) -> impl Iterator<Item = &[Place]> {
    let mut rest = places;
    std::iter::from_fn(move || {
        let first = rest.first()?.first_block();
        let is_in = |place: &Place| place.first_block() - first < MAX_RUN_BLOCKS;
        let count = rest.iter().take_while(|place| is_in(place)).count();
        let part;
        (part, rest) = rest.split_at(count);
        Some(part)
    })
}
