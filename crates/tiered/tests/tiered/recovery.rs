//! The recovery of the items of the last run, while the cache is in use.

use crate::wait_until;
use crate::{Client, DISK, cache_options, fill, folder_for, key, open, open_recovered, value};
use nuthatch_cache::Cache;
use nuthatch_tier::{Options as TierOptions, Record, Tier};
use std::time::{Duration, Instant};

const ITEMS: u64 = 12_000;

/// What is changed while items are recovered holds, also after the process died.
#[test]
fn changes_during_the_recovery_hold() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, 3000);
    drop(client);
    tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
    drop(tiered);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    for number in 0..600 {
        match number % 3 {
            0 => drop(client.remove(&key(number))),
            1 => client.set(&key(number), &value(number, 1, 10)),
            _ => {}
        }
    }
    wait_until(|| !tiered.stats().is_recovering);
    for number in 0..600 {
        let found = client.get(&key(number));
        match number % 3 {
            0 => assert!(found.is_none(), "{number} came back"),
            1 => assert!(found == Some(value(number, 1, 10)), "{number}"),
            _ => assert!(found.is_none_or(|found| found == value(number, 0, 3000)), "{number}"),
        }
    }
    drop(client);
    drop(tiered);
    let tiered = open_recovered(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    for number in 0..600 {
        let found = client.get(&key(number));
        match number % 3 {
            0 => assert!(found.is_none(), "{number} came back"),
            1 => assert!(found.is_none_or(|found| found == value(number, 1, 10)), "{number}"),
            _ => assert!(found.is_none_or(|found| found == value(number, 0, 3000)), "{number}"),
        }
    }
}

/// A clear while items are recovered removes those that are not recovered yet, too.
#[test]
fn a_clear_during_the_recovery_removes_all() {
    let folder = folder_for(ITEMS);
    let tiered = open(folder.path(), DISK);
    fill(&mut Client::new(&tiered), ITEMS, 3000);
    tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
    drop(tiered);
    let tiered = open(folder.path(), DISK);
    let mut client = Client::new(&tiered);
    client.clear();
    client.set(&key(0), b"new");
    wait_until(|| !tiered.stats().is_recovering);
    assert_eq!(tiered.cache().len(), 1);
    drop(client);
    tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
    drop(tiered);
    let tiered = open_recovered(folder.path(), DISK);
    assert_eq!(tiered.cache().len(), 1);
    assert_eq!(Client::new(&tiered).get(&key(0)), Some(b"new".to_vec()));
}

/// Records that were not committed when the process died are not valid later, even if the cache is
/// closed at once.
#[test]
fn records_that_were_not_committed_stay_removed_after_a_stop_during_the_recovery() {
    for _ in 0..10 {
        let folder = folder_for(ITEMS);
        let options = TierOptions { file_len: 64 << 10, ..TierOptions::new(DISK) };
        let options = TierOptions { batch_len: 16 << 10, ..options };
        let (mut tier, _) = Tier::open(folder.path(), &options).expect("a tier");
        let cache = Cache::new(cache_options().seed(tier.hash_seed())).expect("a cache");
        let removals = tier.removals().expect("a log");
        removals.commit().expect("committed");
        for number in 0..2000 {
            let (key, value) = (key(number), value(number, 0, 1000));
            let hash = cache.hash(&key).to_u64();
            let record = Record { key: &key, value: &value, hash, ..Record::default() };
            tier.append(&record).expect("room");
        }
        tier.flush().expect("written");
        drop((tier, removals));
        let tiered = open(folder.path(), DISK);
        let mut client = Client::new(&tiered);
        assert!(!client.remove(&key(0)));
        drop(client);
        tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
        drop(tiered);
        let tiered = open_recovered(folder.path(), DISK);
        assert_eq!(tiered.cache().len(), 0, "no record was committed");
    }
}
