//! Verification, listing and pruning.

use crate::Case;
use nuthatch_chunks::{Chunks, Clock, Key, SystemClock, VerifyEvent};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

const RECORD: &[u8] = b"\x4e\x3a\xc8\xd5";

/// Closes the cache, so that all bytes are in sealed files, and returns the files.
fn sealed(case: &Case, chunks: Chunks) -> Vec<PathBuf> {
    drop(chunks);
    let entries = fs::read_dir(case.path()).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = paths.filter(|path| path.extension() == Some("seg".as_ref())).collect();
    files.sort();
    files
}

/// Flips a bit `behind` bytes after the first occurrence of `what`.
fn damage(file: &Path, what: &[u8], behind: usize) {
    let mut bytes = fs::read(file).expect("a file");
    let at = bytes.windows(what.len()).position(|window| window == what).expect("it is there");
    bytes[at + behind] ^= 1;
    fs::write(file, bytes).expect("a file");
}

fn put(chunks: &Chunks, name: &str, bytes: &[u8]) -> Key {
    let key = Key::named(name).expect("a key");
    chunks.put(&key, 3..4, &[0, bytes.len() as u64], bytes).expect("a put");
    key
}

/// Returns the number of damaged chunks and the events of a verification, except progress, which
/// must grow up to the total.
fn verify_events(chunks: &Chunks) -> (u64, Vec<VerifyEvent>) {
    let (mut far, mut messages) = ((0, 0), Vec::new());
    let verified = chunks.verify_with(|event| match event {
        VerifyEvent::Bytes { done, total } => {
            assert!(far.0 <= done && done <= total, "{far:?} {done} {total}");
            far = (done, total);
        }
        other => messages.push(other),
    });
    assert_eq!(far.0, far.1);
    (verified.damaged, messages)
}

#[test]
fn chunks_that_are_damaged_are_named() {
    let case = Case::new();
    let chunks = case.open();
    let key = put(&chunks, "first", b"some bytes of the first");
    put(&chunks, "second", b"other bytes");
    assert_eq!(verify_events(&chunks), (0, vec![]));
    let files = sealed(&case, chunks);
    damage(&files[0], b"some bytes", 0);
    let chunks = case.open();
    let file = files[0].file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    assert_eq!(verify_events(&chunks), (1, vec![VerifyEvent::Damaged { key, chunk: 3, file }]));
    assert_eq!(verify_events(&chunks), (0, vec![]), "it is no longer there");
    assert_eq!(chunks.list().len(), 1);
}

#[test]
fn a_damaged_record_head_is_reported_once_as_lost_chunks() {
    let case = Case::new();
    let chunks = case.open();
    put(&chunks, "first", b"some bytes of the first");
    put(&chunks, "second", b"other bytes");
    let files = sealed(&case, chunks);
    damage(&files[0], RECORD, 20);
    let chunks = case.open();
    let file = files[0].file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    assert_eq!(verify_events(&chunks), (1, vec![VerifyEvent::Lost { chunks: 1, file }]));
    assert_eq!(verify_events(&chunks), (0, vec![]), "it is no longer there");
}

#[test]
fn a_file_that_is_no_longer_a_segment_is_reported() {
    let case = Case::new();
    let chunks = case.open();
    put(&chunks, "first", b"some bytes of the first");
    put(&chunks, "second", b"other bytes");
    let files = sealed(&case, chunks);
    damage(&files[0], b"NUTSEGMT", 3);
    let chunks = case.open();
    let file = files[0].file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    assert_eq!(verify_events(&chunks), (2, vec![VerifyEvent::Lost { chunks: 2, file }]));
    assert_eq!(verify_events(&chunks).0, 0);
}

#[test]
fn prune_removes_old_chunks_except_pinned_ones() {
    let case = Case::new();
    let chunks = case.open();
    let old = put(&chunks, "old", &[1; 5000]);
    let kept = put(&chunks, "kept", &[2; 500]);
    chunks.pin(&kept, true).expect("a pin");
    let files = sealed(&case, chunks);
    let day = 24 * 3_600_000;
    let yesterday = SystemClock.now_ms() - day;
    for file in &files {
        let file = fs::File::options().write(true).open(file).expect("a file");
        file.set_modified(UNIX_EPOCH + Duration::from_millis(yesterday)).expect("a time");
    }
    let chunks = case.open();
    assert!(chunks.list().iter().all(|object| object.put_ms == yesterday));
    chunks.prune_older(yesterday - day).expect("room");
    assert_eq!(chunks.list().len(), 2, "nothing is as old as that");
    chunks.get(&old, 3..4).expect("a get").found().expect("it is there");
    chunks.prune_older(yesterday + day / 2).expect("room");
    let left: Vec<_> = chunks.list().into_iter().map(|object| object.key).collect();
    assert_eq!(left, [kept], "it was used, and goes all the same");
}
