//! Items on disk: a cache whose evicted items are kept by a disk that is a map.

use nuthatch_cache::{
    BatchKey, Cache, Condition, Error, Expiry, Guard, KeyHash, ManualClock, OnDisk, Options,
    Outcome, Records, Session, Write,
};
use nuthatch_testing::random::Random;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Free segments beyond those at which writers evict.
const AHEAD: u32 = 4;

/// A record: key, value and expiry.
type Record = (Vec<u8>, Vec<u8>, Option<u64>);

/// A disk that is a map. The identifier of a record is its place plus [`FIRST_ID`].
#[derive(Default)]
struct Disk(Mutex<DiskState>);

#[derive(Default)]
struct DiskState {
    records: HashMap<u64, Record>,
    last_place: u64,
    removed: BTreeSet<u64>,
    changed: BTreeSet<u64>,
    /// Whether all records are about to be removed, so that the index must not point to them.
    is_leaving: bool,
}

const FIRST_ID: u64 = 1 << 40;

impl Disk {
    fn write(&self, record: Record) -> u64 {
        let mut state = self.0.lock().expect("no panic");
        state.last_place += 1;
        let place = state.last_place;
        state.records.insert(place, record);
        place
    }

    fn read(&self, place: u64) -> Record {
        self.0.lock().expect("no panic").records[&place].clone()
    }

    /// Returns the items that are there after a crash.
    fn recovered(&self) -> HashMap<Vec<u8>, Vec<u8>> {
        let state = self.0.lock().expect("no panic");
        let valid = state.records.iter().filter(|(at, _)| !state.removed.contains(at));
        valid.map(|(_, (key, value, _))| (key.clone(), value.clone())).collect()
    }
}

impl Records for Disk {
    fn id(&self, place: u64) -> Option<u64> {
        Some(FIRST_ID + place)
    }

    fn place(&self, id: u64) -> Option<u64> {
        let is_leaving = self.0.lock().expect("no panic").is_leaving;
        (!is_leaving).then_some(id - FIRST_ID)
    }

    fn note_removed(&self, ids: &[u64]) {
        let mut state = self.0.lock().expect("no panic");
        state.removed.extend(ids.iter().map(|id| id - FIRST_ID));
    }

    fn note_changed(&self, hashes: &[u64]) {
        self.0.lock().expect("no panic").changed.extend(hashes);
    }

    fn note_all_removed(&self) {
        let mut state = self.0.lock().expect("no panic");
        state.removed = state.records.keys().copied().collect();
    }
}

fn cache(disk: &Arc<Disk>) -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options::new().memory(16 << 20).seed(7).clock(Arc::clone(&clock) as _);
    let cache = Cache::new(options.records(Arc::clone(disk) as _)).expect("a cache");
    (cache, clock)
}

/// Writes items to disk until enough memory is free.
fn demote(session: &mut Session<'_>, disk: &Disk) {
    while session.should_demote(AHEAD) {
        let demotions = session.choose_demotions(256 << 10, AHEAD);
        let places = session.map_demotions(&demotions, |item, _| {
            Some(disk.write((item.key().to_vec(), item.value().to_vec(), item.expires_ms())))
        });
        if demotions.is_empty() {
            session.finish_demotions(demotions, &places);
            break;
        }
        session.finish_demotions(demotions, &places);
    }
}

/// Promotes what an operation needed. Returns whether it must be repeated.
fn load(guard: &mut Guard<'_>, disk: &Disk) -> bool {
    let needed = guard.take_on_disk();
    for on_disk in &needed {
        let place = on_disk.place();
        let (key, value, expires_ms) = disk.read(place);
        let write = Write::new().expiry(expires_ms.map_or(Expiry::Never, Expiry::At));
        loop {
            match guard.promote(place, FIRST_ID + place, (&key, &value), &write) {
                Err(Error::Full) => assert!(guard.renew(), "memory for a promotion"),
                Ok(true) => break,
                other => {
                    assert!(matches!(other, Ok(false)), "{other:?}");
                    guard.forget(*on_disk);
                    break;
                }
            }
        }
    }
    !needed.is_empty()
}

