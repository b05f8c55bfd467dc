//! Blocks that are not kept are counted by their cause.

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

/// The causes that were counted, and how often.
fn causes(counts: &Counts) -> Vec<(NotKept, u64)> {
    let all = NotKept::ALL.map(|cause| (cause, counts.not_kept_by(cause)));
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Reads all of an object through a cache, and returns why blocks were not kept.
async fn read(cache: &ObjectCache, server: &Server, path: &str) -> Vec<(NotKept, u64)> {
    let object = cache.object(&server.url(path)).await.expect("an object");
    let body = object.bytes(0..object.len()).await.expect("bytes");
    assert!(body == noise(LEN, 1), "what is not kept is delivered");
    let counts = object.counts();
    let causes = causes(&counts);
    assert_eq!(counts.not_kept, causes.iter().map(|(_, count)| count).sum::<u64>());
    causes
}

#[tokio::test]
async fn an_origin_without_a_version_or_a_length_is_the_cause() {
    let server = Server::new(noise(LEN, 1));
    let place = Place::new(quick());
    assert_eq!(read(&place.cache, &server, "/a").await, []);
    for weak in [None, Some("W/\"one\"".to_owned())] {
        server.behave(|manners| manners.etag = weak);
        assert_eq!(read(&place.cache, &server, "/b").await, [(NotKept::NoVersion, 11)]);
    }
    // A range counts the blocks that it has bytes of.
    let object = place.cache.object(&server.url("/b")).await.expect("an object");
    object.bytes(BLOCK - 1..BLOCK + 1).await.expect("bytes");
    assert_eq!(causes(&object.counts()), [(NotKept::NoVersion, 2)]);
    server.behave(|manners| {
        manners.etag = Some("\"one\"".to_owned());
        (manners.ignores_ranges, manners.unmeasured) = (true, true);
    });
    assert_eq!(read(&place.cache, &server, "/c").await, [(NotKept::NoLength, 11)]);
    let all = [(NotKept::NoVersion, 24), (NotKept::NoLength, 11)];
    assert_eq!(causes(&place.cache.counts()), all, "those of all objects");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_too_long_and_other_bytes_of_one_version_are_causes() {
    let server = Server::new(noise(LEN, 1));
    let place = Place::new(quick());
    let long = format!("/{}", "a".repeat(20_000));
    assert_eq!(read(&place.cache, &server, &long).await, [(NotKept::Address, 11)]);
    let url = server.url("/a");
    let object = place.cache.object(&url).await.expect("an object");
    server.forget();
    server.behave(|manners| manners.held = true);
    let reading = tokio::spawn({
        let object = object.clone();
        async move { object.bytes(0..BLOCK).await }
    });
    server.wait_for(0, 1);
    let chunks = place.cache.chunks().expect("a folder");
    let blocks = chunks.blocks(&url, "\"one\"", LEN as u64, BLOCK).expect("a key");
    blocks.put(0, &[7; BLOCK as usize]).expect("room");
    server.behave(|manners| manners.held = false);
    let bytes = reading.await.expect("a task").expect("bytes");
    assert!(bytes == noise(BLOCK as usize, 1), "those of the origin");
    assert_eq!(causes(&object.counts()), [(NotKept::Conflict, 1)]);
}

#[tokio::test]
async fn a_cache_without_a_folder_counts_nothing_and_one_whose_folder_cannot_be_opened_does() {
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

/// A disk that is full while it is told so.
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
async fn a_full_disk_and_a_locked_folder_are_causes_as_long_as_they_last() {
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
    assert_eq!(read(&cache, &server, "/b").await, []);
}
