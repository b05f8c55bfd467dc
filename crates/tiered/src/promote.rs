//! What follows a read: the item of the record is promoted to memory, or removed.

use crate::convert::write_of;
use crate::options::Event;
use crate::shared::Shared;
use crate::stats::Counters;
use nuthatch_cache::{Error, OnDisk, Session};
use nuthatch_tier::{Place, ReadError, Record, RecordId};

/// Length of a read above which an item is long: it is costly to read it again.
pub(crate) const LONG_READ: usize = 1 << 20;

/// Whether an operation that needs an item can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promoted {
    /// It can be repeated. It finds the item in memory, or there is none.
    Done,
    /// There was no memory for the item, which is still on disk.
    NoMemory,
}

/// A record that was read, its id, and the bytes that were read for it.
pub(crate) type ReadRecord<'b> = (Record<'b>, RecordId, usize);

/// Counts a read. Returns the record, or `None` if it cannot be used. `is_current` returns whether
/// the index still points to the place that was read.
pub(crate) fn count_read<'b>(
    shared: &Shared,
    read: Result<ReadRecord<'b>, ReadError>,
    is_current: impl FnOnce() -> bool,
) -> Option<ReadRecord<'b>> {
    let counters = &shared.state.counters;
    Counters::add(&counters.reads, 1);
    match read {
        Ok(record) => {
            Counters::add(&counters.read_bytes, record.2 as u64);
            return Some(record);
        }
        // The file was removed meanwhile, and its places with it.
        Err(ReadError::Missing) => {}
        // It was removed before the read: the place is one of another file now, and may be in the
        // middle of a record.
        Err(_) if !is_current() => {}
        Err(error) => {
            Counters::add(&counters.bad_records, 1);
            if let ReadError::Damaged(damage) = error {
                shared.state.report(Event::Damaged(damage));
            }
        }
    }
    None
}

/// Ends a read that was counted: promotes the item of its record. Frees memory up to `max_renewals`
/// times. If the item cannot be promoted for another reason than memory, or there is no record, the
/// index does not point to it afterwards.
pub(crate) fn finish_read(
    shared: &Shared,
    session: &mut Session<'_>,
    on_disk: OnDisk,
    record: Option<&ReadRecord<'_>>,
    max_renewals: usize,
) -> Promoted {
    if let Some((record, id, _)) = record {
        return promote(shared, session, on_disk, (record, *id), max_renewals);
    }
    session.guard().forget(on_disk);
    Promoted::Done
}

fn promote(
    shared: &Shared,
    session: &mut Session<'_>,
    on_disk: OnDisk,
    (record, id): (&Record<'_>, RecordId),
    max_renewals: usize,
) -> Promoted {
    let Shared { cache, reader, state, .. } = shared;
    let counters = &state.counters;
    let mut guard = session.guard();
    let current = reader.record_id(Place::unpack(on_disk.place(), 0));
    if current.is_some_and(|current| current != id) {
        // The file was removed during the read, and the place is used for another record.
        return Promoted::Done;
    }
    let is_valid = current.is_some() && shared.allows(record.hash, id);
    let Some(write) = write_of(record).filter(|_| is_valid) else {
        guard.forget(on_disk);
        return Promoted::Done;
    };
    if record.is_compressed && !(shared.can_decompress)(record.value) {
        Counters::add(&counters.undecodable, 1);
        state.report(Event::Undecodable);
        guard.forget(on_disk);
        return Promoted::Done;
    }
    if !on_disk.is_needed_for(cache.hash(record.key)) {
        Counters::add(&counters.false_matches, 1);
    }
    let item = (record.key, record.value);
    for _ in 0..max_renewals {
        match guard.promote(on_disk.place(), id.pack(), item, &write) {
            Ok(true) => {
                Counters::add(&counters.hits, 1);
                return Promoted::Done;
            }
            Err(Error::Full) => {
                guard.renew();
            }
            Ok(false) | Err(_) => {
                guard.forget(on_disk);
                return Promoted::Done;
            }
        }
    }
    Promoted::NoMemory
}
