//! Damaged files.

use crate::{Case, Item, small};
use nuthatch_tier::{AlignedBuffer, Place, ReadError, Record, Tier, verify};
use std::fs::{self, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("a byte");
    byte[0] ^= 1 << (offset % 8);
    file.write_all_at(&byte, offset).expect("a byte");
}

/// Returns a closed folder with one file of three batches, and its items.
fn closed() -> (Case, Vec<Item>) {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let items: Vec<_> = (0..12).map(|number| Item::new(number, 300)).collect();
    for batch in items.chunks(4) {
        for item in batch {
            tier.append(&item.record()).expect("appended");
        }
        tier.flush().expect("flushed");
    }
    tier.close().expect("closed");
    (case, items)
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (case, items) = closed();
    let verified = verify(case.path(), |_, _| ()).expect("verified");
    assert_eq!((verified.records, verified.damage.len()), (items.len() as u64, 0));
    let path = &case.item_files()[0];
    let len = fs::metadata(path).expect("metadata").len();
    assert_eq!(len, 4096 * 6);
    // Most bytes in the middle of a block are values or padding: of these, one of five.
    let is_field = |offset: u64| offset % 4096 < 256 || offset % 4096 >= 4080;
    for offset in (0..len).filter(|offset| is_field(*offset) || offset % 5 == 0) {
        flip(path, offset);
        let verified = verify(case.path(), |_, _| ()).expect("verified");
        assert!(!verified.damage.is_empty(), "offset {offset}");
        flip(path, offset);
    }
    assert_eq!(verify(case.path(), |_, _| ()).expect("verified").damage, []);
}

