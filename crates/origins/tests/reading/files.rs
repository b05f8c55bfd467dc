//! Local files as origins, and caches that are full or damaged.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_chunks::Options;
use nuthatch_origins::{Error, NotKept, ObjectCache, plain_address};
use std::fs;
use tempfile::TempDir;

#[tokio::test]
async fn files_are_objects() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("a file");
    let body = noise(10 * BLOCK as usize + 3, 1);
    fs::write(&path, &body).expect("a file");
    let place = Place::new(quick());
    let name = path.to_str().expect("a name");
    let url = plain_address(name).expect("an address");
    assert!(url.starts_with("file:///") && url.ends_with("/a%20file"), "{url}");
    for address in [name, &url] {
        let object = place.cache.object(address).await.expect("an object");
        assert_eq!(object.address(), url);
        assert_eq!(object.bytes(0..object.len()).await.expect("bytes"), body);
    }
    let counts = place.cache.counts();
    assert_eq!((counts.from_cache, counts.from_origin), (body.len() as u64, body.len() as u64));
}

#[tokio::test]
async fn a_write_makes_another_version() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("file");
    let (old, new) = (noise(4 * BLOCK as usize, 1), noise(4 * BLOCK as usize, 2));
    fs::write(&path, &old).expect("a file");
    let place = Place::new(quick());
    let name = path.to_str().expect("a name");
    let object = place.cache.object(name).await.expect("an object");
    assert_eq!(object.bytes(0..BLOCK).await.expect("bytes"), old[..BLOCK as usize]);
    // A write within the same clock tick would keep the time of modification. Opening has waited
    // until the tick was over.
    fs::write(&path, &new).expect("a file");
    let error = object.bytes(BLOCK..2 * BLOCK).await.expect_err("it changed");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    let object = place.cache.object(name).await.expect("an object");
    assert_eq!(object.bytes(0..object.len()).await.expect("bytes"), new);
    fs::remove_file(&path).expect("no file");
    let error = place.cache.object(name).await.expect_err("a removed file");
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn a_pipe_or_a_folder_is_refused_without_blocking() {
    let folder = TempDir::new().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let place = Place::new(quick());
    for path in [pipe.as_path(), folder.path()] {
        let name = path.to_str().expect("a name");
        let error = place.cache.object(name).await.expect_err("no file");
        assert!(matches!(error, Error::Address { .. }), "{error}");
        assert!(error.to_string().contains("expected a regular file, found file:///"), "{error}");
    }
    // A pipe can replace the file after it was opened.
    let path = folder.path().join("file");
    fs::write(&path, noise(BLOCK as usize, 1)).expect("a file");
    let object = place.cache.object(path.to_str().expect("a name")).await.expect("an object");
    fs::rename(&pipe, &path).expect("a pipe in its place");
    assert!(object.bytes(0..BLOCK).await.is_err());
}

#[tokio::test]
async fn bytes_that_do_not_fit_in_the_cache_are_delivered() {
    let folder = TempDir::new().expect("a folder");
    let body = noise(3 << 20, 2);
    let server = Server::new(body.clone());
    let options = Options::new().limit(4 << 20).min_free(u64::MAX / 2);
    let settings = nuthatch_origins::Settings::new();
    let cache = ObjectCache::open(folder.path(), &options, settings).expect("a cache");
    let object = cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..object.len()).await.expect("bytes"), body);
    let blocking = object.blocking();
    let read = std::thread::spawn(move || {
        let mut all = vec![0; 3 << 20];
        let len = blocking.read_at(0, &mut all).expect("bytes");
        (len, all)
    });
    assert_eq!(read.join().expect("a thread"), (body.len(), body));
    let counts = object.counts();
    assert!(counts.not_kept > 0);
    assert_eq!(counts.not_kept_by(NotKept::NoRoom), counts.not_kept);
}

#[tokio::test]
async fn a_damaged_cache_is_a_miss() {
    let body = noise(40 * BLOCK as usize, 3);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..object.len()).await.expect("bytes"), body);
    for entry in fs::read_dir(place.folder.path()).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|ending| ending == "seg") {
            let file = fs::OpenOptions::new().write(true).open(path).expect("a segment");
            file.set_len(0).expect("an empty segment");
        }
    }
    server.clear_requests();
    let len = object.len();
    assert_eq!(object.bytes(0..len).await.expect("bytes"), body);
    assert!(!server.ranges().is_empty());
}
