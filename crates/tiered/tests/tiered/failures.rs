//! Disks that fail: memory goes on serving, and nothing that was replaced comes back.

use crate::disks::{FailingDisk, Fails};
use crate::{
    Client, DISK, Done, Events, cache_options, fill, folder_for, key, open_recovered, value,
    wait_until,
};
use nuthatch_cache::{Error, Write};
use nuthatch_tiered::{Event, TieredCache};
use std::path::Path;
use std::sync::Arc;
use std::thread;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Bytes on disk: the minimum, so that item files are removed soon.
const SMALL_DISK: u64 = 16 << 20;

/// The number of items.
const ITEMS: u64 = 12_000;

fn open_on(disk: &Arc<FailingDisk>, events: &Events, (folder, bytes): (&Path, u64)) -> TieredCache {
    let options = events.options(folder, bytes).disk(Arc::clone(disk) as _);
    TieredCache::open(cache_options(), &options).expect("a cache")
}

/// Replaces all items by short ones, and checks that none of the replaced ones is there after the
/// process died and another one opened the folder.
fn check_that_none_comes_back(tiered: TieredCache, (folder, bytes): (&Path, u64)) {
    let mut client = Client::new(&tiered);
    for number in 0..ITEMS {
        client.set(&key(number), &value(number, 1, 10));
    }
    drop(client);
    drop(tiered);
    let tiered = open_recovered(folder, bytes);
    let mut client = Client::new(&tiered);
    for number in 0..ITEMS {
        let found = client.get(&key(number));
        let is_new = found.is_none_or(|found| found == value(number, 1, 10));
        assert!(is_new, "a replaced item came back: {number}");
    }
}

fn is_off_event(event: &Event) -> bool {
    matches!(event, Event::Off { .. })
}

/// Regression test: the records that were written in batches before the one that failed were valid
/// after the next start, although their items had been dropped and replaced.
#[test]
fn a_disk_that_cannot_be_written_turns_the_tier_off() {
    for (errno, after) in [(ENOSPC, 0), (ENOSPC, 17), (EIO, 18), (EIO, 19), (EIO, 40), (EIO, 61)] {
        let folder = folder_for(ITEMS);
        let place = (folder.path(), 64 << 20);
        let disk = Arc::new(FailingDisk::new(Fails::ItemWrites, errno, after));
        let events = Events::default();
        let tiered = open_on(&disk, &events, place);
        let mut client = Client::new(&tiered);
        fill(&mut client, ITEMS, 3000);
        wait_until(|| tiered.stats().is_off);
        assert_eq!(events.count(is_off_event), 1, "it is reported once");
        let is_described = |event: &Event| match event {
            Event::Off { error } => error.contains("items-") && error.contains("os error"),
            _ => false,
        };
        assert_eq!(events.count(is_described), 1);
        for number in (0..ITEMS).rev().take(1000) {
            assert!(client.get(&key(number)) == Some(value(number, 0, 3000)), "memory serves");
        }
        for number in 0..ITEMS {
            let found = client.get(&key(number));
            assert!(found.is_none_or(|found| found == value(number, 0, 3000)), "{number}");
        }
        drop(client);
        check_that_none_comes_back(tiered, place);
    }
}

/// Regression test: the items of a file were forgotten before the file was removed, so replacing
/// them was not recorded.
#[test]
fn an_item_file_that_cannot_be_removed_keeps_its_items() {
    let folder = folder_for(ITEMS);
    let disk = Arc::new(FailingDisk::new(Fails::ItemRemovals, EIO, 3));
    let (events, place) = (Events::default(), (folder.path(), SMALL_DISK));
    let tiered = open_on(&disk, &events, place);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    wait_until(|| tiered.stats().is_off);
    assert_eq!(events.count(is_off_event), 1);
    drop(client);
    check_that_none_comes_back(tiered, place);
}

/// Regression test: an item whose record could not be read was forgotten, so replacing it was not
/// recorded. Later the record could be read again.
#[test]
fn an_item_that_cannot_be_read_is_a_miss_and_does_not_come_back() {
    let folder = folder_for(ITEMS);
    let disk = Arc::new(FailingDisk::new(Fails::ItemReads, EIO, u64::MAX));
    let (events, place) = (Events::default(), (folder.path(), 64 << 20));
    let tiered = open_on(&disk, &events, place);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    disk.fail_after(0);
    let on_disk = tiered.cache().stats().items_on_disk;
    let missing = (0..ITEMS).filter(|number| client.get(&key(*number)).is_none()).count() as u64;
    assert!(on_disk > ITEMS / 3 && missing >= on_disk, "{missing} of {on_disk}");
    let stats = tiered.stats();
    assert_eq!((stats.bad_records, stats.is_off, stats.hits), (missing, false, 0));
    let is_described = |event: &Event| match event {
        Event::Damaged(damage) => damage.to_string().contains("os error 5"),
        _ => false,
    };
    assert_eq!(events.count(is_described) as u64, missing);
    disk.fail_after(u64::MAX);
    drop(client);
    check_that_none_comes_back(tiered, place);
}

