//! Readers on other threads, and a disk that cannot be read.

use crate::{Case, Item, load, small};
use nuthatch_tier::{AlignedBuffer, Disk, Options, ReadError, SystemDisk, Tier, stat, verify};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

/// A disk whose reads fail from an offset on, while it is told so.
#[derive(Default)]
struct UnreadableDisk {
    fails: AtomicBool,
}

impl Disk for UnreadableDisk {
    fn create(&self, folder: &File, name: &str) -> io::Result<File> {
        SystemDisk.create(folder, name)
    }

    fn allocate(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        SystemDisk.allocate(file, name, len)
    }

    fn write(&self, file: &File, name: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        SystemDisk.write(file, name, bytes, offset)
    }

    fn read(&self, file: &File, name: &str, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.fails.load(Ordering::Relaxed) && (8192..32_768).contains(&offset) {
            return Err(io::Error::from_raw_os_error(5));
        }
        SystemDisk.read(file, name, bytes, offset)
    }

    fn set_len(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        SystemDisk.set_len(file, name, len)
    }

    fn sync(&self, file: &File, name: &str) -> io::Result<()> {
        SystemDisk.sync(file, name)
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        SystemDisk.sync_folder(folder)
    }

    fn rename(&self, folder: &File, from: &str, to: &str) -> io::Result<()> {
        SystemDisk.rename(folder, from, to)
    }

    fn remove(&self, folder: &File, name: &str) -> io::Result<()> {
        SystemDisk.remove(folder, name)
    }
}

#[test]
fn records_of_a_file_are_read_together() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let items: Vec<_> = (0..20).map(|number| Item::new(number, 1000)).collect();
    let mut places = Vec::new();
    for item in &items {
        places.push(tier.append(&item.record()).expect("appended"));
    }
    let (reader, mut buffer) = (tier.reader(), AlignedBuffer::new(0));
    assert!(reader.read_plans(&places).is_none(), "not written yet");
    tier.seal().expect("sealed");
    let plans = reader.read_plans(&places[3..15]).expect("plans");
    reader.fill(&plans[0], &mut buffer).expect("read");
    for ((item, place), plan) in items[3..15].iter().zip(&places[3..15]).zip(&plans) {
        let record = plan.parse_any(&buffer.as_slice()[..plan.len()]).expect("a record");
        assert_eq!((Item::of(&record), plan.place()), (item.clone(), *place));
    }
    assert!(reader.read_plans(&[]).is_none());
    let other = tier.append(&Item::new(30, 10).record()).expect("appended");
    tier.flush().expect("flushed");
    assert!(reader.read_plans(&[places[0], other]).is_none(), "two files");
}

#[test]
fn a_read_that_fails_is_damage_and_changes_nothing() {
    let (case, disk) = (Case::new(), Arc::new(UnreadableDisk::default()));
    let options = Options { disk: disk.clone(), ..small() };
    let (mut tier, _) = Tier::open(case.path(), &options).expect("a tier");
    let items: Vec<_> = (0..8).map(|number| Item::new(number, 3000)).collect();
    let mut places = Vec::new();
    for item in &items {
        places.push(tier.append(&item.record()).expect("appended"));
        tier.flush().expect("flushed");
    }
    disk.fails.store(true, Ordering::Relaxed);
    let mut buffer = AlignedBuffer::new(0);
    let error = tier.reader().read(places[4], &items[4].key, &mut buffer).expect_err("an error");
    let ReadError::Damaged(damage) = &error else { panic!("{error}") };
    assert!(damage.reason.starts_with("cannot be read: Input/output error"), "{error}");
    assert_eq!(damage.file, "items-0000000001.log");
    drop(tier);
    // The file is not sealed, and cannot be read: it is not changed.
    let before = std::fs::read(&case.item_files()[0]).expect("a file");
    let (tier, recovery) = Tier::open(case.path(), &options).expect("a tier");
    assert!(!recovery.damage.is_empty());
    assert_eq!(recovery.records, 0);
    drop(tier);
    assert_eq!(std::fs::read(&case.item_files()[0]).expect("a file"), before);
    // The error was temporary.
    disk.fails.store(false, Ordering::Relaxed);
    let (tier, recovery) = Tier::open(case.path(), &options).expect("a tier");
    assert_eq!((recovery.damage.len(), recovery.records), (0, 8));
    assert_eq!(load(&tier.reader()), items);
}

#[test]
fn readers_on_other_threads_see_each_record_or_none() {
    let case = Case::new();
    let options = Options { max_bytes: 600 << 10, ..small() };
    let (mut tier, _) = Tier::open(case.path(), &options).expect("a tier");
    let (mut senders, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (reader, (sender, receiver)) = (tier.reader(), channel::<(Item, _)>());
        senders.push(sender);
        threads.push(std::thread::spawn(move || {
            let (mut buffer, mut found) = (AlignedBuffer::new(0), 0);
            for (item, place) in receiver {
                match reader.read(place, &item.key, &mut buffer) {
                    Ok(record) => {
                        assert_eq!(Item::of(&record), item);
                        found += 1;
                    }
                    // The file was removed; then its slot may have another file.
                    Err(ReadError::Missing | ReadError::OtherKey | ReadError::Damaged(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            found
        }));
    }
    for number in 0..3000 {
        let item = Item::new(number, (number % 1500) as usize);
        let place = loop {
            match tier.append(&item.record()) {
                Ok(place) => break place,
                Err(error) if error.is_budget_reached() => {
                    // Bytes of a file that is being read are not free yet.
                    if tier.remove_oldest().expect("removed").is_none() {
                        std::thread::yield_now();
                    }
                }
                Err(error) => panic!("{error}"),
            }
        };
        tier.flush().expect("flushed");
        for sender in &senders {
            sender.send((item.clone(), place)).expect("a thread");
        }
    }
    drop(senders);
    for thread in threads {
        assert!(thread.join().expect("no panic") > 0);
    }
}

#[test]
fn a_folder_without_a_lock_file_is_read_only() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    tier.append(&Item::new(1, 10).record()).expect("appended");
    tier.close().expect("closed");
    std::fs::remove_file(case.path().join("lock")).expect("removed");
    assert_eq!(stat(case.path(), 0).expect("statistics").records, 1);
    assert_eq!(verify(case.path(), |_, _| ()).expect("verified").records, 1);
    assert!(!case.path().join("lock").exists());
}
