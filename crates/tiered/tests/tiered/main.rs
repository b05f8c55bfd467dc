//! Tests of a cache with a disk tier over a real folder, through its public interface.

mod budget;
mod closing;
mod concurrency;
mod crashes;
mod damage;
mod disks;
mod failures;
mod model;
mod opening;
mod partitions;
mod recovery;

use nuthatch_cache::{Cache, Error, Guard, Options as CacheOptions, Session};
use nuthatch_testing::random;
use nuthatch_tier::{Options as TierOptions, Tier};
use nuthatch_tiered::{Event, Options, TieredCache, Waiter, WhenBehind};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use tempfile::TempDir;

/// Bytes of memory of all caches. Most items do not fit.
const MEMORY: u64 = 16 << 20;

/// Bytes on disk, unless a test needs another number.
const DISK: u64 = 256 << 20;

/// Counts what is done, and wakes the thread that waits for it.
#[derive(Default)]
struct Done {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Waiter for Done {
    fn ready(&self, _: u64) {
        *self.count.lock().expect("no panic") += 1;
        self.changed.notify_all();
    }
}

impl Done {
    /// Waits until `count` calls of [`ready`](Waiter::ready) were made, and forgets them.
    fn wait(&self, count: u64) {
        let done = self.count.lock().expect("no panic");
        let mut done = self.changed.wait_while(done, |done| *done < count).expect("no panic");
        *done -= count;
    }
}

/// A client: runs operations, and waits for the disk if they need it.
struct Client<'c> {
    tiered: &'c TieredCache,
    session: Session<'c>,
    done: Arc<Done>,
    /// How often an operation was repeated after a read.
    waits: u64,
}

impl<'c> Client<'c> {
    fn new(tiered: &'c TieredCache) -> Self {
        let session = tiered.cache().session().expect("room for a session");
        Self { tiered, session, done: Arc::default(), waits: 0 }
    }

    /// Runs an operation until it needs nothing from disk.
    fn run<R>(&mut self, mut operation: impl FnMut(&Guard<'_>) -> Result<R, Error>) -> R {
        loop {
            let mut guard = self.session.guard();
            let result = operation(&guard);
            let needed = guard.take_on_disk();
            if !needed.is_empty() {
                drop(guard);
                self.waits += 1;
                let waiter = Arc::clone(&self.done) as Arc<dyn Waiter>;
                for on_disk in &needed {
                    self.tiered.read(*on_disk, &waiter, 0);
                }
                self.done.wait(needed.len() as u64);
                continue;
            }
            match result {
                Err(Error::Full) => {
                    if !guard.renew() && self.tiered.waits_for_disk() {
                        drop(guard);
                        let waiter = Arc::clone(&self.done) as Arc<dyn Waiter>;
                        self.tiered.wait_for_room(&waiter, 0);
                        self.done.wait(1);
                    }
                }
                other => return other.expect("done"),
            }
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        self.run(|guard| guard.set(key, value, &nuthatch_cache::Write::new()).map(drop));
    }

    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        self.run(|guard| Ok(guard.get(key).map(|item| item.value().to_vec())))
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.run(|guard| Ok(guard.remove(key)))
    }

    fn clear(&mut self) {
        self.run(|guard| {
            guard.clear();
            Ok(())
        });
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

/// Returns a value that only this version of this key has.
fn value(number: u64, version: u64, len: usize) -> Vec<u8> {
    let mut value = format!("{number}/{version}/").into_bytes();
    value.extend_from_slice(&random::bytes(version, len));
    value
}

fn cache_options() -> CacheOptions {
    CacheOptions::new().memory(MEMORY)
}

/// Events that a cache reported.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    fn options(&self, folder: &Path, max_bytes: u64) -> Options {
        let events = Arc::clone(&self.0);
        let push = move |event| events.lock().expect("no panic").push(event);
        Options::new(folder, max_bytes).when_behind(WhenBehind::Wait).on_event(push)
    }

    fn count(&self, is_counted: impl Fn(&Event) -> bool) -> usize {
        self.0.lock().expect("no panic").iter().filter(|event| is_counted(event)).count()
    }
}

/// Bits of a hash that the index knows of an item on disk.
const KNOWN_BITS: u32 = 27;

/// Creates a folder for items with the keys `0..keys`, with a seed of hashes for which the index
/// can tell all of them apart. With another seed, storing one may remove another one on disk.
fn folder_for(keys: u64) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let are_distinct = |seed: &u64| {
        let cache = Cache::new(cache_options().seed(*seed)).expect("a cache");
        let mut known = HashSet::new();
        let mut hashes = (0..keys).map(|number| cache.hash(&key(number)).to_u64());
        hashes.all(|hash| known.insert(hash >> (u64::BITS - KNOWN_BITS)))
    };
    let hash_seed = (1..100).find(are_distinct);
    let options = TierOptions { hash_seed, ..TierOptions::new(DISK) };
    let (tier, _) = Tier::open(folder.path(), &options).expect("a folder");
    tier.close().expect("closed");
    folder
}

/// Opens a cache whose writers wait for the disk.
fn open(folder: &Path, max_bytes: u64) -> TieredCache {
    let options = Events::default().options(folder, max_bytes);
    TieredCache::open(cache_options(), &options).expect("a cache")
}

/// Opens a cache, and waits until the items of the last run are recovered.
fn open_recovered(folder: &Path, max_bytes: u64) -> TieredCache {
    let tiered = open(folder, max_bytes);
    wait_until(|| !tiered.stats().is_recovering);
    tiered
}

/// Waits until something happens on another thread.
fn wait_until(mut is_done: impl FnMut() -> bool) {
    while !is_done() {
        thread::yield_now();
    }
}

/// Returns all keys that a scan finds, sorted.
fn scan(client: &mut Client<'_>) -> Vec<Vec<u8>> {
    let (mut scanned, mut cursor) = (Vec::new(), 0);
    loop {
        let (next, keys) = client.run(|guard| {
            let mut keys = Vec::new();
            let next = guard.scan(cursor, 10, |item| keys.push(item.key().to_vec()));
            Ok((next, keys))
        });
        scanned.extend(keys);
        if next == 0 {
            break;
        }
        cursor = next;
    }
    scanned.sort();
    scanned.dedup();
    scanned
}

/// Fills a cache with items `0..count` of version 0, of which most leave memory.
fn fill(client: &mut Client<'_>, count: u64, len: usize) {
    for number in 0..count {
        client.set(&key(number), &value(number, 0, len));
    }
}

/// Returns how many items were lost, as far as the cache knows.
fn lost(cache: &Cache) -> u64 {
    cache.stats().evicted
}
