//! Folders that cannot be used.

use crate::{Client, DISK, Events, MEMORY, cache_options, fill, folder_for, key, open};
use nuthatch_tiered::{OpenError, TieredCache};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// Returns the error of opening a folder.
fn error(folder: &Path, bytes: u64) -> String {
    match TieredCache::open(cache_options(), &Events::default().options(folder, bytes)) {
        Ok(_) => panic!("the folder was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_folder_that_is_in_use_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let tiered = open(folder.path(), DISK);
    let message = error(folder.path(), DISK);
    assert!(message.contains("uses this folder; stop it, or use another folder"), "{message}");
    drop(tiered);
    drop(open(folder.path(), DISK));
}

#[test]
fn other_kinds_of_folders_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "text").expect("written");
    let message = error(&file, DISK);
    assert!(message.contains("expected a folder"), "{message}");
    let message = error(folder.path(), 1 << 16);
    assert!(message.contains("max_bytes: expected at least"), "{message}");

    let items = folder.path().join("items");
    let tiered = open(&items, DISK);
    fill(&mut Client::new(&tiered), 9000, 3000);
    drop(tiered);
    // The version of the manifest is the number after the eight bytes at its start.
    let manifest = fs::OpenOptions::new().write(true).open(items.join("tier")).expect("a manifest");
    manifest.write_all_at(&[77], 8).expect("written");
    let message = error(&items, DISK);
    assert!(message.contains("version") || message.contains("manifest"), "{message}");
    fs::remove_file(items.join("tier")).expect("removed");
    let message = error(&items, DISK);
    assert!(message.contains("item files without a manifest"), "{message}");
}

/// An option of the cache that is wrong leaves the folder usable.
#[test]
fn a_cache_that_cannot_be_created_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let tiered = open(folder.path(), DISK);
    fill(&mut Client::new(&tiered), 9000, 3000);
    drop(tiered);
    let options = Events::default().options(folder.path(), DISK);
    let refused = TieredCache::open(cache_options().memory(1), &options);
    assert!(matches!(refused, Err(OpenError::Cache(_))), "{refused:?}");
    let tiered = TieredCache::open(cache_options().memory(MEMORY), &options).expect("a cache");
    crate::wait_until(|| !tiered.stats().is_recovering);
    assert!(tiered.cache().len() > 2000, "{}", tiered.cache().len());
    let mut client = Client::new(&tiered);
    assert!((0..9000).filter(|number| client.get(&key(*number)).is_some()).count() > 2000);
}

/// Only this user can read the items.
#[test]
fn files_are_private() {
    let folder = folder_for(9000);
    let items = folder.path();
    let tiered = open(items, DISK);
    let mut client = Client::new(&tiered);
    fill(&mut client, 9000, 3000);
    assert!((0..100).all(|number| client.remove(&key(number))));
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let parent = folder.path().join("new");
    drop(open(&parent, DISK));
    assert_eq!(mode(&parent), 0o700);
    fs::remove_dir_all(parent).expect("removed");
    for entry in fs::read_dir(items).expect("a folder") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
