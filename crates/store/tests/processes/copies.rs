//! Tests of backups during writes, and of compaction.

use crate::Place;
use crate::child::Other;
use nuthatch_store::{Durability, Error, Options, Range, Read, Store, compact, verify_closed};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_backup_is_the_state_of_one_moment() {
    let place = Place::new();
    let store = place.open(&Options::new().durability(Durability::None));
    let table = store.table("counters").expect("a table");
    let filler = store.table("filler").expect("a table");
    store
        .update(|txn| (0..5000_u32).try_for_each(|n| txn.put(&filler, &n.to_le_bytes(), &[1; 500])))
        .expect("rows");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.update(|txn| crate::together::add_one(txn, &table)).expect("a write");
            }
        });
        for (name, compact) in [("copy", false), ("compact", true)] {
            let folder = place.beside(name);
            store.backup(&folder, compact).expect("a backup");
            let found = verify_closed(&folder, |_, _| ()).expect("no damage");
            assert!(!compact || found.free_pages + found.lost_pages == 0, "{found:?}");
            let copy = Store::open(&folder, &Options::new()).expect("a store");
            let counters = copy.table("counters").expect("the table");
            let txn = copy.read().expect("a transaction");
            let both = txn.get_many(&counters, &["one", "two"]).expect("two gets");
            assert_eq!(both[0], both[1], "half of a transaction");
            let error = store.backup(&folder, compact).expect_err("a store is there");
            assert_eq!(error.code(), "io");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let file = tempfile::tempfile().expect("a file");
    store.backup_to(&file, false).expect("a copy to a file");
    assert!(file.metadata().expect("its length").len() > 2_000_000);
}

#[test]
fn compaction_gives_room_back_and_keeps_all_rows() {
    let place = Place::new();
    let rows = |store: &Store| {
        let table = store.table("rows").expect("the table");
        let txn = store.read().expect("a transaction");
        let rows = txn.scan(&table, &Range::all().into()).expect("a scan");
        rows.map(|row| row.map(|(k, v)| (k.to_vec(), v.to_vec())).expect("a row"))
            .collect::<Vec<_>>()
    };
    let before = {
        let store = place.open(&Options::new().durability(Durability::None));
        let table = store.table("rows").expect("a table");
        for n in 0..3000_u32 {
            store.put(&table, &n.to_le_bytes(), &[n as u8; 1000]).expect("a put");
        }
        let range = Range::all().from(100_u32.to_le_bytes());
        store.update(|txn| txn.delete_range(&table, &range)).expect("a delete");
        let error = compact(place.path()).expect_err("it is open");
        assert!(matches!(error, Error::AlreadyOpen(_)), "{error}");
        store.put(&table, b"still", b"writable").expect("its locks are its own");
        rows(&store)
    };
    let done = compact(place.path()).expect("compaction");
    assert!(done.after_bytes < done.before_bytes / 2, "{done:?}");
    let found = verify_closed(&place.path(), |_, _| ()).expect("no damage");
    assert_eq!((found.free_pages, found.lost_pages), (0, 0));
    assert_eq!(rows(&place.open(&Options::new())), before);
}

#[test]
fn a_store_that_another_process_has_open_is_not_compacted() {
    let place = Place::new();
    let mut other = Other::start("hold a reader", &place.path());
    assert_eq!(other.hear().as_deref(), Some("holding"));
    let error = compact(place.path()).expect_err("it is open elsewhere");
    assert!(matches!(error, Error::InUse(_)), "{error}");
    other.wait();
    compact(place.path()).expect("it is closed now");
}
