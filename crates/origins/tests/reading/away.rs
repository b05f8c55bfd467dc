//! Origins that are away while the cache has what is wanted.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::{Error, ObjectCache, Settings};
use std::time::Duration;

const LEN: u64 = 4 * BLOCK;
const DAY: Duration = Duration::from_hours(24);

/// A folder with an object of an origin, of which so many bytes were read.
async fn filled(server: &Server, bytes: u64) -> Place {
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(0..bytes).await.expect("bytes");
    drop(object);
    place
}

impl Place {
    /// Another cache in the same folder, as another process has it.
    fn again(self, settings: Settings) -> Self {
        let Self { folder, cache } = self;
        // A request that is just ending may keep the cache for a moment after this drops it.
        cache.wait_for_puts();
        drop(cache);
        let cache = ObjectCache::open(folder.path(), &nuthatch_chunks::Options::new(), settings);
        Self { folder, cache: cache.expect("a cache") }
    }
}

/// Every answer from now on is this one.
fn fails(server: &Server, status: u16) {
    server.behave(|manners| manners.statuses = vec![status; 10_000].into());
}

#[tokio::test]
async fn everything_in_the_cache_is_read_offline_without_a_request() {
    let body = noise(LEN as usize, 1);
    let server = Server::new(body.clone());
    let place = filled(&server, LEN).await.again(quick().offline(true));
    server.forget();
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
    assert_eq!((object.etag(), object.is_stale()), (Some("\"one\""), true));
    assert_eq!((object.counts().stale, object.counts().checks), (1, 0));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn what_is_not_in_the_cache_is_an_error_offline_at_once() {
    let server = Server::new(noise(LEN as usize, 2));
    let place = filled(&server, BLOCK).await.again(quick().offline(true));
    server.forget();
    let error = place.cache.object(&server.url("/b")).await.expect_err("never read");
    assert!(matches!(error, Error::Offline { .. }), "{error}");
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(0..BLOCK).await.expect("bytes");
    let error = object.bytes(0..BLOCK + 1).await.expect_err("never read");
    let text = error.to_string();
    assert!(text.contains("offline: bytes 4096-8192 are not in the cache"), "{text}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_stale_version_is_used_while_the_origin_fails_and_not_when_it_says_no() {
    let body = noise(LEN as usize, 3);
    let server = Server::new(body.clone());
    let place = filled(&server, LEN).await.again(quick().max_stale(DAY));
    for status in [429, 500, 502, 503, 504] {
        fails(&server, status);
        server.forget();
        let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
        assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
        assert!(object.is_stale());
        assert_eq!(server.asked().len(), 1, "{status}: one attempt is enough");
    }
    let refusals = [(403, "denied"), (404, "not-found"), (400, "status")];
    for (status, code) in refusals.into_iter().chain([408, 425, 529].map(|s| (s, "status"))) {
        fails(&server, status);
        let error = place.cache.object(&server.url("/a")).await.expect_err("it says so");
        assert_eq!(error.code(), code);
    }
    server.behave(|manners| manners.statuses.clear());
    assert!(!place.cache.object(&server.url("/a")).await.expect("an object").is_stale());
    assert_eq!(place.cache.counts().stale, 5);
}

#[tokio::test]
async fn a_stale_version_is_refused_unless_it_is_allowed_and_recent() {
    let server = Server::new(noise(LEN as usize, 4));
    let mut place = filled(&server, LEN).await;
    fails(&server, 503);
    for settings in [quick(), quick().max_stale(Duration::ZERO)] {
        place = place.again(settings);
        let error = place.cache.object(&server.url("/a")).await.expect_err("no version");
        assert!(matches!(error, Error::Status { status: 503, .. }), "{error}");
    }
    place = place.again(quick().offline(true).max_stale(Duration::ZERO));
    let error = place.cache.object(&server.url("/a")).await.expect_err("too old");
    assert!(error.to_string().contains("confirmed at most 0 s ago, found one"), "{error}");
}

#[tokio::test]
async fn an_origin_may_allow_stale_versions_itself() {
    let server = Server::new(noise(LEN as usize, 5));
    server.behave(|manners| manners.cache_control = Some("stale-if-error=600".into()));
    let place = filled(&server, LEN).await.again(quick());
    fails(&server, 503);
    assert!(place.cache.object(&server.url("/a")).await.expect("an object").is_stale());
}

#[tokio::test]
async fn an_origin_that_does_not_answer_holds_up_what_is_cached_once_and_briefly() {
    let body = noise(LEN as usize, 6);
    let server = Server::new(body.clone());
    let brief = quick().max_stale(DAY).check_timeout(Duration::from_millis(20));
    let place = filled(&server, LEN).await.again(brief);
    server.behave(|manners| manners.deaf = true);
    server.forget();
    for _ in 0..5 {
        // Without the bound it would wait for the minutes that an origin may be silent.
        let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
        assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
    }
    // A request may be given up before the server has read it.
    assert_eq!(place.cache.counts().checks, 1, "it is not asked again for a while");
    assert!(server.asked().len() <= 1);
    server.behave(|manners| manners.deaf = false);
}

#[tokio::test]
async fn a_stale_version_is_used_while_the_origin_refuses_connections() {
    let body = noise(LEN as usize, 10);
    let server = Server::new(body.clone());
    let place = filled(&server, LEN).await.again(quick().max_stale(DAY));
    server.forget();
    server.refuse();
    for _ in 0..5 {
        let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
        assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
        assert!(object.is_stale());
    }
    let counts = place.cache.counts();
    assert_eq!((counts.stale, counts.checks, counts.retries), (5, 1, 0), "it is not asked again");
    let place = place.again(quick());
    let error = place.cache.object(&server.url("/a")).await.expect_err("not allowed");
    assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn missing_bytes_of_a_stale_version_come_from_an_origin_that_is_back() {
    let body = noise(LEN as usize, 7);
    let server = Server::new(body.clone());
    let place = filled(&server, BLOCK).await.again(quick().max_stale(DAY));
    fails(&server, 503);
    let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
    server.behave(|manners| manners.statuses.clear());
    assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
    server.behave(|manners| manners.etag = Some("\"two\"".into()));
    place.cache.chunks().expect("a folder").clear().expect("room");
    let error = object.bytes(0..LEN).await.expect_err("another version");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn a_check_that_finds_a_new_version_replaces_what_is_recorded() {
    let server = Server::new(noise(LEN as usize, 8));
    let place = filled(&server, LEN).await;
    server.behave(|manners| manners.etag = Some("\"two\"".into()));
    place.cache.object(&server.url("/a")).await.expect("an object");
    let place = place.again(quick().offline(true));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.etag(), Some("\"two\""));
    assert!(matches!(object.bytes(0..1).await, Err(Error::Offline { .. })));
}

#[tokio::test]
async fn threads_and_files_are_read_offline_as_well() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("file");
    let body = noise(LEN as usize, 9);
    std::fs::write(&path, &body).expect("a file");
    let address = path.to_str().expect("UTF-8");
    let place = Place::new(quick());
    let read = |place: &Place| {
        let object = place.cache.object_blocking(address).expect("an object");
        let mut out = vec![0; LEN as usize];
        assert_eq!(object.read_at(0, &mut out).expect("bytes"), out.len());
        out
    };
    assert_eq!(read(&place), body);
    let place = place.again(quick().offline(true));
    std::fs::remove_file(&path).expect("it was there");
    assert_eq!(read(&place), body);
}
