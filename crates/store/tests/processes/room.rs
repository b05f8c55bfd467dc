//! Full stores: a size limit, a map that cannot move, a full disk, a long read transaction.

use crate::Place;
use crate::child::{Other, say};
use nuthatch_store::{Durability, Error, FullCause, Options, Range, Read, Store};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_store_grows_up_to_its_limit_and_says_so() {
    let place = Place::new();
    let store = place.open(&Options::new().limit(2 << 20));
    let table = store.table("rows").expect("a table");
    let mut rows = 0_u32;
    let error = loop {
        match store.put(&table, &rows.to_le_bytes(), &[1; 1000]) {
            Ok(()) => rows += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { cause: FullCause::Limit, .. }), "{error}");
    assert!(rows > 500, "{rows} rows in two megabytes");
    assert!(store.stat().expect("figures").file_bytes <= 2 << 20);
    let txn = store.read().expect("a transaction");
    assert_eq!(txn.count(&table, &Range::all()).expect("a count"), u64::from(rows));
    drop(txn);
    let all = store.update(|txn| txn.delete_range(&table, &Range::all()));
    assert_eq!(all.expect("room to delete"), u64::from(rows));
    store.put(&table, b"key", &[1; 1000]).expect("room again");
}

#[test]
fn a_small_map_grows_under_writes() {
    let place = Place::new();
    let options = Options::new().reserve(64 << 10).durability(Durability::None);
    let store = place.open(&options);
    let table = store.table("rows").expect("a table");
    for n in 0..200_u8 {
        store.put(&table, &[n + 1], &vec![n; 100_000]).expect("the map grows");
    }
    // One transaction needs more than the map has: it is repeated after the map has grown.
    store
        .update(|txn| (0..200_u8).try_for_each(|n| txn.put(&table, &[n + 1, 0], &vec![n; 400_000])))
        .expect("the map grows");
    let stat = store.stat().expect("figures");
    assert!(stat.map_bytes >= stat.used_bytes && stat.used_bytes > 100_000_000, "{stat:?}");
}

#[test]
fn a_reader_that_never_ends_does_not_make_growth_hang() {
    let place = Place::new();
    let patience = Duration::from_millis(5);
    let options = Options::new().reserve(1 << 20).growth_patience(patience);
    let store = place.open(&options.durability(Durability::None));
    let table = store.table("rows").expect("a table");
    store.put(&table, b"first", b"value").expect("a put");
    let reader = store.read_owned().expect("a transaction");
    let mut rows = 0_u32;
    let error = loop {
        match store.put(&table, &rows.to_le_bytes(), &[1; 10_000]) {
            Ok(()) => rows += 1,
            Err(error) => break error,
        }
        assert!(rows < 10_000, "the map moved under a reader");
    };
    assert!(matches!(error, Error::Full { cause: FullCause::Transactions, .. }), "{error}");
    assert_eq!(reader.get(&table, b"first").expect("a get"), Some(&b"value"[..]));
    assert_eq!(reader.count(&table, &Range::all()).expect("a count"), 1);
    assert!(store.read().is_ok(), "others read as well");
    drop(reader);
    for n in rows..rows + 500 {
        store.put(&table, &n.to_le_bytes(), &[1; 10_000]).expect("the map grows");
    }
}

#[test]
fn a_map_that_grew_elsewhere_under_a_reader_that_stays_is_reported_and_followed_later() {
    let place = Place::new();
    let patience = Duration::from_millis(5);
    let store = place.open(&Options::new().reserve(1 << 20).growth_patience(patience));
    let table = store.table("rows").expect("a table");
    store.put(&table, b"first", b"value").expect("a put");
    let reader = store.read_owned().expect("a transaction");
    let mut other = Other::start("fill small map", &place.path());
    assert_eq!(other.hear().as_deref(), Some("ready"));
    other.nudge();
    assert_eq!(other.hear().as_deref(), Some("done"));
    for _ in 0..3 {
        let error = store.get(&table, b"first").expect_err("the file is longer than the map");
        assert!(matches!(error, Error::Full { cause: FullCause::Transactions, .. }), "{error}");
    }
    assert_eq!(reader.get(&table, b"first").expect("a get"), Some(&b"value"[..]));
    drop(reader);
    assert!(store.get(&table, b"first").expect("the map is followed").is_some());
    other.nudge();
    other.wait();
}

#[test]
fn pages_come_back_when_a_long_reader_has_ended() {
    let place = Place::new();
    let store = place.open(&Options::new().durability(Durability::None));
    let table = store.table("rows").expect("a table");
    let overwrite = |times: u32| {
        for n in 0..times {
            store.put(&table, b"key", &vec![n as u8; 100_000]).expect("a put");
        }
    };
    overwrite(10);
    let small = store.stat().expect("figures").file_bytes;
    let reader = store.read_owned().expect("a transaction");
    overwrite(200);
    let large = store.stat().expect("figures").file_bytes;
    assert!(large > small + 10_000_000, "pages that a reader may see stay: {small} to {large}");
    drop(reader);
    overwrite(500);
    let after = store.stat().expect("figures").file_bytes;
    assert!(after < large + 1_000_000, "pages are used again: {large} to {after}");
}

/// Writes to a store on a small filesystem until it is full.
pub(crate) fn fill_file_system(folder: &Path) {
    std::fs::create_dir(folder).expect("a folder");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder).stderr(Stdio::null());
    if !mount.status().is_ok_and(|status| status.success()) {
        return say("not mounted");
    }
    let path = folder.join("inside");
    let store = Store::open(&path, &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    let value = vec![7; 100_000];
    let put = |n: u32| store.put(&table, &n.to_le_bytes(), &value);
    let (rows, error) = (0..1000).find_map(|n| Some((n, put(n).err()?))).expect("no end");
    let data = path.join("data.mdb");
    let expected = format!("{}: commit: No space left on device (os error 28)", data.display());
    assert_eq!(error.to_string(), expected);
    for n in 0..rows {
        let found = store.get(&table, &n.to_le_bytes()).expect("a get");
        assert_eq!(found.as_deref(), Some(&value[..]));
    }
    say("full");
}

#[test]
fn a_write_that_ended_early_on_a_full_disk_says_that_there_is_no_space() {
    let place = Place::new();
    let mut other = Other::start_with_own_mounts("fill a file system", &place.beside("small"));
    let found = other.hear().expect("what it tried");
    assert!(["full", "not mounted"].contains(&found.as_str()), "{found}");
    other.wait();
}

#[test]
fn a_full_disk_fails_writes_and_nothing_else() {
    let place = Place::new();
    let mut other = Other::start_with_short_files("fill disk", &place.path(), 8 << 11);
    let rows = other.hear_number().expect("what it wrote");
    other.wait();
    let store = place.open(&Options::new());
    let table = store.find_table("rows").expect("no error").expect("the table");
    store.verify(|_, _| ()).expect("no damage");
    let txn = store.read().expect("a transaction");
    let left = txn.count(&table, &Range::all()).expect("a count");
    assert_eq!(left, rows - rows / 2 + 1);
    drop(txn);
    for n in 0..1000_u32 {
        store.update(|txn| txn.put(&table, &n.to_le_bytes(), &[9; 10_000])).expect("room again");
    }
}
