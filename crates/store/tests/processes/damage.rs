//! Damaged files: opening or verifying reports the damage, and nothing crashes.

use crate::Place;
use nuthatch_store::{Options, Range, Store, verify_closed};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The bytes of a store with a few tables, long values and free pages.
fn good() -> Vec<u8> {
    let place = Place::new();
    {
        let (store, table) = place.open_rows();
        store
            .update(|txn| {
                (0..600_u32).try_for_each(|n| txn.put(&table, &n.to_le_bytes(), &[n as u8; 90]))
            })
            .expect("rows");
        store.put(&table, b"long", &vec![3; 20_000]).expect("a put");
        let range = Range::all().before(40_u32.to_le_bytes());
        store.update(|txn| txn.delete_range(&table, &range)).expect("a delete");
    }
    fs::read(place.path().join("data.mdb")).expect("its bytes")
}

fn with(bytes: &[u8]) -> Place {
    let place = Place::new();
    let folder = place.beside("damaged");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("data.mdb"), bytes).expect("a file");
    place
}

#[test]
fn what_is_no_store_is_refused_with_the_place() {
    for (bytes, code) in [
        (vec![7; 20_000], "not-a-store"),
        (b"short".to_vec(), "not-a-store"),
        (good()[..4096].to_vec(), "not-a-store"),
        ([&good()[..20], &[9][..], &good()[21..]].concat(), "not-a-store"),
        ([&good()[..40], &[9][..], &good()[41..]].concat(), "corrupt"),
    ] {
        let place = with(&bytes);
        let folder = place.beside("damaged");
        let error = Store::open(&folder, &Options::new()).expect_err(code);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains("data.mdb: at byte "), "{error}");
        assert!(verify_closed(&folder, |_, _| ()).is_err());
    }
    let none = tempfile::tempdir().expect("a folder");
    let options = Options::new().create(false);
    let error = Store::open(none.path(), &options).expect_err("nothing is there");
    assert_eq!(error.code(), "io");
}

#[test]
fn verify_finds_a_byte_that_matters_and_never_crashes() {
    let good = good();
    let place = with(&good);
    let file = place.beside("damaged").join("data.mdb");
    verify_closed(&file, |_, _| ()).expect("no damage");
    let open = File::options().write(true).open(&file).expect("the file");
    let mut found = 0;
    // Every header and pointer of every page, and every 101st byte between them.
    for at in (0..good.len()).filter(|at| at % 4096 < 64 || at % 101 == 0) {
        for flip in [1_u8, 0x80] {
            open.write_all_at(&[good[at] ^ flip], at as u64).expect("a byte");
            found += u32::from(verify_closed(&file, |_, _| ()).is_err());
        }
        open.write_all_at(&[good[at]], at as u64).expect("a byte");
    }
    assert!(found > 300, "{found} of the damages were found");
    for len in (0..good.len()).step_by(1111) {
        fs::write(&file, &good[..len]).expect("a file");
        let verified = verify_closed(&file, |_, _| ());
        assert!(verified.is_err(), "cut at {len}: {verified:?}");
    }
}

/// Returns the offset of the newest meta page.
fn newest_meta(bytes: &[u8]) -> usize {
    let transaction = |at: usize| u64::from_le_bytes(*bytes[at + 144..].first_chunk().expect("8"));
    if transaction(4096) > transaction(0) { 4096 } else { 0 }
}

/// Returns the errors of opening and of verifying a file with these bytes.
fn refused(bytes: &[u8]) -> [String; 2] {
    let place = with(bytes);
    let folder = place.beside("damaged");
    let opened = Store::open(&folder, &Options::new()).map(|_| ()).expect_err("it does not open");
    let verified = verify_closed(&folder, |_, _| ()).expect_err("it is not whole");
    [opened, verified].map(|error| error.to_string())
}

#[test]
fn a_main_table_in_another_order_is_refused() {
    let mut bytes = good();
    for meta in [0, 4096] {
        bytes[meta + 92] = 0x08;
    }
    let place = with(&bytes);
    let error = Store::open(place.beside("damaged"), &Options::new()).expect_err("another order");
    assert_eq!(error.code(), "table");
    let text = error.to_string();
    assert!(text.contains("a table of integers in the machine's order"), "{text}");
}

#[test]
fn a_root_in_the_place_of_another_transaction_is_refused() {
    let mut bytes = good();
    let meta = newest_meta(&bytes);
    bytes[meta + 144] += 1;
    for text in refused(&bytes) {
        assert!(text.contains("number of a transaction, up to"), "{text}");
    }
}

#[test]
fn roots_with_pages_of_two_sizes_are_refused() {
    let mut bytes = good();
    bytes[4096 + 41] = 0x20;
    for text in refused(&bytes) {
        assert!(text.contains("pages of 4096 bytes, as the first"), "{text}");
    }
}

#[test]
fn a_long_value_that_the_file_ends_within_is_found() {
    let place = Place::new();
    {
        let store = place.open(&Options::new());
        store.put(&store.main_table(), b"long", &vec![3; 30_000]).expect("a put");
    }
    let bytes = fs::read(place.path().join("data.mdb")).expect("its bytes");
    let after = bytes.iter().rposition(|byte| *byte == 3).expect("the value");
    let place = with(&bytes[..after - 5000]);
    let error = verify_closed(&place.beside("damaged"), |_, _| ()).expect_err("it is not whole");
    assert!(error.to_string().contains("8 pages of a long value"), "{error}");
}

#[test]
fn several_values_for_a_key_of_a_table_of_single_ones_are_found() {
    let mut bytes = good();
    let key = 599_u32.to_le_bytes();
    let node: Vec<u8> = [&90_u32.to_le_bytes()[..], &[0, 0, 4, 0], &key].concat();
    let at = bytes.windows(12).rposition(|window| window == node).expect("the row");
    bytes[at + 4] = 4;
    let place = with(&bytes);
    let error = verify_closed(&place.beside("damaged"), |_, _| ()).expect_err("it is not whole");
    assert!(error.to_string().contains("one value for a key"), "{error}");
}
