//! The bytes on disk.

use crate::{Client, Events, cache_options, folder_for, key, open, open_recovered, value};
use nuthatch_testing::random::Random;
use nuthatch_tiered::{TieredCache, WhenBehind};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

const SMALL_DISK: u64 = 16 << 20;

/// Returns the bytes that the system uses for a folder and its files.
fn bytes_of(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).expect("a folder").filter_map(|entry| {
        // A file may be removed meanwhile.
        entry.expect("an entry").metadata().ok()
    });
    let own = fs::metadata(folder).expect("a folder");
    files.chain([own]).map(|file| file.blocks() * 512).sum()
}

/// Regression test: the tier turned itself off when a batch needed more than one item file.
///
/// The folder is never larger than the budget, with the log of removed records. The oldest items
/// are removed, and all others have their newest values.
#[test]
fn the_folder_is_never_larger_than_the_budget() {
    let folder = folder_for(40_000);
    let tiered = open(folder.path(), SMALL_DISK);
    let mut client = Client::new(&tiered);
    let (mut random, mut versions) = (Random::new(3), vec![0; 40_000]);
    for step in 0..60_000 {
        let number = if step < 40_000 { step } else { random.below(40_000) };
        versions[number as usize] = step;
        client.set(&key(number), &value(number, step, 1000));
        if step % 16 == 0 {
            let bytes = bytes_of(folder.path());
            assert!(bytes <= SMALL_DISK, "{bytes} at {step}");
        }
    }
    let mut found = Vec::new();
    for number in 0..40_000 {
        if let Some(item) = client.get(&key(number)) {
            assert!(item == value(number, versions[number as usize], 1000), "{number}");
            found.push(number);
        }
    }
    let stats = tiered.stats();
    assert!(stats.bytes <= stats.max_bytes && stats.removed_for_room > 5000, "{stats:?}");
    assert_eq!((stats.dropped, stats.bad_records, stats.is_off), (0, 0, false), "{stats:?}");
    assert!((15_000..36_000).contains(&found.len()), "{}", found.len());
    drop(client);
    tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
    assert!(bytes_of(folder.path()) <= SMALL_DISK);
}

/// A lower budget holds from the start on, and the newest items are kept.
#[test]
fn a_lower_budget_holds_from_the_start() {
    let folder = folder_for(40_000);
    let tiered = open(folder.path(), 4 * SMALL_DISK);
    let mut client = Client::new(&tiered);
    (0..40_000).for_each(|number| client.set(&key(number), &value(number, 0, 1000)));
    drop(client);
    tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
    drop(tiered);
    assert!(bytes_of(folder.path()) > 2 * SMALL_DISK);
    let tiered = open_recovered(folder.path(), SMALL_DISK);
    assert!(bytes_of(folder.path()) <= SMALL_DISK);
    let mut client = Client::new(&tiered);
    let mut found = 0;
    for number in 0..40_000 {
        if let Some(item) = client.get(&key(number)) {
            assert!(item == value(number, 0, 1000), "{number}");
            found += 1;
        }
    }
    assert!(found > 8000, "{found}");
    assert!(bytes_of(folder.path()) <= SMALL_DISK);
}

/// Items of which few fit on the disk, or none.
#[test]
fn items_that_are_nearly_as_long_as_the_disk_are_right_or_missing() {
    let folder = folder_for(100);
    let options = Events::default().options(folder.path(), SMALL_DISK);
    let options = options.when_behind(WhenBehind::Drop);
    let tiered = TieredCache::open(cache_options(), &options).expect("a cache");
    let mut client = Client::new(&tiered);
    let lens = [3 << 20, 100, 7 << 20, 5 << 20, 2 << 20, 1 << 20];
    let len = |number: u64| lens[number as usize % lens.len()];
    for round in 0..2 {
        for number in 0..30 {
            client.set(&key(number), &value(number, round, len(number)));
            let bytes = bytes_of(folder.path());
            assert!(bytes <= SMALL_DISK, "{bytes}");
            let found = client.get(&key(number / 2));
            let is_right = |found| found == value(number / 2, round, len(number / 2));
            assert!(found.is_none_or(is_right), "{number}");
        }
    }
    assert!(!tiered.stats().is_off, "{:?}", tiered.stats());
    let found = (0..30).filter(|number| client.get(&key(*number)).is_some()).count();
    assert!(found > 5, "{found}");
}
