//! The death of the process: nothing that was removed or replaced comes back.

use crate::disks::{FailingDisk, Fails};
use crate::{Client, DISK, Events, cache_options, key, open, open_recovered, value, wait_until};
use nuthatch_cache::{Condition, Write};
use nuthatch_testing::random::Random;
use nuthatch_tiered::TieredCache;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes on disk with which item files are removed for room.
const SMALL_DISK: u64 = 16 << 20;

/// The number of keys.
const KEYS: u64 = 10_000;

/// The state of each key after the last operations that were acknowledged.
#[derive(Default)]
struct Expected {
    items: HashMap<u64, Vec<u8>>,
    /// What the operation that the death of the process interrupted may have stored.
    interrupted: HashMap<u64, Option<Vec<u8>>>,
    /// Whether that operation was a clear.
    may_be_cleared: bool,
}

impl Expected {
    fn allows(&self, number: u64, found: &Vec<u8>) -> bool {
        let interrupted = self.interrupted.get(&number);
        self.items.get(&number) == Some(found)
            || interrupted.is_some_and(|value| value.as_ref() == Some(found))
    }

    /// Looks up all keys. Returns how many were found.
    fn check(&mut self, client: &mut Client<'_>) -> u64 {
        let mut count = 0;
        for number in 0..KEYS {
            let found = client.get(&key(number));
            if let Some(found) = &found {
                assert!(self.allows(number, found), "an old value of {number} came back");
                count += 1;
            }
            if self.interrupted.contains_key(&number) || self.may_be_cleared {
                match found {
                    Some(found) => self.items.insert(number, found),
                    None => self.items.remove(&number),
                };
            }
        }
        self.interrupted.clear();
        self.may_be_cleared = false;
        count
    }
}

/// An operation and what it stores.
enum Operation {
    Set(u64, Vec<u8>),
    Add(u64, Vec<u8>),
    Update(u64),
    SetAll(u64, Vec<u8>),
    Remove(u64),
    Get(u64),
    Clear,
}

impl Operation {
    fn random(random: &mut Random, version: u64) -> Self {
        let number = random.below(KEYS - 2);
        let new = value(number, version, random.below(4000) as usize);
        match random.below(4000) {
            0 if random.below(8) == 0 => Self::Clear,
            0..1800 => Self::Set(number, new),
            1800..2000 => Self::Add(number, new),
            2000..2200 => Self::Update(number),
            2200..2400 => Self::SetAll(number, new),
            2400..3000 => Self::Remove(number),
            _ => Self::Get(number),
        }
    }

    /// Runs the operation. Returns the new state of each key that it changed.
    fn run(&self, client: &mut Client<'_>) -> Vec<(u64, Option<Vec<u8>>)> {
        match self {
            Self::Set(number, new) => {
                client.set(&key(*number), new);
                vec![(*number, Some(new.clone()))]
            }
            Self::Add(number, new) => {
                let write = Write::new().condition(Condition::Absent);
                let stored = client.run(|guard| guard.set(&key(*number), new, &write));
                let is_stored = stored == nuthatch_cache::Outcome::Stored;
                is_stored.then(|| (*number, Some(new.clone()))).into_iter().collect()
            }
            Self::Update(number) => {
                let new = client.run(|guard| {
                    guard.update(&key(*number), |item, out| {
                        out.extend(item.iter().flat_map(nuthatch_cache::Item::value).take(100));
                        out.push(b'x');
                        (Some(Write::new()), out.clone())
                    })
                });
                vec![(*number, Some(new))]
            }
            Self::SetAll(number, new) => {
                let keys = [key(*number), key(number + 1)];
                let pairs = || keys.iter().map(|key| (&key[..], &new[..]));
                client.run(|guard| guard.set_all(pairs(), &Write::new()));
                (*number..number + 2).map(|number| (number, Some(new.clone()))).collect()
            }
            Self::Remove(number) => {
                client.remove(&key(*number));
                vec![(*number, None)]
            }
            Self::Get(number) => {
                client.get(&key(*number));
                Vec::new()
            }
            Self::Clear => {
                client.clear();
                Vec::new()
            }
        }
    }
}

/// Runs random operations until there were `steps`, or until the process has died.
fn run(
    client: &mut Client<'_>,
    expected: &mut Expected,
    (random, version): (&mut Random, &mut u64),
    steps: u64,
    has_died: impl Fn() -> bool,
) {
    for _ in 0..steps {
        *version += 1;
        let operation = Operation::random(random, *version);
        let changes = operation.run(client);
        if has_died() {
            expected.interrupted.extend(changes);
            expected.may_be_cleared = matches!(operation, Operation::Clear);
            return;
        }
        if matches!(operation, Operation::Clear) {
            expected.items.clear();
        }
        for (number, new) in changes {
            match new {
                Some(new) => expected.items.insert(number, new),
                None => expected.items.remove(&number),
            };
        }
    }
}

/// The process dies after operations, several times, and also while items are recovered.
#[test]
fn nothing_comes_back_after_the_process_died() {
    for seed in 1..=2 {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut random, mut expected) = (Random::new(seed), Expected::default());
        let (mut version, mut found) = (0, 0);
        for generation in 0..10 {
            let tiered = open(folder.path(), DISK);
            let mut client = Client::new(&tiered);
            if generation % 3 > 0 {
                // The others run while items are recovered.
                wait_until(|| !tiered.stats().is_recovering);
                found += expected.check(&mut client);
            }
            let steps = [50, 12_000, 25_000][random.below(3) as usize];
            run(&mut client, &mut expected, (&mut random, &mut version), steps, || false);
        }
        let tiered = open_recovered(folder.path(), DISK);
        found += expected.check(&mut Client::new(&tiered));
        assert!(found > 3000, "{found}");
    }
}

fn open_on(disk: &Arc<FailingDisk>, folder: &Path) -> TieredCache {
    let options = Events::default().options(folder, SMALL_DISK).disk(Arc::clone(disk) as _);
    TieredCache::open(cache_options(), &options).expect("a cache")
}

/// The process dies at an operation of the disk, which are those of the log of removed records as
/// well. Item files are removed for room meanwhile.
#[test]
fn nothing_comes_back_after_the_process_died_at_any_operation_of_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut random, mut expected) = (Random::new(7), Expected::default());
    let (mut version, mut found) = (0, 0);
    for _ in 0..12 {
        let disk = Arc::new(FailingDisk::new(Fails::All, 5, u64::MAX));
        let tiered = open_on(&disk, folder.path());
        let mut client = Client::new(&tiered);
        if random.below(3) > 0 {
            wait_until(|| !tiered.stats().is_recovering);
            found += expected.check(&mut client);
        }
        disk.fail_after(random.below(4000));
        let has_died = || disk.fails_now();
        run(&mut client, &mut expected, (&mut random, &mut version), 25_000, has_died);
    }
    let tiered = open_recovered(folder.path(), SMALL_DISK);
    found += expected.check(&mut Client::new(&tiered));
    assert!(found > 3000, "{found}");
}
