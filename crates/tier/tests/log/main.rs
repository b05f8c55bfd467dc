//! Tests of the item log through its public interface.

mod crashes;
mod damage;
mod disks;
mod golden;
mod model;
mod opening;
mod power;
mod processes;
mod reading;
mod removal_crashes;
mod removal_damage;
mod removals;
mod writing;

use nuthatch_testing::random::{self, Random};
use nuthatch_tier::{
    AlignedBuffer, ManualClock, Options, Reader, Record, Recovery, RemovedRecords, Tier,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The time of all tests, in milliseconds since the Unix epoch.
const NOW_MS: u64 = 1_700_000_000_000;

/// An item that owns its key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    key: Vec<u8>,
    value: Vec<u8>,
    expires_ms: Option<u64>,
}

impl Item {
    /// Returns an item with a value of `len` bytes, which depend on the number.
    fn new(number: u64, len: usize) -> Self {
        let key = format!("key:{number}").into_bytes();
        Self { key, value: random::bytes(number, len), expires_ms: None }
    }

    /// Returns an item with a value of a random length below `end`.
    fn random(number: u64, random: &mut Random, end: u64) -> Self {
        let expires_ms = (random.below(2) == 0).then(|| NOW_MS + random.below(1_000_000));
        Self { expires_ms, ..Self::new(number, random.below(end) as usize) }
    }

    fn record(&self) -> Record<'_> {
        Record {
            key: &self.key,
            value: &self.value,
            hash: xxh3_64(&self.key),
            expires_ms: self.expires_ms,
            ..Record::default()
        }
    }

    fn of(record: &Record<'_>) -> Self {
        assert_eq!(record.hash, xxh3_64(record.key), "the hash of the key");
        let (key, value) = (record.key.to_vec(), record.value.to_vec());
        Self { key, value, expires_ms: record.expires_ms }
    }
}

/// A temporary folder.
struct Case {
    place: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self { place: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("tier")
    }

    /// Opens the folder with small files.
    fn open(&self) -> (Tier, Recovery) {
        Tier::open(self.path(), &small()).expect("a tier")
    }

    /// Returns the paths of the item files, the oldest first.
    fn item_files(&self) -> Vec<PathBuf> {
        item_files(&self.path())
    }
}

/// Returns the paths of the files of the removal log, the oldest first.
fn log_files(folder: &Path) -> Vec<PathBuf> {
    files_of(folder, "removed-")
}

fn files_of(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = paths.filter(|path| name_of(path).starts_with(prefix)).collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

fn item_files(folder: &Path) -> Vec<PathBuf> {
    files_of(folder, "items-")
}

/// Returns options with files of 64 KiB and batches of 16 KiB.
fn small() -> Options {
    Options {
        file_len: 64 << 10,
        batch_len: 16 << 10,
        clock: Arc::new(ManualClock::new(NOW_MS)),
        ..Options::new(2 << 20)
    }
}

/// Returns all records in the order in which they were written.
fn load(reader: &Reader) -> Vec<Item> {
    let mut items = Vec::new();
    let loaded = reader.all_records(|_, record| {
        items.push(Item::of(record));
        ControlFlow::Continue(())
    });
    assert_eq!(loaded.damage, []);
    assert_eq!(loaded.records, items.len() as u64);
    items
}

/// Returns the records that are not removed, in the order in which they were written.
fn live(reader: &Reader, removed: &RemovedRecords) -> Vec<Item> {
    let mut items = Vec::new();
    let loaded = reader.all_records(|place, record| {
        if !removed.contains(reader.record_id(place).expect("a file"), record.hash) {
            items.push(Item::of(record));
        }
        ControlFlow::Continue(())
    });
    assert_eq!(loaded.damage, []);
    items
}

/// Reads the records of all entries of all directories, in the order in which they were written.
fn load_by_directories(reader: &Reader) -> Vec<Item> {
    let (mut items, mut buffer) = (Vec::new(), AlignedBuffer::new(0));
    for number in reader.numbers() {
        let (directory, damage) = reader.directory(number).expect("a file");
        assert_eq!(damage, []);
        for entry in directory.iter() {
            let plan = reader.read_plan(entry.place).expect("a written record");
            buffer.reserve(plan.len());
            let bytes = &mut buffer.as_mut_slice()[..plan.len()];
            nuthatch_tier::Disk::read(
                &nuthatch_tier::SystemDisk,
                plan.file(),
                "",
                bytes,
                plan.offset(),
            )
            .expect("bytes");
            let record = plan.parse_any(bytes).expect("a record");
            assert_eq!(record.hash, entry.hash);
            let rounded = entry.expires_ms.map(|ms| ms / 1000);
            assert_eq!(record.expires_ms.map(|ms| ms.div_ceil(1000)), rounded);
            items.push(Item::of(&record));
        }
    }
    items
}
