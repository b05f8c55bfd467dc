//! Random operations have the results of a map.

use crate::{Client, DISK, folder_for, key, lost, open, scan, value};
use nuthatch_cache::{Condition, Outcome, Write};
use nuthatch_testing::random::Random;
use std::collections::HashMap;

/// A client, and a map that has the expected items.
struct Subject<'c> {
    client: Client<'c>,
    model: HashMap<u64, Vec<u8>>,
}

impl Subject<'_> {
    fn get(&mut self, number: u64) {
        let found = self.client.get(&key(number));
        assert!(found.as_ref() == self.model.get(&number), "{number}");
    }

    fn set(&mut self, number: u64, new: Vec<u8>) {
        self.client.set(&key(number), &new);
        self.model.insert(number, new);
    }

    fn remove(&mut self, number: u64) {
        let removed = self.client.remove(&key(number));
        assert_eq!(removed, self.model.remove(&number).is_some(), "{number}");
    }

    fn add(&mut self, number: u64, new: Vec<u8>) {
        let write = Write::new().condition(Condition::Absent);
        let outcome = self.client.run(|guard| guard.set(&key(number), &new, &write));
        assert_eq!(outcome == Outcome::Stored, !self.model.contains_key(&number), "{number}");
        self.model.entry(number).or_insert(new);
    }

    /// Replaces a value by its first 100 bytes and an `x`.
    fn update(&mut self, number: u64) {
        let found = self.client.run(|guard| {
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

    fn set_all(&mut self, number: u64, new: &[u8]) {
        let pairs = [key(number), key(number + 1), key(number + 2)];
        let pairs = || pairs.iter().map(|key| (&key[..], new));
        self.client.run(|guard| guard.set_all(pairs(), &Write::new()));
        self.model.extend((number..number + 3).map(|number| (number, new.to_vec())));
    }

    fn check_scan(&mut self) {
        let mut expected: Vec<_> = self.model.keys().map(|number| key(*number)).collect();
        expected.sort();
        assert!(scan(&mut self.client) == expected);
    }
}

/// Writers wait for the disk, so that no item is lost.
#[test]
fn random_operations_have_the_results_of_a_map() {
    for seed in 1..=2 {
        let folder = folder_for(12_002);
        let tiered = open(folder.path(), DISK);
        let mut subject = Subject { client: Client::new(&tiered), model: HashMap::new() };
        let mut random = Random::new(seed);
        for step in 0..30_000 {
            let number = random.below(12_000);
            let new = value(number, step, random.below(6000) as usize);
            match random.below(16) {
                0..=6 => subject.set(number, new),
                7..=11 => subject.get(number),
                12 => subject.remove(number),
                13 => subject.add(number, new),
                14 => subject.update(number),
                _ => subject.set_all(number, &new),
            }
        }
        let (stats, disk) = (tiered.cache().stats(), tiered.stats());
        assert_eq!(stats.items, subject.model.len() as u64);
        assert!(stats.items_on_disk > stats.items / 3, "{stats:?}");
        assert_eq!((lost(tiered.cache()), disk.dropped), (0, 0), "{disk:?}");
        assert_eq!((disk.bad_records, disk.removed_for_room, disk.is_off), (0, 0, false));
        assert!(disk.hits > 1000 && subject.client.waits >= disk.hits, "{disk:?}");
        subject.check_scan();
        // The scan knew only some bits of the hashes of the items that it read.
        assert_eq!(tiered.stats().false_matches, 0);
        subject.client.clear();
        subject.model.clear();
        subject.check_scan();
        (0..12_000).for_each(|number| subject.get(number));
        assert_eq!(tiered.cache().stats().items_on_disk, 0);
    }
}

/// FLUSHALL removes the item files of items before it, and none of those after it.
#[test]
fn items_that_are_stored_after_a_clear_stay() {
    let folder = folder_for(12_002);
    let tiered = open(folder.path(), DISK);
    let mut subject = Subject { client: Client::new(&tiered), model: HashMap::new() };
    for round in 0..12 {
        for number in 0..4000 {
            subject.set(number, value(number, round, 2000 * (1 + (round as usize & 1))));
        }
        subject.client.clear();
        subject.model.clear();
    }
    for number in 0..9000 {
        subject.set(number, value(number, 99, 3000));
    }
    (0..9000).for_each(|number| subject.get(number));
    assert_eq!(lost(tiered.cache()), 0);
}
