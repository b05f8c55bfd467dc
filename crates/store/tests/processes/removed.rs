//! Files that are removed or replaced while the store is open.

use crate::Place;
use nuthatch_store::{Batch, BatchOptions, Durability, Error, Kind, Options, Store, Table};
use std::path::Path;
use std::time::{Duration, Instant};

#[track_caller]
fn is_removed(error: &Error, path: &Path) {
    let text = error.to_string();
    assert_eq!(error.code(), "io", "{text}");
    assert!(text.contains(&format!("{}: write: the file was removed", path.display())), "{text}");
    assert!(text.contains("make a backup, close the store"), "{text}");
}

/// A store with one row, and the path of its folder.
fn with_a_row(place: &Place, durability: Durability) -> (Store, Table) {
    let store = place.open(&Options::new().durability(durability));
    let table = store.table("rows").expect("a table");
    store.put(&table, b"key", b"value").expect("a put");
    (store, table)
}

#[test]
fn writes_to_a_store_whose_folder_was_removed_fail() {
    for durability in [Durability::Sync, Durability::Group] {
        let place = Place::new();
        let (store, table) = with_a_row(&place, durability);
        std::fs::remove_dir_all(place.path()).expect("the folder is removed");
        let data = place.path().join("data.mdb");
        let put = store.put(&table, b"key", b"lost").expect_err("a put");
        is_removed(&put, &data);
        is_removed(&store.delete(&table, b"key").expect_err("a delete"), &data);
        is_removed(&store.table("more").expect_err("a new table"), &data);
        let stamped = store.table_of("stamped", Kind::Stamped);
        is_removed(&stamped.expect_err("tables of settings"), &data);
        is_removed(&store.sync().expect_err("a sync"), &data);
        // Data committed before can still be backed up.
        assert_eq!(store.get(&table, b"key").expect("a get").as_deref(), Some(&b"value"[..]));
        store.backup(place.path(), true).expect("a backup");
        assert!(store.close_within(Duration::from_mins(1)), "a handle is left");
        let (store, table) = place.open_rows();
        assert_eq!(store.get(&table, b"key").expect("a get").as_deref(), Some(&b"value"[..]));
    }
}

#[test]
fn batches_to_a_store_whose_folder_was_removed_fail() {
    let place = Place::new();
    let (store, table) = with_a_row(&place, Durability::Sync);
    let writer = store.batch_writer(&BatchOptions::new()).expect("a writer");
    std::fs::remove_dir_all(place.path()).expect("the folder is removed");
    let ack = writer.submit(Batch::new().put(&table, b"key", b"lost")).expect("room");
    let Err(Error::Group(cause)) = ack.wait() else { panic!("no error of the group") };
    is_removed(&cause, &place.path().join("data.mdb"));
}

#[test]
fn unsynced_writes_to_a_store_whose_folder_was_removed_fail_soon() {
    let place = Place::new();
    let (store, table) = with_a_row(&place, Durability::None);
    std::fs::remove_dir_all(place.path()).expect("the folder is removed");
    let data = place.path().join("data.mdb");
    is_removed(&store.sync().expect_err("a sync"), &data);
    let deadline = Instant::now() + Duration::from_mins(1);
    let error = loop {
        match store.put(&table, b"key", b"lost") {
            Ok(()) => assert!(Instant::now() < deadline, "writes go on"),
            Err(error) => break error,
        }
    };
    is_removed(&error, &data);
}

#[test]
fn writes_to_a_store_of_which_a_file_was_replaced_fail() {
    for name in ["data.mdb", "lock.mdb"] {
        let place = Place::new();
        let (store, table) = with_a_row(&place, Durability::Sync);
        let file = place.path().join(name);
        let copy = place.beside("copy");
        std::fs::copy(&file, &copy).expect("a copy");
        std::fs::rename(&copy, &file).expect("a rename");
        is_removed(&store.put(&table, b"key", b"lost").expect_err("a put"), &file);
    }
}

#[test]
fn writes_to_a_store_whose_folder_was_moved_go_on() {
    let place = Place::new();
    let (store, table) = with_a_row(&place, Durability::Sync);
    let moved = place.beside("moved");
    std::fs::rename(place.path(), &moved).expect("a rename");
    store.put(&table, b"key", b"later").expect("a put");
    store.sync().expect("a sync");
    assert!(store.close_within(Duration::from_mins(1)), "a handle is left");
    std::fs::rename(&moved, place.path()).expect("a rename");
    let (store, table) = place.open_rows();
    assert_eq!(store.get(&table, b"key").expect("a get").as_deref(), Some(&b"later"[..]));
}
