//! Appending, sealing, removing, and the budget.

use crate::{Case, Item, NOW_MS, load, load_by_directories, small};
use nuthatch_testing::random::Random;
use nuthatch_tier::{AlignedBuffer, Error, FolderState, Kind, Options, ReadError, Record, Tier};
use std::os::unix::fs::MetadataExt;

#[test]
fn records_are_read_as_they_were_written() {
    let case = Case::new();
    let (mut tier, recovery) = case.open();
    assert!(recovery.state == FolderState::New);
    let mut random = Random::new(3);
    let items: Vec<_> = (0..200).map(|number| Item::random(number, &mut random, 3000)).collect();
    let places: Vec<_> =
        items.iter().map(|item| tier.append(&item.record()).expect("appended")).collect();
    tier.flush().expect("flushed");
    let (reader, mut buffer) = (tier.reader(), AlignedBuffer::new(0));
    for (item, place) in items.iter().zip(&places) {
        let record = reader.read(*place, &item.key, &mut buffer).expect("a record");
        assert_eq!(Item::of(&record), *item);
        let unknown = nuthatch_tier::Place { blocks: 0, ..*place };
        let record = reader.read(unknown, &item.key, &mut buffer).expect("a record");
        assert_eq!(Item::of(&record), *item);
        let other = reader.read(*place, b"other", &mut buffer);
        assert_eq!(other, Err(ReadError::OtherKey));
    }
    assert!(load(&reader) == items && load_by_directories(&reader) == items);
    tier.close().expect("closed");
    let (tier, recovery) = case.open();
    assert!(recovery.state == FolderState::Closed);
    assert_eq!((recovery.records, recovery.unsealed_files), (200, 0));
    assert!(load(&tier.reader()) == items && load_by_directories(&tier.reader()) == items);
}

#[test]
fn all_fields_of_a_record_are_kept() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let record = Record {
        key: b"",
        value: b"",
        hash: u64::MAX,
        kind: Kind::new(15).expect("a kind"),
        database: 255,
        frequency: 3,
        expires_ms: Some(NOW_MS),
        cas: Some(u64::MAX),
        client_flags: Some(u32::MAX),
        is_compressed: true,
    };
    let place = tier.append(&record).expect("appended");
    tier.seal().expect("sealed");
    let mut buffer = AlignedBuffer::new(0);
    assert_eq!(tier.reader().read(place, b"", &mut buffer), Ok(record));
    let (directory, _) = tier.reader().directory(1).expect("a directory");
    let entry = directory.iter().next().expect("an entry");
    assert_eq!((entry.hash, entry.place, entry.frequency), (u64::MAX, place, 3));
}

#[test]
fn a_record_that_is_not_written_yet_is_missing() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let place = tier.append(&Item::new(1, 100).record()).expect("appended");
    assert!(tier.reader().read_plan(place).is_none());
    tier.flush().expect("flushed");
    assert!(tier.reader().read_plan(place).is_some());
}

#[test]
fn the_next_id_is_between_those_of_earlier_and_later_records() {
    let case = Case::new();
    let options = Options { max_bytes: 256 << 20, ..small() };
    let (mut tier, _) = Tier::open(case.path(), &options).expect("a tier");
    let mut last = None;
    // In the file of the long record, there is no offset for another one.
    for (number, len) in (0..).zip([10, 10, 5000, 20_000, 20_000, 40_000, 70_000_000, 10, 10, 10]) {
        let next = tier.next_id();
        assert!(Some(next) > last, "{next:?}");
        let place = tier.append(&Item::new(number, len).record()).expect("appended");
        let id = tier.reader().record_id(place).expect("a file");
        assert!(id >= next, "{id:?} {next:?}");
        last = Some(id);
        if number == 8 {
            tier.seal().expect("sealed");
        }
    }
}