/// Fills memory while the disk stalls, until neither a write nor the demoter continues. Returns
/// items of [`fill`] that are on disk, and the number of keys so far.
fn stall(client: &mut Client<'_>, disk: &FailingDisk) -> (Vec<u64>, u64) {
    fill(client, ITEMS, 3000);
    disk.set_stalled(true);
    let mut number = ITEMS;
    let mut is_full = false;
    while !is_full || !disk.has_waiting_write() {
        let mut guard = client.session.guard();
        match guard.set(&key(number), &value(number, 0, 3000), &Write::new()) {
            Ok(_) => number += 1,
            Err(Error::Full) => is_full = !guard.renew(),
            Err(error) => panic!("{error}"),
        }
    }
    let guard = client.session.guard();
    let is_on_disk = |number: &u64| guard.find_on_disk(&key(*number)).is_some();
    ((0..ITEMS).filter(is_on_disk).take(1000).collect(), number)
}

fn get_all(tiered: &TieredCache, numbers: &[u64]) {
    let mut client = Client::new(tiered);
    for number in numbers {
        assert!(client.get(&key(*number)) == Some(value(*number, 0, 3000)), "{number}");
    }
}

/// Returns the number of reads so far whose item found no memory.
fn without_memory(tiered: &TieredCache) -> u64 {
    let stats = tiered.stats();
    stats.reads - stats.hits
}

/// Regression test: an item that was read and found no memory was read again at once. The server
/// gave up after a hundred reads, so a `GET` failed if the disk did not write for a while.
#[test]
fn an_item_that_finds_no_memory_waits_and_is_not_read_again_at_once() {
    let folder = folder_for(ITEMS);
    let disk = Arc::new(FailingDisk::without_failures());
    let tiered = open_on(&disk, &Events::default(), (folder.path(), DISK));
    let mut client = Client::new(&tiered);
    let (on_disk, _) = stall(&mut client, &disk);
    let before = without_memory(&tiered);
    thread::scope(|scope| {
        let gets = scope.spawn(|| get_all(&tiered, &on_disk));
        // The first items fit in the segment of the reader threads.
        wait_until(|| without_memory(&tiered) > before);
        // Longer than many reads would take.
        for number in 0..ITEMS {
            assert!(client.session.guard().peek(&key(number)).is_none_or(|it| it.flags() == 0));
        }
        let found = without_memory(&tiered);
        disk.set_stalled(false);
        assert!(found < before + 100, "{before}, {found}");
        gets.join().expect("no panic");
    });
}

/// Regression test: while the disk stalled, an item that waited for memory did not see that other
/// operations freed some.
#[test]
fn an_item_that_waits_for_memory_takes_what_operations_free() {
    let folder = folder_for(ITEMS);
    let disk = Arc::new(FailingDisk::without_failures());
    let tiered = open_on(&disk, &Events::default(), (folder.path(), DISK));
    let mut client = Client::new(&tiered);
    let (on_disk, keys) = stall(&mut client, &disk);
    // More than the segment of the reader threads holds.
    let needed = &on_disk[..300];
    let before = without_memory(&tiered);
    thread::scope(|scope| {
        let gets = scope.spawn(|| get_all(&tiered, needed));
        wait_until(|| without_memory(&tiered) > before);
        // Removes those that are in memory.
        for number in (0..keys).filter(|number| !needed.contains(number)) {
            client.session.guard().remove(&key(number));
        }
        gets.join().expect("no panic");
        disk.set_stalled(false);
    });
}

/// Regression test: the read of an item whose file had been removed meanwhile, and its place used
/// for another file, was reported as damage.
#[test]
fn a_read_of_a_place_that_is_used_again_is_no_damage() {
    let folder = folder_for(ITEMS);
    let disk = Arc::new(FailingDisk::without_failures());
    let events = Events::default();
    let tiered = open_on(&disk, &events, (folder.path(), SMALL_DISK));
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    let on_disk: Vec<_> =
        (0..ITEMS).filter_map(|number| client.session.guard().find_on_disk(&key(number))).collect();
    // All files are removed; the records of the new ones begin elsewhere.
    (ITEMS..3 * ITEMS).for_each(|number| client.set(&key(number), &value(number, 0, 2900)));
    let waiter = Arc::new(Done::default());
    for one in &on_disk {
        tiered.read(*one, &(Arc::clone(&waiter) as _), 0);
    }
    waiter.wait(on_disk.len() as u64);
    let stats = tiered.stats();
    assert!(stats.reads >= 100, "{} reads", stats.reads);
    assert_eq!(
        (stats.bad_records, events.count(|event| matches!(event, Event::Damaged(_)))),
        (0, 0)
    );
}
