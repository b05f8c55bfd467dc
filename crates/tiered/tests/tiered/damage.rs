//! Damaged item files: misses that are counted, and nothing else.

use crate::{Client, DISK, Events, cache_options, fill, folder_for, key, open, value, wait_until};
use nuthatch_testing::random::Random;
use nuthatch_tiered::{Event, TieredCache};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ITEMS: u64 = 9000;

fn item_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.to_string_lossy().contains("items-"));
    paths.sort();
    paths
}

/// Inverts bytes at random places of all item files.
fn damage(folder: &Path, random: &mut Random, places: u64) {
    for path in item_files(folder) {
        let file = OpenOptions::new().read(true).write(true).open(path).expect("a file");
        let len = file.metadata().expect("a length").len();
        for _ in 0..places {
            let offset = random.below(len);
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset).expect("read");
            file.write_all_at(&[!byte[0]], offset).expect("written");
        }
    }
}

/// Looks up all items. Returns how many are missing.
fn count_missing(client: &mut Client<'_>) -> u64 {
    let mut missing = 0;
    for number in 0..ITEMS {
        match client.get(&key(number)) {
            Some(found) => assert!(found == value(number, 0, 3000), "{number}"),
            None => missing += 1,
        }
    }
    missing
}

#[test]
fn records_that_are_damaged_while_the_cache_is_open_are_misses() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    damage(folder.path(), &mut Random::new(1), 300);
    let missing = count_missing(&mut client);
    let stats = tiered.stats();
    assert_eq!((stats.bad_records, stats.is_off), (missing, false), "{stats:?}");
    assert!(missing > 100, "{missing}");
    // They can be stored again.
    fill(&mut client, ITEMS, 3000);
    assert_eq!(count_missing(&mut client), 0);
}

#[test]
fn item_files_that_are_damaged_while_the_cache_is_closed_lose_what_is_damaged() {
    for (seed, places) in [(1, 20), (2, 400), (3, 20_000)] {
        let folder = folder_for(ITEMS);
        let tiered = open(folder.path(), DISK);
        let mut client = Client::new(&tiered);
        fill(&mut client, ITEMS, 3000);
        drop(client);
        if seed != 2 {
            tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
        }
        drop(tiered);
        damage(folder.path(), &mut Random::new(seed), places);
        let events = Events::default();
        let options = events.options(folder.path(), DISK);
        let tiered = TieredCache::open(cache_options(), &options).expect("a cache");
        wait_until(|| !tiered.stats().is_recovering);
        let recovered = tiered.stats().recovered;
        let mut client = Client::new(&tiered);
        let missing = count_missing(&mut client);
        assert!(events.count(|event| matches!(event, Event::Damaged(_))) > 0);
        let bad = tiered.stats().bad_records;
        assert_eq!(ITEMS - missing, recovered - bad, "{seed}");
        assert!(missing > 0 && !tiered.stats().is_off);
        fill(&mut client, ITEMS, 3000);
        assert_eq!(count_missing(&mut client), 0);
    }
}

/// No item is found that a damaged part of the removal log may have named. The loss is counted, and
/// the files without items are removed.
#[test]
fn items_that_a_damaged_removal_log_may_name_are_counted_as_lost() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    for number in 0..100 {
        assert!(client.remove(&key(number)));
    }
    drop(client);
    drop(tiered);
    let mut logs: Vec<_> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains("removed-"))
        .collect();
    logs.sort();
    let log = OpenOptions::new().write(true).open(&logs[0]).expect("a file");
    log.write_all_at(&[0x55; 16], 8200).expect("written");
    let events = Events::default();
    let options = events.options(folder.path(), DISK);
    let tiered = TieredCache::open(cache_options(), &options).expect("a cache");
    wait_until(|| !tiered.stats().is_recovering);
    let stats = tiered.stats();
    assert!(stats.lost > 1000 && stats.recovered == 0, "{stats:?}");
    let reported = events.count(|event| match event {
        Event::RecordsLost { records } => *records == stats.lost,
        _ => false,
    });
    assert_eq!(reported, 1);
    assert!(item_files(folder.path()).is_empty());
    let mut client = Client::new(&tiered);
    assert_eq!(count_missing(&mut client), ITEMS);
    fill(&mut client, ITEMS, 3000);
    assert_eq!(count_missing(&mut client), 0);
}

/// Files that were cut off, emptied or removed by someone else.
#[test]
fn item_files_that_are_cut_off_lose_their_items() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    drop(client);
    tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
    drop(tiered);
    let files = item_files(folder.path());
    assert!(files.len() > 4);
    for (file, len) in files.iter().zip([0, 4096, 100_000]) {
        OpenOptions::new().write(true).open(file).and_then(|file| file.set_len(len)).expect("cut");
    }
    fs::remove_file(&files[3]).expect("removed");
    let tiered =
        TieredCache::open(cache_options(), &Events::default().options(folder.path(), DISK))
            .expect("a cache");
    wait_until(|| !tiered.stats().is_recovering);
    let mut client = Client::new(&tiered);
    let missing = count_missing(&mut client);
    assert!((1000..ITEMS - 1000).contains(&missing), "{missing}");
    // A file that is cut off while it is open.
    let last = item_files(folder.path()).pop().expect("a file");
    OpenOptions::new().write(true).open(last).and_then(|file| file.set_len(5000)).expect("cut");
    assert!(count_missing(&mut client) >= missing);
}
