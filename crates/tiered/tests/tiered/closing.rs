//! Closing a cache and opening its folder again.

use crate::{
    Client, DISK, Events, cache_options, fill, folder_for, key, open, open_recovered, value,
};
use nuthatch_cache::{Expiry, Write};
use nuthatch_tiered::{Event, TieredCache};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of items.
const ITEMS: u64 = 12_000;

/// A time in the year 2100.
const EXPIRES_MS: u64 = 4_102_444_800_000;

fn close(tiered: &TieredCache) {
    tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
}

/// The options of an item, which depend on its number.
fn write_of(number: u64) -> Write<'static> {
    let expires = Expiry::At(EXPIRES_MS + number);
    let expiry = if number.is_multiple_of(3) { expires } else { Expiry::Never };
    Write::new().expiry(expiry).flags((number % 5) as u32)
}

fn check_all(client: &mut Client<'_>, cas: &[u64]) {
    for number in 0..ITEMS {
        let found = client.run(|guard| {
            let found = guard.get_with_cas(&key(number))?;
            Ok(found
                .map(|(item, cas)| (item.value().to_vec(), item.expires_ms(), item.flags(), cas)))
        });
        let (found, expires_ms, flags, found_cas) = found.expect("the item");
        assert!(found == value(number, 0, 2000), "{number}");
        let expected_ms = number.is_multiple_of(3).then_some(EXPIRES_MS + number);
        assert_eq!((expires_ms, flags), (expected_ms, (number % 5) as u32), "{number}");
        assert_eq!(found_cas, cas[number as usize], "{number}");
    }
}

#[test]
fn all_items_are_there_after_a_restart_with_all_that_belongs_to_them() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    let mut all_cas = Vec::new();
    for number in 0..ITEMS {
        client.run(|guard| {
            guard.set(&key(number), &value(number, 0, 2000), &write_of(number)).map(drop)
        });
        let cas = client.run(|guard| Ok(guard.get_with_cas(&key(number))?.map(|(_, cas)| cas)));
        all_cas.push(cas.expect("the item"));
    }
    drop(client);
    close(&tiered);
    close(&tiered);
    drop(tiered);
    for _ in 0..2 {
        let tiered = open_recovered(folder.path(), DISK);
        let stats = tiered.stats();
        assert_eq!((stats.recovered, tiered.cache().len()), (ITEMS, ITEMS), "{stats:?}");
        check_all(&mut Client::new(&tiered), &all_cas);
        let stats = tiered.stats();
        assert_eq!((stats.bad_records, stats.dropped), (0, 0), "{stats:?}");
        close(&tiered);
    }
}

/// An item that was read from disk and not changed is not written again: not when it leaves memory,
/// and not when the cache is closed.
#[test]
fn unchanged_items_are_not_written_again() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    drop(client);
    close(&tiered);
    drop(tiered);
    let events = Events::default();
    let options = events.options(folder.path(), DISK);
    let tiered = TieredCache::open(cache_options(), &options).expect("a cache");
    crate::wait_until(|| !tiered.stats().is_recovering);
    let mut client = Client::new(&tiered);
    for number in (0..ITEMS).chain(0..ITEMS) {
        assert!(client.get(&key(number)) == Some(value(number, 0, 3000)), "{number}");
    }
    assert!(tiered.cache().stats().demoted_unchanged > ITEMS);
    assert_eq!(tiered.stats().written, 0);
    drop(client);
    close(&tiered);
    let is_empty_dump =
        |event: &Event| matches!(event, Event::Dumped { items: 0, left_out: 0, .. });
    assert_eq!(events.count(is_empty_dump), 1);
}

fn count_found(folder: &Path, disk: u64, numbers: std::ops::Range<u64>) -> u64 {
    let tiered = open_recovered(folder, disk);
    let mut client = Client::new(&tiered);
    let mut found = 0;
    for number in numbers {
        if let Some(item) = client.get(&key(number)) {
            assert!(item == value(number, 0, 1000), "{number}");
            found += 1;
        }
    }
    found
}

/// Regression test: the oldest item files were removed while items were written, with the records
/// of items in memory that had been left out as unchanged, and in the end with the items that were
/// written first, which are those that were read most.
#[test]
fn a_disk_that_is_smaller_than_memory_keeps_what_was_read_most() {
    let folder = folder_for(60_000);
    let disk = 16 << 20;
    let options = Events::default().options(folder.path(), disk);
    let tiered = TieredCache::open(cache_options().memory(64 << 20), &options).expect("a cache");
    let mut client = Client::new(&tiered);
    fill(&mut client, 40_000, 1000);
    for number in (0..2000).cycle().take(6000) {
        assert!(client.get(&key(number)).is_some());
    }
    drop(client);
    close(&tiered);
    drop(tiered);
    assert_eq!(count_found(folder.path(), disk, 0..2000), 2000);
    assert!(count_found(folder.path(), disk, 2000..40_000) > 5000);
}

/// What was promoted from the oldest item files is kept, although they are removed for the items
/// that are in memory only.
#[test]
fn items_whose_records_are_removed_for_room_are_written_again() {
    let folder = folder_for(60_000);
    let (disk, memory) = (24 << 20, 16 << 20);
    let options = Events::default().options(folder.path(), disk);
    let tiered = TieredCache::open(cache_options().memory(memory), &options).expect("a cache");
    let mut client = Client::new(&tiered);
    fill(&mut client, 30_000, 1000);
    // These are in the oldest item files.
    let old: Vec<_> = (0..30_000).filter(|number| client.get(&key(*number)).is_some()).collect();
    let (first, count) = (old[0], 1000);
    for number in (first..first + count).cycle().take(3 * count as usize) {
        client.get(&key(number));
    }
    drop(client);
    close(&tiered);
    drop(tiered);
    // Some may have left memory again, and their item file is removed.
    let found = count_found(folder.path(), disk, first..first + count);
    assert!(found > count * 9 / 10, "{found}");
}

/// A stop while items are recovered loses none, and brings none back.
#[test]
fn a_stop_during_the_recovery_loses_no_item() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 1000);
    drop(client);
    close(&tiered);
    drop(tiered);
    for number in 0..5 {
        let tiered = open(folder.path(), DISK);
        Client::new(&tiered).remove(&key(number));
        close(&tiered);
    }
    assert_eq!(count_found(folder.path(), DISK, 0..5), 0);
    let tiered = open_recovered(folder.path(), DISK);
    // A key may have the same bit as one that was removed.
    assert!((ITEMS - 100..=ITEMS - 5).contains(&tiered.cache().len()), "{}", tiered.cache().len());
}