#[test]
fn long_records_get_files_of_their_own() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let lengths = [10, 20_000, 40_000, 70_000, 1_200_000, 10, 16_000, 16_300, 16_384];
    let items: Vec<_> = (0..).zip(lengths).map(|(number, len)| Item::new(number, len)).collect();
    let mut buffer = AlignedBuffer::new(0);
    for item in &items {
        let place = tier.append(&item.record()).expect("appended");
        tier.flush().expect("flushed");
        let read = tier.reader().read(place, &item.key, &mut buffer).expect("a record");
        assert!(read.value == item.value);
    }
    tier.close().expect("closed");
    let (tier, _) = case.open();
    assert!(load(&tier.reader()) == items && load_by_directories(&tier.reader()) == items);
}

#[test]
fn a_record_that_never_fits_is_refused() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let item = Item::new(1, 3 << 20);
    let error = tier.append(&item.record()).expect_err("too long");
    assert!(matches!(error, Error::TooLong { what: "record", .. }), "{error}");
    tier.append(&Item::new(2, 10).record()).expect("appended");
}

/// Returns the bytes of all files in the folder and of the folder, as the system counts them.
pub(crate) fn disk_bytes(case: &Case) -> u64 {
    let entries = std::fs::read_dir(case.path()).expect("a folder");
    let files = entries.map(|entry| entry.expect("an entry").metadata().expect("metadata"));
    let folder = std::fs::metadata(case.path()).expect("metadata");
    files.chain([folder]).map(|metadata| (metadata.blocks() * 512).max(metadata.len())).sum()
}

#[test]
fn the_budget_holds_at_all_times() {
    let case = Case::new();
    let options = Options { max_bytes: 400 << 10, ..small() };
    let (mut tier, _) = Tier::open(case.path(), &options).expect("a tier");
    let mut random = Random::new(5);
    let mut removed = 0;
    for number in 0..800 {
        let item = Item::random(number, &mut random, 4000);
        while let Err(error) = tier.append(&item.record()) {
            assert!(error.is_budget_reached(), "{error}");
            tier.remove_oldest().expect("removed").expect("a file");
            removed += 1;
        }
        if number % 5 == 0 {
            let (disk, used) = (disk_bytes(&case), tier.used_bytes());
            assert!(disk <= used && used <= tier.max_bytes(), "{disk} {used}");
        }
    }
    assert!(removed > 20, "{removed} files were removed");
    let kept = tier.used_bytes();
    tier.close().expect("closed");
    assert!(kept > 200 << 10, "{kept} bytes are used");
}

#[test]
fn a_removed_file_counts_until_its_readers_have_finished() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let item = Item::new(1, 100);
    let place = tier.append(&item.record()).expect("appended");
    tier.seal().expect("sealed");
    let (reader, before) = (tier.reader(), tier.used_bytes());
    let plan = reader.read_plan(place).expect("a plan");
    assert_eq!(tier.remove_oldest().expect("removed"), Some(1));
    assert!(reader.read_plan(place).is_none());
    assert_eq!(tier.used_bytes(), before);
    let mut buffer = AlignedBuffer::new(plan.len());
    nuthatch_tier::Disk::read(
        &nuthatch_tier::SystemDisk,
        plan.file(),
        "",
        buffer.as_mut_slice(),
        plan.offset(),
    )
    .expect("bytes");
    assert_eq!(plan.parse(buffer.as_slice(), &item.key).expect("a record").value, item.value);
    drop(plan);
    assert!(tier.used_bytes() < before);
    assert_eq!(tier.remove_oldest().expect("nothing"), None);
}

#[test]
fn removing_the_open_file_discards_its_batch() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    tier.append(&Item::new(1, 100).record()).expect("appended");
    tier.remove_file(1).expect("removed");
    tier.append(&Item::new(2, 100).record()).expect("appended");
    let numbers: Vec<_> = tier.files().iter().map(|file| file.number).collect();
    assert_eq!(numbers, [2], "numbers are not used again");
    tier.close().expect("closed");
    let (tier, _) = case.open();
    assert_eq!(load(&tier.reader()), [Item::new(2, 100)]);
}

#[test]
fn sealing_without_records_leaves_no_file() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    tier.seal().expect("sealed");
    tier.flush().expect("flushed");
    tier.close().expect("closed");
    assert_eq!(case.item_files().len(), 0);
}
