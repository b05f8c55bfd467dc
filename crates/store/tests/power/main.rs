//! Power failures: possible states of the file are opened, and compared with the guarantees of each
//! durability.

mod disk;
mod images;

use disk::{Event, Recorder, record_progress};
use images::Image;
use nuthatch_store::{Durability, Options, Range, Read, Scan, Store, verify_closed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const COMMITS: usize = 8;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the changes of a commit: new rows, replaced rows, deleted rows and, in some commits,
/// long values.
fn changes(commit: usize) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let key = |n: usize| format!("row {:03}", n % 60).into_bytes();
    let mut changes: Vec<_> =
        (0..9).map(|n| (key(commit * 7 + n), Some(vec![commit as u8; 90 + n]))).collect();
    changes.push((key(commit * 5), None));
    if commit.is_multiple_of(3) {
        changes.push((b"long".to_vec(), Some(vec![commit as u8; 9000])));
    }
    changes
}

/// Returns the rows before the first commit and after each commit.
fn states() -> Vec<Rows> {
    let mut rows = Rows::new();
    let mut states = vec![rows.clone()];
    for commit in 1..=COMMITS {
        for (key, value) in changes(commit) {
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        states.push(rows.clone());
    }
    states
}

fn open(folder: &Path, durability: Durability) -> nuthatch_store::Result<Store> {
    let options = Options::new().durability(durability).reserve(1 << 24).threads(1);
    Store::open(folder, &options)
}

fn commit(store: &Store, number: usize) {
    let table = store.table("rows").expect("a table");
    store
        .update(|txn| {
            changes(number).into_iter().try_for_each(|(key, value)| match value {
                Some(value) => txn.put(&table, &key, &value),
                None => txn.delete(&table, &key).map(|_| ()),
            })
        })
        .expect("a commit");
}

/// Returns the events of the file while a store is created and written. The recorded progress is
/// the number of the last acknowledged commit.
fn recorded(durability: Durability, mut each: impl FnMut(&Store, usize)) -> Vec<Event> {
    let folder = TempDir::new().expect("a folder");
    // The file of an empty store is synced before it is renamed into place.
    drop(open(folder.path(), durability).expect("a store"));
    let bytes = fs::read(folder.path().join("data.mdb")).expect("its bytes");
    let recorder = Recorder::start(folder.path());
    let store = open(folder.path(), durability).expect("a store");
    for number in 1..=COMMITS {
        commit(&store, number);
        each(&store, number);
        record_progress(number);
    }
    drop(store);
    let first = [Event::Write { offset: 0, bytes, durable: true }, Event::Sync];
    let events: Vec<_> = first.into_iter().chain(recorder.stop()).collect();
    let writes = events.iter().filter(|event| matches!(event, Event::Write { .. })).count();
    assert!(writes > COMMITS, "{writes} writes were seen");
    events
}

/// Returns which of the states a file has, or the error if it cannot be opened or is damaged.
fn found(image: &Image, states: &[Rows]) -> Result<usize, String> {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("data.mdb"), &image.bytes).expect("a file");
    let store = open(folder.path(), Durability::None).map_err(|e| e.to_string())?;
    let rows = rows(&store).map_err(|e| e.to_string())?;
    // The store can be written after it was opened.
    let after = store.table("after").and_then(|table| store.put(&table, b"key", b"value"));
    after.map_err(|e| e.to_string())?;
    drop(store);
    verify_closed(folder.path(), |_, _| ()).map_err(|e| e.to_string())?;
    let state = states.iter().position(|state| *state == rows);
    state.ok_or_else(|| format!("rows that no commit left: {rows:?}"))
}

fn rows(store: &Store) -> nuthatch_store::Result<Rows> {
    let Some(table) = store.find_table("rows")? else { return Ok(Rows::new()) };
    let txn = store.read()?;
    let rows = txn.scan(&table, &Scan::new(Range::all()))?;
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

/// Checks that only the last `max_lost` acknowledged commits are lost in each image. Returns the
/// number of checked images.
fn check(events: &[Event], max_lost: usize, which: impl Fn(&Image) -> bool) -> usize {
    let states = states();
    let mut images = 0;
    images::after_each(events, |image| {
        if !which(&image) {
            return;
        }
        let Image { progress, ref description, .. } = image;
        images += 1;
        match found(&image, &states) {
            Ok(state) => assert!(
                (progress.saturating_sub(max_lost)..=progress + 1).contains(&state),
                "{description}: {progress} commits were acknowledged, and the file has the state \
                 after {state}"
            ),
            // Before the first commit the file may be incomplete.
            Err(_) if progress == 0 => {}
            Err(error) => panic!("{description}, with {progress} commits: {error}"),
        }
    });
    images
}

#[test]
fn no_answered_commit_is_lost_with_sync() {
    let images = check(&recorded(Durability::Sync, |_, _| ()), 0, |_| true);
    assert!(images > 20 * COMMITS, "{images} images");
}

#[test]
fn the_last_commit_at_most_is_lost_with_group() {
    let images = check(&recorded(Durability::Group, |_, _| ()), 1, |_| true);
    assert!(images > 20 * COMMITS, "{images} images");
}

#[test]
fn nothing_before_a_sync_is_lost_with_none() {
    let sync = |store: &Store, _| store.sync().expect("a sync");
    // Writes of the next commit may damage the store until the next sync.
    let images = check(&recorded(Durability::None, sync), 0, |image| image.is_at_progress);
    assert_eq!(images, COMMITS, "one after each sync, when nothing is under way");
}

#[test]
fn a_commit_that_waits_makes_those_before_it_safe() {
    let table = |store: &Store| store.table("rows").expect("a table");
    // The commits do not wait for the disk. An empty commit after each of them does.
    let wait = |store: &Store, _| {
        let mut txn = store.write_with(Durability::Sync).expect("a transaction");
        txn.put(&table(store), b"row 000x", b"")
            .and_then(|()| txn.delete(&table(store), b"row 000x"))
            .expect("a change");
        txn.commit().expect("a commit");
    };
    let images = check(&recorded(Durability::None, wait), 0, |image| image.is_at_progress);
    assert_eq!(images, COMMITS, "one after each commit that waited, when nothing is under way");
}

#[test]
fn what_is_left_without_any_sync_never_crashes_a_reader() {
    let events = recorded(Durability::None, |_, _| ());
    let (mut whole, mut damaged) = (0, 0);
    images::after_each(&events, |image| {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("data.mdb"), &image.bytes).expect("a file");
        let verified = verify_closed(folder.path(), |_, _| ());
        *if verified.is_ok() { &mut whole } else { &mut damaged } += 1;
    });
    assert!(whole > 0 && damaged > 0, "{whole} whole, {damaged} damaged");
}
