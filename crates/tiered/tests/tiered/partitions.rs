//! Partitions of the keys: their records on disk are made invalid, kept over restarts, and read.

use crate::{Client, DISK, Events, cache_options, fill, folder_for, key, value, wait_until};
use nuthatch_cache::KeyHash;
use nuthatch_tiered::{KeptPartitions, TieredCache};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

const ITEMS: u64 = 12_000;
const LEN: usize = 3000;
const PARTITIONS: u16 = 4;

fn partition_of(key: &[u8]) -> u16 {
    u16::from(*key.last().expect("a digit") - b'0') % PARTITIONS
}

fn number_partition(number: u64) -> u16 {
    partition_of(&key(number))
}

fn open_with(folder: &Path, kept: KeptPartitions) -> TieredCache {
    let options = Events::default().options(folder, DISK).partitions(partition_of, kept);
    let tiered = TieredCache::open(cache_options(), &options).expect("a cache");
    wait_until(|| !tiered.stats().is_recovering);
    tiered
}

/// What the next process needs, for these partitions.
fn kept(tiered: &TieredCache, partitions: &[u16]) -> KeptPartitions {
    let first = tiered.first_records().expect("partitions");
    let first_records = partitions.iter().map(|partition| (*partition, first.get(*partition)));
    KeptPartitions { folder_id: tiered.folder_id(), first_records: first_records.collect() }
}

/// Opens the folder of a cache again, which is closed before, or ends as a process that dies.
fn open_again(
    (tiered, dies): (TieredCache, bool),
    folder: &Path,
    kept: KeptPartitions,
) -> TieredCache {
    if !dies {
        tiered.close(Instant::now() + Duration::from_mins(10)).expect("closed");
    }
    drop(tiered);
    open_with(folder, kept)
}

/// Removes what is in memory of a partition. Returns how much there was.
fn remove_from_memory(client: &mut Client<'_>, partition: u16) -> u64 {
    let (mut cursor, mut removed) = (0, 0);
    loop {
        let guard = client.session.guard();
        cursor = guard.scan_in_memory(cursor, 100, |item| {
            if partition_of(item.key()) == partition {
                removed += u64::from(guard.remove(item.key()));
            }
        });
        if cursor == 0 {
            return removed;
        }
    }
}

/// Returns the bytes of the removal log that are in use, of which none is zero at its end.
fn removal_log_len(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one"));
    let logs = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("removed-"));
    let used = logs.map(|entry| {
        let bytes = std::fs::read(entry.path()).expect("a file");
        bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
    });
    used.sum()
}

#[test]
fn a_key_has_its_partition_in_its_hash() {
    let folder = folder_for(0);
    let tiered = open_with(folder.path(), KeptPartitions::default());
    for number in 0..100 {
        let hash = tiered.cache().hash(&key(number));
        assert_eq!(hash.partition(), number_partition(number));
        let hash = KeyHash::from_u64(hash.to_u64()).in_partition((1 << 14) + 5);
        assert_eq!(hash.partition(), 5, "14 bits");
    }
}

/// Makes all items of a partition invalid while they are in memory, on disk, and being demoted.
#[test]
fn items_of_a_partition_that_was_suspended_are_not_found() {
    let folder = folder_for(ITEMS);
    let tiered = open_with(folder.path(), KeptPartitions::default());
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, LEN);
    assert!(tiered.cache().stats().items_on_disk > ITEMS / 2);
    tiered.suspend(std::iter::once(1));
    remove_from_memory(&mut client, 1);
    tiered.resume(std::iter::once(1));
    // More than the memory, so that items leave it.
    for number in ITEMS..ITEMS + 6000 {
        client.set(&key(number), &value(number, 0, LEN));
    }
    let on_disk = tiered.cache().stats().items_on_disk;
    let in_partition = |partition| partition == 1;
    let logged = removal_log_len(folder.path());
    let forgotten = tiered.forget_invalid(&mut client.session, &in_partition, &|| true);
    // The demoter may have written entries meanwhile.
    let grown = removal_log_len(folder.path()) - logged;
    assert!(grown < 2 * forgotten as usize, "no entry of 8 bytes for each record: {grown}");
    assert!(forgotten > ITEMS / 8, "{forgotten}");
    assert!(tiered.cache().stats().items_on_disk <= on_disk - forgotten / 2);
    for number in 0..ITEMS + 6000 {
        let is_invalid = number < ITEMS && number_partition(number) == 1;
        let expected = (!is_invalid).then(|| value(number, 0, LEN));
        assert!(client.get(&key(number)) == expected, "{number}");
    }
}

/// Without [`TieredCache::forget_invalid`], the index points to records that are not valid.
#[test]
fn an_invalid_record_is_not_promoted() {
    let folder = folder_for(ITEMS);
    let tiered = open_with(folder.path(), KeptPartitions::default());
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, LEN);
    tiered.suspend(std::iter::once(2));
    remove_from_memory(&mut client, 2);
    tiered.resume(std::iter::once(2));
    for number in (0..ITEMS).filter(|number| number_partition(*number) == 2) {
        assert_eq!(client.get(&key(number)), None, "{number}");
        assert!(!client.remove(&key(number)), "{number}");
    }
    assert!(client.waits > ITEMS / 8, "records were read");
}