/// Runs an operation until it needs nothing from disk.
fn run<R>(
    session: &mut Session<'_>,
    disk: &Disk,
    mut operation: impl FnMut(&Guard<'_>) -> Result<R, Error>,
) -> R {
    demote(session, disk);
    let mut guard = session.guard();
    loop {
        let result = operation(&guard);
        if load(&mut guard, disk) {
            continue;
        }
        match result {
            Err(Error::Full) => assert!(guard.renew(), "memory"),
            other => return other.expect("done"),
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn value(number: u64, len: usize) -> Vec<u8> {
    let mut value = number.to_le_bytes().repeat(len / 8 + 1);
    value.truncate(len);
    value
}

/// A cache with a disk, and a map that has the expected items.
struct Subject<'c> {
    session: Session<'c>,
    disk: Arc<Disk>,
    model: HashMap<u64, Vec<u8>>,
}

impl Subject<'_> {
    fn run<R>(&mut self, operation: impl FnMut(&Guard<'_>) -> Result<R, Error>) -> R {
        run(&mut self.session, &self.disk, operation)
    }

    fn set(&mut self, number: u64, new: Vec<u8>) {
        self.run(|guard| guard.set(&key(number), &new, &Write::new()).map(drop));
        self.model.insert(number, new);
    }

    fn get(&mut self, number: u64) {
        let found = self.run(|guard| Ok(guard.get(&key(number)).map(|item| item.value().to_vec())));
        assert!(found.as_ref() == self.model.get(&number), "{number}");
    }

    fn get_with_cas(&mut self, number: u64) {
        let found = self.run(|guard| {
            let found = guard.get_with_cas(&key(number))?;
            Ok(found.map(|(item, _)| item.value().to_vec()))
        });
        assert!(found.as_ref() == self.model.get(&number), "{number}");
    }

    fn remove(&mut self, number: u64) {
        let removed = self.run(|guard| Ok(guard.remove(&key(number))));
        assert_eq!(removed, self.model.remove(&number).is_some(), "{number}");
    }

    fn add(&mut self, number: u64, new: Vec<u8>) {
        let write = Write::new().condition(Condition::Absent);
        let outcome = self.run(|guard| guard.set(&key(number), &new, &write));
        assert_eq!(outcome == Outcome::Stored, !self.model.contains_key(&number), "{number}");
        self.model.entry(number).or_insert(new);
    }

    /// Replaces a value by its first 100 bytes and an `x`.
    fn update(&mut self, number: u64) {
        let found = self.run(|guard| {
            guard.update(&key(number), |item, out| {
                let old = item.map(|item| item.value().to_vec());
                out.extend(old.iter().flatten().take(100));
                out.push(b'x');
                (Some(Write::new()), old)
            })
        });
        let expected = self.model.remove(&number);
        assert!(found == expected, "{number}");
        let mut changed: Vec<_> = expected.into_iter().flatten().take(100).collect();
        changed.push(b'x');
        self.model.insert(number, changed);
    }

    fn set_two(&mut self, number: u64, new: Vec<u8>) {
        let pairs = [(key(number), new.clone()), (key(number + 1), new.clone())];
        let pairs = || pairs.iter().map(|(key, value)| (&key[..], &value[..]));
        self.run(|guard| guard.set_all(pairs(), &Write::new()));
        self.model.insert(number, new.clone());
        self.model.insert(number + 1, new);
    }

    /// Checks that a crash now brings nothing back that the map does not have.
    fn check_recovery(&self) {
        for (key, value) in self.disk.recovered() {
            let number = String::from_utf8_lossy(&key[4..]).parse().expect("a number");
            assert!(self.model.get(&number) == Some(&value), "{number} came back");
        }
    }

    fn scan(&mut self) -> BTreeSet<Vec<u8>> {
        let (mut scanned, mut cursor) = (BTreeSet::new(), 0);
        loop {
            let (next, keys) = self.run(|guard| {
                let mut keys = Vec::new();
                let next = guard.scan(cursor, 10, |item| keys.push(item.key().to_vec()));
                Ok((next, keys))
            });
            scanned.extend(keys);
            if next == 0 {
                return scanned;
            }
            cursor = next;
        }
    }
}

/// Random operations on far more items than fit have the results of a map, and after a crash at any
/// time, no item is there that the map does not have.
#[test]
fn items_on_disk_are_as_those_in_memory() {
    for seed in 1..=3 {
        let disk = Arc::new(Disk::default());
        let (cache, _) = cache(&disk);
        let session = cache.session().expect("room");
        let mut subject = Subject { session, disk, model: HashMap::new() };
        let mut random = Random::new(seed);
        for step in 0..60_000 {
            let number = random.below(12_000);
            let new = value(random.next_u64(), random.below(8000) as usize);
            match random.below(16) {
                0..=6 => subject.set(number, new),
                7..=10 => subject.get(number),
                11 => subject.remove(number),
                12 => subject.add(number, new),
                13 => subject.update(number),
                14 => subject.set_two(number, new),
                _ => subject.get_with_cas(number),
            }
            if step % 10_000 == 0 {
                subject.check_recovery();
            }
        }
        let stats = cache.stats();
        assert_eq!((stats.evicted, stats.items), (0, subject.model.len() as u64));
        assert!(stats.items_on_disk > stats.items / 2, "{stats:?}");
        assert!(stats.demoted_unchanged > 100 && stats.promoted > 1000, "{stats:?}");
        let expected = subject.model.keys().map(|number| key(*number)).collect();
        assert_eq!(subject.scan(), expected);
        subject.run(|guard| {
            guard.clear();
            Ok(())
        });
        assert_eq!((cache.len(), cache.stats().items_on_disk), (0, 0));
        assert!(subject.disk.recovered().is_empty(), "after FLUSHALL nothing comes back");
    }
}

/// A write of several steps must not be completed after one of them needed an item on disk.
#[test]
fn nothing_is_written_after_an_item_on_disk_was_needed() {
    let disk = Arc::new(Disk::default());
    let (cache, _) = cache(&disk);
    let mut session = cache.session().expect("room");
    (0..40_000).for_each(|number| {
        run(&mut session, &disk, |guard| {
            guard.set(&key(number), &[7; 1000], &Write::new()).map(drop)
        });
    });
    let guard = session.guard();
    let on_disk = guard.find_on_disk(&key(0)).expect("the oldest item is on disk");
    assert_eq!(guard.get(&key(0)).map(|item| item.value().len()), None);
    let refused = guard.set(b"other", b"value", &Write::new());
    assert!(matches!(refused, Err(Error::OnDisk)), "{refused:?}");
    assert!(!guard.remove(&key(39_999)), "nothing is removed, either");
    assert_eq!(guard.take_on_disk(), [on_disk]);
    assert_eq!(guard.take_on_disk(), []);
    guard.set(b"other", b"value", &Write::new()).map(drop).expect("stored");
    assert!(guard.remove(&key(39_999)));
}

/// An item that was replaced while its record was being written must not be found after a crash.
#[test]
fn an_item_that_changes_while_it_is_written_is_not_recovered() {
    let disk = Arc::new(Disk::default());
    let (cache, _) = cache(&disk);
    let [mut session, mut other] = [(); 2].map(|()| cache.session().expect("room"));
    let mut number = 0;
    while !session.should_demote(AHEAD) {
        let guard = other.guard();
        guard.set(&key(number), &[7; 1000], &Write::new()).map(drop).expect("room");
        number += 1;
    }
    let demotions = session.choose_demotions(64 << 10, AHEAD);
    assert!(demotions.len() > 10);
    let mut keys = Vec::new();
    let places = session.map_demotions(&demotions, |item, _| {
        keys.push(item.key().to_vec());
        Some(disk.write((item.key().to_vec(), item.value().to_vec(), None)))
    });
    let guard = other.guard();
    assert!(guard.remove(&keys[0]));
    guard.set(&keys[1], b"new", &Write::new()).map(drop).expect("room");
    drop(guard);
    session.finish_demotions(demotions, &places);
    let recovered = disk.recovered();
    assert!(!recovered.contains_key(&keys[0]) && !recovered.contains_key(&keys[1]));
    assert!(recovered.contains_key(&keys[2]));
    let guard = other.guard();
    assert!(guard.get(&keys[0]).is_none() && guard.take_on_disk().is_empty());
    assert_eq!(guard.get(&keys[1]).map(|item| item.value().to_vec()), Some(b"new".to_vec()));
    assert!(guard.find_on_disk(&keys[2]).is_some());
}

/// A client that is told of a change must not find what was there before after a crash, also if
/// another session made an earlier change and has not ended its guard.
#[test]
fn a_change_is_logged_with_the_earlier_ones_of_other_sessions() {
    let disk = Arc::new(Disk::default());
    let (cache, _) = cache(&disk);
    let [mut session, mut other] = [(); 2].map(|()| cache.session().expect("room"));
    for number in 0..40_000 {
        run(&mut session, &disk, |guard| {
            guard.set(&key(number), &[7; 1000], &Write::new()).map(drop)
        });
    }
    let guard = session.guard();
    assert!(guard.find_on_disk(&key(3)).is_some());
    guard.set(&key(3), b"first", &Write::new()).map(drop).expect("room");
    assert!(disk.recovered().contains_key(&key(3)), "the guard has not ended");
    other.guard().set(&key(3), b"second", &Write::new()).map(drop).expect("room");
    assert!(!disk.recovered().contains_key(&key(3)));
    drop(guard);
}

/// Evicts an item that is in memory and has a record, while the record is about to be removed.
#[test]
fn an_item_that_leaves_the_index_is_not_recovered() {
    for is_written in [false, true] {
        let disk = Arc::new(Disk::default());
        let (cache, _) = cache(&disk);
        let mut session = cache.session().expect("room");
        let store = |session: &mut Session<'_>, number| {
            run(session, &disk, |guard| {
                guard.set(&key(number), &[7; 1000], &Write::new()).map(drop)
            });
        };
        (0..40_000).for_each(|number| store(&mut session, number));
        assert!(session.guard().find_on_disk(&key(3)).is_some());
        assert!(run(&mut session, &disk, |guard| Ok(guard.get(&key(3)).is_some())));
        let first = session.guard().get(&key(3)).map(|item| item.has_record(&*disk));
        assert_eq!(first, Some(true), "promoted");
        disk.0.lock().expect("no panic").is_leaving = true;
        let records = disk.0.lock().expect("no panic").records.len() as u64;
        cache.set_evicts_unwritten(!is_written);
        let mut number = 40_000;
        loop {
            if is_written {
                store(&mut session, number);
            } else {
                let mut guard = session.guard();
                while guard.set(&key(number), &[7; 1000], &Write::new()).is_err() {
                    guard.renew();
                }
            }
            number += 1;
            // Items that were read replace each other in the main queue, where this one is.
            let guard = session.guard();
            assert!(guard.get(&key(number - 1)).is_some());
            if guard.find_on_disk(&key(3)).is_some() || guard.peek(&key(3)).is_none() {
                break;
            }
        }
        let mut state = disk.0.lock().expect("no panic");
        state.records.retain(|place, _| *place <= records);
        drop(state);
        assert!(!disk.recovered().contains_key(&key(3)), "written: {is_written}");
    }
}

#[test]
fn an_expired_item_on_disk_is_a_miss() {
    let disk = Arc::new(Disk::default());
    let (cache, clock) = cache(&disk);
    let mut session = cache.session().expect("room");
    for number in 0..40_000 {
        run(&mut session, &disk, |guard| {
            guard.set(&key(number), &[7; 1000], &Write::new().expires_in_ms(1000)).map(drop)
        });
    }
    assert!(session.guard().find_on_disk(&key(0)).is_some());
    clock.advance(1000);
    let on_disk: Vec<_> =
        (0..40_000).filter(|n| session.guard().find_on_disk(&key(*n)).is_some()).collect();
    for number in &on_disk {
        let found = run(&mut session, &disk, |guard| Ok(guard.get(&key(*number)).is_some()));
        assert!(!found && session.guard().find_on_disk(&key(*number)).is_none());
    }
    // They had not been hits with more memory either.
    let stats = cache.stats();
    assert_eq!((stats.misses_evicted, stats.misses_absent), (0, on_disk.len() as u64));
}

/// After a restart, records are recovered unless their keys were changed before.
#[test]
fn records_of_an_earlier_run_are_recovered_unless_their_keys_changed() {
    let disk = Arc::new(Disk::default());
    let (cache, _) = cache(&disk);
    let mut session = cache.session().expect("room");
    cache.begin_restore();
    let places: Vec<_> =
        (0..100_000).map(|number| disk.write((key(number), value(number, 100), None))).collect();
    {
        let guard = session.guard();
        guard.set(&key(5), b"new", &Write::new()).map(drop).expect("room");
        assert!(!guard.remove(&key(6)));
    }
    let changed: BTreeSet<_> =
        [5, 6].iter().map(|number| cache.hash(&key(*number)).to_u64()).collect();
    assert_eq!(disk.0.lock().expect("no panic").changed, changed);
    let mut recovered = 0;
    for (number, place) in places.iter().enumerate() {
        let guard = session.guard();
        let hash = cache.hash(&key(number as u64));
        recovered += u32::from(guard.recover(hash, *place, 2).expect("room"));
    }
    cache.end_restore();
    assert!((99_000..=99_998).contains(&recovered), "{recovered}");
    let mut get = |number| {
        run(&mut session, &disk, |guard| {
            Ok(guard.get(&key(number)).map(|item| item.value().to_vec()))
        })
    };
    assert_eq!((get(5), get(6)), (Some(b"new".to_vec()), None));
    let found = (0..2000).filter(|number| get(100 + number).is_some()).count();
    assert!(found > 1950, "{found}");
    let guard = session.guard();
    let on_disk = guard.find_on_disk(&key(50_000)).expect("it was recovered");
    assert_eq!(on_disk.place(), places[50_000]);
    assert!(guard.forget(OnDisk::new(cache.hash(&key(50_000)), on_disk.place())));
    assert!(guard.find_on_disk(&key(50_000)).is_none());
}

/// A batch is longer than the groups in which keys are prefetched.
#[test]
fn prefetching_finds_which_items_are_on_disk() {
    let disk = Arc::new(Disk::default());
    let (cache, _) = cache(&disk);
    let mut session = cache.session().expect("room");
    cache.begin_restore();
    for number in 0..50_000 {
        let guard = session.guard();
        guard.recover(cache.hash(&key(number)), number + 1, 0).map(drop).expect("room");
    }
    for number in 50_000..100_000 {
        let guard = session.guard();
        guard.set(&key(number), b"value", &Write::new()).map(drop).expect("room");
    }
    let guard = session.guard();
    let count_on_disk = |numbers: Range<u64>, key_of: fn(KeyHash) -> BatchKey| {
        let mut keys: Vec<_> = numbers.map(|number| key_of(cache.hash(&key(number)))).collect();
        guard.prefetch(&mut keys);
        keys.iter().filter(|key| key.is_on_disk()).count()
    };
    let on_disk = (0..50_000).filter(|number| guard.find_on_disk(&key(*number)).is_some()).count();
    assert!(on_disk > 49_000, "{on_disk}");
    let found = count_on_disk(0..50_000, BatchKey::to_read);
    // An item in memory may have the tag of one on disk.
    assert!((49_000..=on_disk).contains(&found), "{found} of {on_disk}");
    assert!(count_on_disk(50_000..150_000, BatchKey::to_read) < 100);
    assert_eq!(count_on_disk(0..50_000, BatchKey::to_write), 0);
    // Keys can be prefetched again after their items have moved to memory.
    let mut keys: Vec<_> =
        (0..100).map(|number| BatchKey::to_read(cache.hash(&key(number)))).collect();
    guard.prefetch(&mut keys);
    assert!(keys.iter().any(BatchKey::is_on_disk));
    for number in 0..100 {
        guard.set(&key(number), b"value", &Write::new()).map(drop).expect("room");
    }
    guard.prefetch(&mut keys);
    assert!(!keys.iter().any(BatchKey::is_on_disk));
}

/// The probability that a lookup of a missing key needs a read is at most 0.001.
#[test]
fn a_missing_key_needs_no_read() {
    let disk = Arc::new(Disk::default());
    let (cache, _) = cache(&disk);
    let mut session = cache.session().expect("room");
    cache.begin_restore();
    for number in 0..300_000 {
        let guard = session.guard();
        guard.recover(cache.hash(&key(number)), number + 1, 0).map(drop).expect("room");
    }
    let guard = session.guard();
    assert!((0..300_000).all(|number| guard.find_on_disk(&key(number)).is_some()));
    let false_matches =
        (300_000..600_000).filter(|number| guard.find_on_disk(&key(*number)).is_some()).count();
    assert!(false_matches < 300, "{false_matches} of 300,000");
}
