//! Blocks that are not kept are counted by cause.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_chunks::{Disk, Options, SystemDisk};
use nuthatch_origins::{Counts, NotKept, ObjectCache};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const LEN: usize = 10 * BLOCK as usize + 17;

/// Returns the causes with a count above zero.
fn causes(counts: &Counts) -> Vec<(NotKept, u64)> {
    let all = NotKept::ALL.map(|cause| (cause, counts.not_kept_by(cause)));
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Reads a whole object through a cache. Returns the number of blocks that were not kept, by cause.
async fn read(cache: &ObjectCache, server: &Server, path: &str) -> Vec<(NotKept, u64)> {
    let object = cache.object(&server.url(path)).await.expect("an object");
    let body = object.bytes(0..object.len()).await.expect("bytes");
    assert!(body == noise(LEN, 1), "all bytes are delivered");
    let counts = object.counts();
    let causes = causes(&counts);
    assert_eq!(counts.not_kept, causes.iter().map(|(_, count)| count).sum::<u64>());
    causes
}

#[tokio::test]
async fn a_missing_version_or_length_is_a_cause() {
    let server = Server::new(noise(LEN, 1));
    let place = Place::new(quick());
    assert_eq!(read(&place.cache, &server, "/a").await, []);
    for weak in [None, Some("W/\"one\"".to_owned())] {
        server.configure(|behaviour| behaviour.etag = weak);
        assert_eq!(read(&place.cache, &server, "/b").await, [(NotKept::NoVersion, 11)]);
    }
    // A read of a range counts the blocks that overlap it.
    let object = place.cache.object(&server.url("/b")).await.expect("an object");
    object.bytes(BLOCK - 1..BLOCK + 1).await.expect("bytes");
    assert_eq!(causes(&object.counts()), [(NotKept::NoVersion, 2)]);
    server.configure(|behaviour| {
        behaviour.etag = Some("\"one\"".to_owned());
        (behaviour.ignores_ranges, behaviour.omits_length) = (true, true);
    });
    assert_eq!(read(&place.cache, &server, "/c").await, [(NotKept::NoLength, 11)]);
    let all = [(NotKept::NoVersion, 24), (NotKept::NoLength, 11)];
    assert_eq!(causes(&place.cache.counts()), all, "the sum over all objects");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_address_and_a_conflict_are_causes() {
    let server = Server::new(noise(LEN, 1));
    let place = Place::new(quick());
    let long = format!("/{}", "a".repeat(20_000));
    assert_eq!(read(&place.cache, &server, &long).await, [(NotKept::Address, 11)]);
    let url = server.url("/a");
    let object = place.cache.object(&url).await.expect("an object");
    server.clear_requests();
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let reading = tokio::spawn({
        let object = object.clone();
        async move { object.bytes(0..BLOCK).await }
    });
    server.wait_for_requests(0, 1);
    let chunks = place.cache.chunks().expect("a folder");
    let blocks = chunks.blocks(&url, "\"one\"", LEN as u64, BLOCK).expect("a key");
    blocks.put(0, &[7; BLOCK as usize]).expect("a stored block");
    server.configure(|behaviour| behaviour.holds_bodies = false);
    let bytes = reading.await.expect("a task").expect("bytes");
    assert!(bytes == noise(BLOCK as usize, 1), "the bytes of the origin");
    assert_eq!(causes(&object.counts()), [(NotKept::Conflict, 1)]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_opened_is_a_cause_but_no_folder_is_not() {
    let server = Server::new(noise(LEN, 1));
    let none = ObjectCache::without_folder(quick()).expect("a cache");
    assert_eq!(read(&none, &server, "/a").await, []);
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("a file");
    let cache = ObjectCache::open(&file, &Options::new(), quick()).expect("a cache");
    assert!(cache.folder_problem().is_some());
    assert_eq!(read(&cache, &server, "/a").await, [(NotKept::Folder, 11)]);
}

/// A disk that is full while the flag is set.
#[derive(Default)]
struct FullDisk(AtomicBool);

impl Disk for FullDisk {
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        SystemDisk.write(file, head, data, offset)
    }

    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64> {
        SystemDisk.available(folder)
    }
}

#[tokio::test]
async fn a_full_disk_and_a_locked_folder_are_causes() {
    let server = Server::new(noise(LEN, 1));
    let folder = TempDir::new().expect("a folder");
    let disk = Arc::new(FullDisk::default());
    let options = Options::new().limit(64 << 20).min_free(0).disk(disk.clone());
    let options = options.patience(Duration::from_secs(1));
    let cache = ObjectCache::open(folder.path(), &options, quick()).expect("a cache");
    disk.0.store(true, Ordering::Relaxed);
    assert_eq!(read(&cache, &server, "/a").await, [(NotKept::Disk, 11)]);
    disk.0.store(false, Ordering::Relaxed);
    drop(cache);
    let holder = File::open(folder.path()).expect("a folder");
    let cache = ObjectCache::open(folder.path(), &options, quick()).expect("a cache");
    holder.lock().expect("a lock");
    assert_eq!(read(&cache, &server, "/b").await, [(NotKept::Busy, 11)]);
    drop(holder);
    // Puts do not wait until one of them gets access again, not even for another thread that does.
    let mut attempts = 0;
    while !read(&cache, &server, "/b").await.is_empty() {
        attempts += 1;
        assert!(attempts < 100, "the lock is free, but blocks are not kept");
    }
}