#[test]
fn only_kept_partitions_are_recovered() {
    let folder = folder_for(ITEMS);
    for dies in [false, true] {
        let tiered = open_with(folder.path(), KeptPartitions::default());
        let mut client = Client::new(&tiered);
        fill(&mut client, ITEMS, LEN);
        let kept = kept(&tiered, &[0, 2]);
        drop(client);
        let tiered = open_again((tiered, dies), folder.path(), kept);
        let mut client = Client::new(&tiered);
        let mut found = [0; PARTITIONS as usize];
        for number in 0..ITEMS {
            if let Some(one) = client.get(&key(number)) {
                assert!(one == value(number, 0, LEN), "{number}");
                found[usize::from(number_partition(number))] += 1;
            }
        }
        assert!(found[0] > ITEMS / 8 && found[2] > ITEMS / 8, "{found:?}");
        assert_eq!((found[1], found[3]), (0, 0));
        drop(client);
        drop(tiered);
        // What was kept of another folder.
        let tiered = open_with(folder.path(), KeptPartitions::default());
        assert!(tiered.cache().is_empty());
    }
}

/// A partition is suspended and resumed, and the process ends: its earlier items do not come back.
#[test]
fn records_before_the_first_valid_one_are_not_recovered() {
    for dies in [false, true] {
        let folder = folder_for(2 * ITEMS);
        let tiered = open_with(folder.path(), KeptPartitions::default());
        let mut client = Client::new(&tiered);
        fill(&mut client, ITEMS, LEN);
        tiered.suspend(std::iter::once(1));
        remove_from_memory(&mut client, 1);
        tiered.resume(std::iter::once(1));
        for number in ITEMS..2 * ITEMS {
            client.set(&key(number), &value(number, 0, LEN));
        }
        let kept = kept(&tiered, &[0, 1, 2, 3]);
        drop(client);
        let tiered = open_again((tiered, dies), folder.path(), kept);
        let mut client = Client::new(&tiered);
        let (mut old, mut new) = (0, 0);
        for number in (0..2 * ITEMS).filter(|number| number_partition(*number) == 1) {
            let found = client.get(&key(number)).is_some();
            *(if number < ITEMS { &mut old } else { &mut new }) += u64::from(found);
        }
        assert_eq!(old, 0);
        assert!(new > ITEMS / 8, "{new}");
    }
}

/// Visits the records of some partitions on disk. Returns the values of those that are current.
fn visit(client: &mut Client<'_>, partitions: &[u16]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (tiered, mut found) = (client.tiered, BTreeMap::new());
    let is_wanted = |partition| partitions.contains(&partition);
    for file in tiered.item_files() {
        let ended = tiered.visit_records(
            &mut client.session,
            (file, &is_wanted),
            &mut |session, disk_record| {
                let record = &disk_record.record;
                assert!(partitions.contains(&partition_of(record.key)));
                if tiered.is_current(&session.guard(), disk_record) {
                    found.insert(record.key.to_vec(), record.value.to_vec());
                }
                ControlFlow::Continue(())
            },
        );
        assert!(ended.is_continue());
    }
    found
}

#[test]
fn all_current_items_on_disk_are_visited() {
    let folder = folder_for(ITEMS);
    let tiered = open_with(folder.path(), KeptPartitions::default());
    let mut client = Client::new(&tiered);
    // One of 400 is longer than what is read together.
    let len = |number| if number % 400 == 0 { 3 << 20 } else { 100 + number as usize % 4000 };
    let count = 4000;
    let version = |client: &mut Client<'_>, number, version| {
        let len = if version == 0 { len(number) } else { 100 };
        client.set(&key(number), &value(number, version, len));
    };
    (0..count).for_each(|number| version(&mut client, number, 0));
    (0..count).step_by(7).for_each(|number| version(&mut client, number, 1));
    (0..count).step_by(11).for_each(|number| _ = client.remove(&key(number)));
    (count..count + 4000).for_each(|number| version(&mut client, number, 0));
    // Some are promoted, and stay on disk, too.
    (0..count).step_by(5).for_each(|number| _ = client.get(&key(number)));
    let found = visit(&mut client, &[0, 3]);
    let mut in_memory = 0;
    for number in (0..count + 4000).filter(|number| [0, 3].contains(&number_partition(*number))) {
        let is_removed = number < count && number % 11 == 0;
        let changes = u64::from(number < count && number % 7 == 0);
        let expected = if changes == 0 { len(number) } else { 100 };
        let expected = (!is_removed).then(|| value(number, changes, expected));
        let guard = client.session.guard();
        let is_on_disk = guard.find_on_disk(&key(number)).is_some();
        drop(guard);
        match (is_on_disk, found.get(&key(number))) {
            (true, Some(one)) => assert!(Some(one) == expected.as_ref(), "{number}"),
            (true, None) => panic!("{number} was not visited"),
            (false, one) => in_memory += u64::from(one.is_none()),
        }
    }
    assert!(found.len() > 1000 && in_memory > 0, "{} {in_memory}", found.len());
}

#[test]
fn a_visit_ends_when_it_is_told_to() {
    let folder = folder_for(ITEMS);
    let tiered = open_with(folder.path(), KeptPartitions::default());
    let mut client = Client::new(&tiered);
    fill(&mut client, ITEMS, LEN);
    let (file, mut visited) = (tiered.item_files()[0], 0);
    let ended = tiered.visit_records(&mut client.session, (file, &|_| true), &mut |_, _| {
        visited += 1;
        if visited == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(ended.is_break() && visited == 3);
    let missing =
        tiered.visit_records(&mut client.session, (u64::MAX >> 40, &|_| true), &mut |_, _| {
            unreachable!("there is no such file")
        });
    assert!(missing.is_continue());
}
