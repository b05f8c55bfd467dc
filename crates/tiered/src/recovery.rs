//! Points the index to the records of the last run, while the cache is already in use.

use crate::options::Event;
use crate::shared::Shared;
use crate::stats::Counters;
use nuthatch_cache::{Clock, Error, Guard, KeyHash, Records, Session, SystemClock};
use nuthatch_tier::{Entry, RemovedRecords};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

/// Entries of a directory that are added to the index under one guard.
const ENTRIES_PER_GUARD: usize = 128;

/// How often an entry for which the index has no room is retried.
const MAX_RETRIES: usize = 100;

/// Recovers all records. `files` are the item files of the last run, the oldest first, and
/// `removed` has the records whose items were replaced or removed.
pub(crate) fn run(shared: &Shared, files: &[u64], removed: &RemovedRecords) {
    let start = Instant::now();
    remove_incomplete(shared, files, removed);
    let items = match shared.cache.session() {
        Ok(mut session) => recover_all(shared, &mut session, files, removed),
        Err(_) => 0,
    };
    let lost = shared.state.counters.read().lost;
    if lost > 0 {
        shared.state.report(Event::RecordsLost { records: lost });
    }
    shared.cache.end_restore();
    shared.state.is_recovering.store(false, Ordering::SeqCst);
    shared.state.report(Event::Recovered { items, elapsed: start.elapsed() });
}

fn recover_all(
    shared: &Shared,
    session: &mut Session<'_>,
    files: &[u64],
    removed: &RemovedRecords,
) -> u64 {
    let mut items = 0;
    let expected = shared.state.counters.read().to_recover;
    session.guard().prepare_index(expected);
    for number in files.iter().rev() {
        if shared.state.is_stopping() {
            break;
        }
        let Some(directory) = shared.directory(*number) else { continue };
        let removed = removed.in_file(*number);
        let now_ms = SystemClock.now_ms();
        let mut lost = 0;
        let is_valid = |entry: &Entry| {
            let has_expired = entry.expires_ms.is_some_and(|at_ms| at_ms <= now_ms);
            let is_removed = removed.contains(entry.place.unit, entry.hash);
            lost += u64::from(is_removed && removed.is_lost(entry.place.unit, entry.hash));
            !has_expired && !is_removed && shared.is_valid(*number, entry)
        };
        // Of two records of a key, the later one is valid.
        let mut entries = directory.iter().rev().filter(is_valid).peekable();
        let before = items;
        while entries.peek().is_some() && !shared.state.is_stopping() {
            let chunk = entries.by_ref().take(ENTRIES_PER_GUARD);
            let recovered = recover(shared, session, *number, chunk);
            Counters::add(&shared.state.counters.recovered, recovered);
            items += recovered;
        }
        Counters::add(&shared.state.counters.lost, lost);
        if items == before && !shared.state.is_stopping() {
            remove_file(shared, *number);
        }
    }
    items
}

/// Removes an item file without valid records, to which the index does not point.
fn remove_file(shared: &Shared, number: u64) {
    if let Some(tier) = shared.tier().as_mut()
        && let Err(error) = tier.remove_file(number)
    {
        shared.state.fail(&error);
    }
}

/// Removes the records that were not complete when the process ended, so that they are not
/// recovered later, either. Before that, no record may be committed, nor the tier be closed.
fn remove_incomplete(shared: &Shared, files: &[u64], removed: &RemovedRecords) {
    for number in files.iter().rev() {
        let removed = removed.in_file(*number);
        if removed.is_committed(u32::MAX) {
            // All files before this one are complete, too.
            break;
        }
        let Some(directory) = shared.directory(*number) else { continue };
        let incomplete = directory.iter().filter(|entry| !removed.is_committed(entry.place.unit));
        let ids: Vec<_> =
            incomplete.filter_map(|entry| shared.records.id(entry.place.pack())).collect();
        if !ids.is_empty() {
            shared.records.note_removed(&ids);
        }
    }
}

/// Adds records of an item file to the index. Returns how many were added.
fn recover(
    shared: &Shared,
    session: &mut Session<'_>,
    number: u64,
    entries: impl Iterator<Item = Entry>,
) -> u64 {
    let mut recovered = 0;
    let mut guard = session.guard();
    for entry in entries {
        if !shared.is_valid(number, &entry) {
            // It has become invalid before this guard began, or is not valid for now.
            continue;
        }
        if recover_one(&mut guard, entry) {
            recovered += 1;
        } else {
            // The key was changed, or will be without knowing of the record. It must not be found
            // after the next crash, either.
            let id = shared.records.id(entry.place.pack());
            shared.records.note_removed(id.as_slice());
        }
    }
    recovered
}

/// Adds a record to the index. Returns `false` if its key was changed or the index has no room.
fn recover_one(guard: &mut Guard<'_>, entry: Entry) -> bool {
    let (hash, place) = (KeyHash::from_u64(entry.hash), entry.place.pack());
    for _ in 0..MAX_RETRIES {
        match guard.recover(hash, place, u32::from(entry.frequency)) {
            Err(Error::Full) => {
                guard.renew();
                thread::yield_now();
            }
            result => return result.unwrap_or(false),
        }
    }
    false
}
