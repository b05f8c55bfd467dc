//! One store opened by several paths: the process detects it, and its locks remain.

use crate::Place;
use crate::child::{Other, pause, say};
use nuthatch_store::{Options, Store, compact, wait_closed};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);

/// Paths to a store from the folder above it, which must be the current one.
fn other_paths(store: &Path) -> Vec<PathBuf> {
    let above = store.parent().expect("a folder above");
    let name = above.file_name().expect("its name");
    let beside = tempfile::tempdir_in(above).expect("a folder");
    // The parent folder is removed at the end.
    let beside = beside.keep();
    symlink(above, beside.join("above")).expect("a link");
    symlink(store, beside.join("linked")).expect("a link");
    symlink("store", above.join("relative-link")).expect("a link");
    // Two folders may also share their files.
    let twin = beside.join("twin");
    std::fs::create_dir(&twin).expect("a folder");
    for file in ["data.mdb", "lock.mdb"] {
        std::fs::hard_link(store.join(file), twin.join(file)).expect("a hard link");
    }
    vec![
        "store".into(),
        "./store/".into(),
        "store/../store/.".into(),
        Path::new("..").join(name).join("store"),
        "relative-link".into(),
        store.join("../store"),
        beside.join("above/store"),
        beside.join("linked"),
        twin,
    ]
}

/// Tries to open and to compact a store by a path while this process has it open by another.
#[track_caller]
fn is_open_by(path: &Path) {
    let error = Store::open(path, &Options::new()).expect_err("it is open");
    assert_eq!(error.code(), "already-open", "{}: {error}", path.display());
    let error = compact(path).expect_err("it is open");
    assert_eq!(error.code(), "already-open", "{}: {error}", path.display());
}

pub(crate) fn use_many_paths(path: &Path) {
    std::env::set_current_dir(path.parent().expect("a folder above")).expect("it is there");
    let store = Store::open("store", &Options::new()).expect("a store");
    assert_eq!(store.path(), std::fs::canonicalize(path).expect("a path"));
    let table = store.table("rows").expect("a table");
    let paths = other_paths(path);
    for path in &paths {
        is_open_by(path);
    }
    let (twin, paths) = paths.split_last().expect("paths");
    for path in paths {
        assert!(!wait_closed(path, Duration::ZERO), "{} is open", path.display());
    }
    std::env::set_current_dir("/").expect("the root");
    is_open_by(path);
    is_open_by(twin);
    // Like a program that copies the folder: closing the file drops LMDB's locks on it.
    std::fs::read(path.join("lock.mdb")).expect("the locks");
    say("tried");
    pause();
    store.put(&table, b"key", b"acknowledged").expect("a put");
    store.verify(|_, _| ()).expect("no damage");
    drop(table);
    assert!(store.close_within(LONG), "no other handle");
    say("closed");
    pause();
    std::env::set_current_dir(path.parent().expect("a folder above")).expect("it is there");
    for path in paths {
        let store = Store::open(path, &Options::new()).expect("it is closed");
        let reading = store.read_owned().expect("a transaction");
        assert!(!store.clone().close_within(Duration::ZERO), "a transaction is open");
        drop(reading);
        assert!(store.close_within(LONG), "no other handle");
    }
}

#[test]
fn a_store_is_open_once_and_its_locks_hold_whichever_path_is_used() {
    let place = Place::new();
    let mut other = Other::start("use many paths", &place.path());
    assert_eq!(other.hear().as_deref(), Some("tried"));
    place.assert_in_use("other paths");
    other.nudge();
    assert_eq!(other.hear().as_deref(), Some("closed"));
    let (store, table) = place.open_rows();
    let found = store.get(&table, b"key").expect("a get");
    assert_eq!(found.as_deref(), Some(&b"acknowledged"[..]));
    assert!(store.close_within(LONG), "no other handle");
    other.nudge();
    other.wait();
}

/// Returns a second path to a folder: a bind mount if this process may mount, otherwise a link.
struct Second {
    path: PathBuf,
    is_mounted: bool,
}

impl Second {
    fn of(folder: &Path, options: &str) -> Self {
        let path = folder.with_extension("second");
        std::fs::create_dir(&path).expect("a folder");
        let mount = |arguments: &[&str]| {
            let made = Command::new("mount").args(arguments).arg(&path).output();
            made.is_ok_and(|made| made.status.success())
        };
        let folder_text = folder.to_str().expect("a name in UTF-8");
        let is_mounted = mount(&["--bind", folder_text]) && mount(&["-o", options]);
        if !is_mounted {
            std::fs::remove_dir(&path).expect("the folder");
            symlink(folder, &path).expect("a link");
        }
        Self { path, is_mounted }
    }

    fn form(&self) -> &'static str {
        if self.is_mounted { "mounted" } else { "linked" }
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount").arg(&self.path).status();
            let _ = std::fs::remove_dir(&self.path);
        } else {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens a store in a folder that is mounted twice.
pub(crate) fn mount_again(path: &Path) {
    let second = Second::of(path.parent().expect("a folder above"), "remount,bind,rw");
    let store = Store::open(path, &Options::new()).expect("a store");
    is_open_by(&second.path.join("store"));
    say(second.form());
    pause();
    drop(store);
}

/// Opens a store by a path that cannot be written to.
pub(crate) fn read_from_read_only_mount(path: &Path) {
    let second = Second::of(path.parent().expect("a folder above"), "remount,bind,ro");
    let options = Options::new().read_only(true);
    let store = Store::open(second.path.join("store"), &options).expect("a store");
    say(second.form());
    pause();
    let table = store.find_table("rows").expect("no error").expect("the table");
    let found = store.get(&table, b"key").expect("a get");
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
}

/// Makes another process open the store by a second path. Checks that the store is compacted only
/// after that process has ended.
#[track_caller]
fn is_compacted_after(place: &Place, role: &str) {
    let mut other = Other::start_with_own_mounts(role, &place.path());
    let form = other.hear().expect("what it tried");
    assert!(["mounted", "linked"].contains(&form.as_str()), "{form}");
    place.assert_in_use(&form);
    other.nudge();
    other.wait();
    compact(place.path()).expect("it is closed now");
}

#[test]
fn a_store_that_is_read_from_a_read_only_mount_is_not_compacted() {
    let place = Place::new();
    let (store, table) = place.open_rows();
    store.put(&table, b"key", b"value").expect("a put");
    drop((store, table));
    is_compacted_after(&place, "read from a read-only mount");
}

#[test]
fn a_store_is_open_once_where_its_folder_is_mounted_twice() {
    is_compacted_after(&Place::new(), "mount the folder again");
}

#[test]
fn a_folder_that_was_removed_and_made_again_is_another_store() {
    let place = Place::new();
    let (old, table) = place.open_rows();
    old.put(&table, b"key", b"old").expect("a put");
    std::fs::rename(place.path(), place.beside("moved")).expect("a rename");
    let (new, fresh) = place.open_rows();
    assert_eq!(new.get(&fresh, b"key").expect("a get"), None);
    new.put(&fresh, b"key", b"new").expect("a put");
    assert_eq!(old.get(&table, b"key").expect("a get").as_deref(), Some(&b"old"[..]));
    is_open_by(&place.path());
    is_open_by(&place.beside("moved"));
    drop((old, table));
    is_open_by(&place.path());
    compact(place.beside("moved")).expect("it is closed");
}
