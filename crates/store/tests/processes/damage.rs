//! Damaged files: they are refused or found, and nothing crashes.

use crate::Place;
use nuthatch_store::{Options, Range, Store, verify_closed};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The bytes of a store with a few tables, long values and free pages.
fn good() -> Vec<u8> {
    let place = Place::new();
    {
        let store = place.open(&Options::new());
        let table = store.table("rows").expect("a table");
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
    // Every header and pointer of every page, and what lies between at some distance.
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
        assert!(verified.is_err() || len == 0, "cut at {len}: {verified:?}");
    }
}
