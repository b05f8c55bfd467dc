//! Several threads use the cache while items are written to disk and read from there.

use crate::{Client, DISK, Done, fill, folder_for, key, open, value, wait_until};
use nuthatch_testing::random::Random;
use nuthatch_tier::AlignedBuffer;
use nuthatch_tiered::{TieredCache, Waiter};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const KEYS: u64 = 12_000;
const THREADS: u64 = 3;

/// How many clears have begun and ended.
#[derive(Default)]
struct Clears {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Changes the keys of one thread, and reads those of all.
fn work(tiered: &TieredCache, thread: u64, clears: &Clears) {
    let mut client = Client::new(tiered);
    let mut random = Random::new(thread);
    // The version of each key, and how many clears had ended before it was stored.
    let mut model = HashMap::new();
    for step in 0..12_000 {
        let number = random.below(KEYS / THREADS) * THREADS + thread;
        let (ended, len) = (clears.ended.load(Ordering::SeqCst), random.below(5000) as usize);
        match random.below(8) {
            0..=3 => {
                client.set(&key(number), &value(number, step, len));
                model.insert(number, (step, len, ended));
            }
            4 => {
                client.remove(&key(number));
                model.remove(&number);
            }
            5 => {
                let other = random.below(KEYS);
                let found = client.get(&key(other));
                let own = format!("{other}/");
                assert!(found.is_none_or(|found| found.starts_with(own.as_bytes())), "{other}");
            }
            _ => {
                let found = client.get(&key(number));
                let begun = clears.begun.load(Ordering::SeqCst);
                match (&found, model.get(&number)) {
                    (None, expected) => {
                        let is_allowed = expected.is_none_or(|(_, _, ended)| *ended < begun);
                        assert!(is_allowed, "{number} is lost");
                    }
                    (Some(found), Some((version, len, _))) => {
                        assert!(*found == value(number, *version, *len), "{number} is old");
                    }
                    (Some(_), None) => panic!("{number} came back"),
                }
            }
        }
        if thread == 0 && step % 4000 == 3999 {
            clears.begun.fetch_add(1, Ordering::SeqCst);
            client.clear();
            clears.ended.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn threads_see_their_own_changes() {
    let folder = folder_for(KEYS);
    let tiered = open(folder.path(), DISK);
    let clears = Clears::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tiered, clears) = (&tiered, &clears);
            scope.spawn(move || work(tiered, thread, clears));
        }
    });
    let stats = tiered.stats();
    assert_eq!((stats.dropped, stats.bad_records, stats.is_off), (0, 0, false), "{stats:?}");
    assert!(stats.hits > 0 && stats.written > 0, "{stats:?}");
}

/// All that wait for one item are called after one read, however many there are.
#[test]
fn concurrent_reads_of_an_item_are_one_read() {
    let folder = folder_for(KEYS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, KEYS, 3000);
    let guard = client.session.guard();
    let numbers: Vec<_> =
        (0..KEYS).filter(|number| guard.find_on_disk(&key(*number)).is_some()).take(50).collect();
    for number in &numbers {
        assert!(guard.get(&key(*number)).is_none());
    }
    let needed = guard.take_on_disk();
    drop(guard);
    assert_eq!(needed.len(), 50);
    let done = Arc::new(Done::default());
    let waiter = Arc::clone(&done) as Arc<dyn Waiter>;
    for on_disk in needed.iter().flat_map(|on_disk| [on_disk; 20]) {
        tiered.read(*on_disk, &waiter, 0);
    }
    done.wait(50 * 20);
    wait_until(|| tiered.stats().queued_reads == 0);
    let stats = tiered.stats();
    assert!(stats.reads < 50 * 10, "{stats:?}");
    assert_eq!((stats.hits, stats.bad_records), (50, 0), "{stats:?}");
    for number in &numbers {
        assert!(client.get(&key(*number)) == Some(value(*number, 0, 3000)));
    }
}

/// Reads that the caller performs: the others that need an item wait for it, and damage is a miss.
#[test]
fn a_caller_can_perform_reads_itself() {
    let folder = folder_for(KEYS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, KEYS, 3000);
    let guard = client.session.guard();
    let on_disk = |number: &u64| Some((*number, guard.find_on_disk(&key(*number))?));
    let found: Vec<_> = (0..KEYS).filter_map(|number| on_disk(&number)).take(60).collect();
    drop(guard);
    let done = Arc::new(Done::default());
    let waiter = Arc::clone(&done) as Arc<dyn Waiter>;
    for (at, (number, on_disk)) in found.iter().enumerate() {
        let mut next = tiered.begin_read(*on_disk, &waiter, 0);
        assert!(next.is_some() && tiered.begin_read(*on_disk, &waiter, 0).is_none());
        while let Some(read) = next {
            let file = File::from(read.file().try_clone_to_owned().expect("a descriptor"));
            let mut buffer = AlignedBuffer::new(read.len());
            file.read_exact_at(buffer.as_mut_slice(), read.offset()).expect("read");
            let bytes = match at % 3 {
                0 => Ok(buffer.as_slice()),
                1 => Ok(&buffer.as_slice()[..read.len() / 2]),
                _ => Err(io::Error::other("no such device")),
            };
            next = tiered.end_read(&mut client.session, read, bytes);
        }
        done.wait(2);
        let expected = (at % 3 == 0).then(|| value(*number, 0, 3000));
        assert!(client.get(&key(*number)) == expected, "{at}");
    }
    let stats = tiered.stats();
    assert_eq!((stats.hits, stats.bad_records, stats.queued_reads), (20, 40, 0), "{stats:?}");
}

/// Reads that wait when the cache is closed are answered, and later ones are, too.
#[test]
fn reads_are_answered_while_the_cache_is_closed() {
    let folder = folder_for(KEYS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, KEYS, 3000);
    let guard = client.session.guard();
    let all = (0..KEYS).filter_map(|number| guard.find_on_disk(&key(number)));
    let all: Vec<_> = all.collect();
    drop(guard);
    drop(client);
    let done = Arc::new(Done::default());
    let waiter = Arc::clone(&done) as Arc<dyn Waiter>;
    let (first, later) = all.split_at(all.len() / 2);
    for on_disk in first {
        tiered.read(*on_disk, &waiter, 0);
    }
    tiered.cancel_dump();
    tiered.close(std::time::Instant::now()).expect("closed");
    for on_disk in later {
        tiered.read(*on_disk, &waiter, 0);
    }
    tiered.wait_for_room(&waiter, 0);
    done.wait(all.len() as u64 + 1);
}
