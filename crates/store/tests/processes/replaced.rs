//! A file that compaction replaces while another process opens the store.

use crate::Place;
use crate::child::{Other, pause, say};
use nuthatch_store::{Options, Store};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// Opens a store for reading, says so, and then what a key has.
pub(crate) fn read_what_is_opened(path: &Path) {
    let store = Store::open(path, &Options::new().read_only(true)).expect("a store");
    let table = store.find_table("rows").expect("no error").expect("the table");
    say("open");
    pause();
    let found = store.get(&table, b"later").expect("a get");
    say(found.map_or_else(|| "no key".to_owned(), |found| String::from_utf8_lossy(&found).into()));
}

/// Waits until a process has a file open.
#[track_caller]
fn wait_for_open(process: u32, file: &Path) {
    let deadline = Instant::now() + Duration::from_mins(1);
    let folder = format!("/proc/{process}/fd");
    let is_open = || {
        let descriptors = std::fs::read_dir(&folder).expect("its descriptors").flatten();
        descriptors
            .map(|entry| std::fs::read_link(entry.path()))
            .any(|target| target.is_ok_and(|target| target == file))
    };
    while !is_open() {
        assert!(Instant::now() < deadline, "it opens no {}", file.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_reader_that_opens_during_a_compaction_sees_the_new_file() {
    let place = Place::new();
    let copy = place.beside("copy");
    {
        let (store, table) = place.open_rows();
        store.put(&table, b"first", b"value").expect("a put");
        store.backup(&copy, true).expect("a backup");
    }
    // What compaction does, one step after the other.
    let locks = std::fs::canonicalize(place.path().join("lock.mdb")).expect("a path");
    let lock = File::options().read(true).write(true).open(&locks).expect("the locks");
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).expect("no other process");
    let mut other = Other::start("read what is opened", &place.path());
    wait_for_open(other.id(), &locks);
    std::fs::rename(copy.join("data.mdb"), place.path().join("data.mdb")).expect("a rename");
    drop(lock);
    assert_eq!(other.hear().as_deref(), Some("open"));
    let (store, table) = place.open_rows();
    store.put(&table, b"later", b"committed").expect("a put");
    other.nudge();
    assert_eq!(other.hear().as_deref(), Some("committed"));
    other.wait();
}