/// Opens the folder and returns all items that are loaded, and those that directories lead to.
fn recovered(case: &Case) -> (Vec<Item>, Vec<Item>, usize) {
    let (tier, recovery) = case.open();
    let (reader, mut buffer) = (tier.reader(), AlignedBuffer::new(0));
    let mut loaded = Vec::new();
    let found = reader.all_records(|_, record| {
        loaded.push(Item::of(record));
        ControlFlow::Continue(())
    });
    let mut by_place = Vec::new();
    let mut damage = recovery.damage.len() + found.damage.len();
    damage += usize::from(recovery.incomplete_batch.is_some());
    for number in reader.numbers() {
        let (directory, of_directory) = reader.directory(number).expect("a file");
        damage += of_directory.len();
        for entry in directory.iter() {
            let key = (0..12)
                .map(|number| Item::new(number, 0))
                .find(|item| item.record().hash == entry.hash)
                .expect("no other hash");
            match reader.read(entry.place, &key.key, &mut buffer) {
                Ok(record) => by_place.push(Item::of(&record)),
                Err(ReadError::Damaged(_)) => damage += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    (loaded, by_place, damage)
}

#[test]
fn damage_of_any_byte_is_no_error_of_open_and_no_item_is_wrong() {
    let (case, items) = closed();
    let path = &case.item_files()[0];
    let bytes = fs::read(path).expect("a file");
    let manifest = fs::read(case.path().join("tier")).expect("a manifest");
    for offset in (0..bytes.len() as u64).step_by(29) {
        flip(path, offset);
        let (loaded, by_place, damage) = recovered(&case);
        assert!(loaded.iter().all(|item| items.contains(item)), "offset {offset}");
        assert!(by_place.iter().all(|item| items.contains(item)), "offset {offset}");
        assert!(damage > 0, "offset {offset}");
        let in_batch = (4096..4 * 4096).contains(&offset);
        if offset >= 4096 && !in_batch {
            assert_eq!((loaded.len(), by_place.len()), (12, 12), "offset {offset}");
        } else if in_batch {
            assert!(by_place.len() >= 11, "offset {offset}: {} items", by_place.len());
        }
        fs::write(path, &bytes).expect("restored");
        fs::write(case.path().join("tier"), &manifest).expect("restored");
    }
}

#[test]
fn a_file_that_is_cut_off_keeps_the_batches_before_that() {
    let (case, items) = closed();
    let path = &case.item_files()[0];
    let bytes = fs::read(path).expect("a file");
    let manifest = fs::read(case.path().join("tier")).expect("a manifest");
    for len in (0..bytes.len()).step_by(1000).chain([4096, 8192, 4096 * 5]) {
        fs::write(path, &bytes[..len]).expect("cut off");
        let (loaded, by_place, damage) = recovered(&case);
        let batches = (len / 4096).saturating_sub(1).min(3);
        assert_eq!(loaded, items[..4 * batches], "{len} bytes");
        assert_eq!(by_place, loaded, "{len} bytes");
        assert!(damage > 0, "{len} bytes");
        fs::write(path, &bytes).expect("restored");
        fs::write(case.path().join("tier"), &manifest).expect("restored");
    }
}

#[test]
fn a_file_with_a_damaged_header_is_reported_until_it_is_removed() {
    let (case, _) = closed();
    flip(&case.item_files()[0], 20);
    for _ in 0..2 {
        let (mut tier, recovery) = case.open();
        assert_eq!(recovery.damage.len(), 1);
        let text = recovery.damage[0].to_string();
        assert!(text.starts_with("items-0000000001.log: offset 0: expected"), "{text}");
        tier.append(&Item::new(1, 100).record()).expect("appended");
        tier.close().expect("closed");
    }
    let (mut tier, _) = case.open();
    assert_eq!(tier.remove_oldest().expect("removed"), Some(1));
    drop(tier);
    assert_eq!(case.open().1.damage, []);
}

#[test]
fn files_of_another_folder_and_renamed_files_are_refused() {
    let (case, _) = closed();
    let (other, _) = closed();
    let path = case.item_files()[0].clone();
    fs::copy(&other.item_files()[0], case.path().join("items-0000000002.log")).expect("a copy");
    fs::copy(&path, case.path().join("items-0000000003.log")).expect("a copy");
    let (tier, recovery) = case.open();
    let reasons: Vec<_> = recovery.damage.iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), 2);
    assert!(reasons[0].contains("expected number 2, found 1"), "{reasons:?}");
    assert!(reasons[1].contains("expected number 3, found 1"), "{reasons:?}");
    assert_eq!(crate::load(&tier.reader()).len(), 12);
    drop(tier);
    fs::copy(&other.item_files()[0], &path).expect("a copy");
    let (_, recovery) = case.open();
    assert!(recovery.damage[0].reason.contains("another folder"), "{:?}", recovery.damage);
}

/// A value that contains a record, and a batch, as they would be at their places.
#[test]
fn a_value_that_imitates_a_record_is_not_one() {
    let (case, items) = closed();
    let bytes = fs::read(&case.item_files()[0]).expect("a file");
    let (mut tier, _) = case.open();
    // The first record of the file, with its header, at the beginning of a block.
    let value = [&vec![0; 4096 - 64 - 24 - 1][..], &bytes[4096..8192]].concat();
    let record = Record { key: b"x", value: &value, ..Record::default() };
    let place = tier.append(&record).expect("appended");
    tier.flush().expect("flushed");
    let reader = tier.reader();
    let forged = Place { unit: (8192 + 64) / 16, blocks: 1, ..place };
    let plan = reader.read_plan(forged).expect("a written block");
    assert_eq!(plan.offset(), 8192);
    let mut buffer = AlignedBuffer::new(0);
    let read = reader.read(forged, &items[0].key, &mut buffer);
    assert!(matches!(read, Err(ReadError::Damaged(_))), "{read:?}");
}

#[test]
fn places_that_lead_nowhere_are_missing() {
    let (case, items) = closed();
    let (tier, _) = Tier::open(case.path(), &small()).expect("a tier");
    let (reader, mut buffer) = (tier.reader(), AlignedBuffer::new(0));
    for (slot, unit, blocks) in
        [(1, 260, 1), (u32::MAX, 260, 1), (0, 0, 1), (0, 260, 4), (0, 1 << 21, 1)]
    {
        let read = reader.read(Place { slot, unit, blocks }, &items[0].key, &mut buffer);
        assert_eq!(read, Err(ReadError::Missing), "{slot} {unit} {blocks}");
    }
    let read = reader.read(Place { slot: 0, unit: 261, blocks: 1 }, &items[0].key, &mut buffer);
    assert!(matches!(read, Err(ReadError::Damaged(_))));
    let read = reader.read(Place { slot: 0, unit: 261, blocks: 0 }, &items[0].key, &mut buffer);
    assert!(matches!(read, Err(ReadError::Damaged(_))));
}
