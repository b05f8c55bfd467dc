//! Reads of cached bytes while the origin is unavailable.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::{Error, ObjectCache, Settings};
use std::time::Duration;

const LEN: u64 = 4 * BLOCK;
const DAY: Duration = Duration::from_hours(24);

/// Returns a cache that has the first `bytes` bytes of an object.
async fn filled(server: &Server, bytes: u64) -> Place {
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(0..bytes).await.expect("bytes");
    drop(object);
    place
}

impl Place {
    /// Opens the folder again with these settings, as another process does.
    fn reopened(self, settings: Settings) -> Self {
        let Self { folder, cache } = self;
        // A request that is ending may still hold the cache, so its puts must end first.
        cache.wait_for_puts();
        drop(cache);
        let cache = ObjectCache::open(folder.path(), &nuthatch_chunks::Options::new(), settings);
        Self { folder, cache: cache.expect("a cache") }
    }
}

/// Makes the origin respond with this status from now on.
fn fail_with(server: &Server, status: u16) {
    server.configure(|behaviour| behaviour.statuses = vec![status; 10_000].into());
}

#[tokio::test]
async fn a_cached_object_is_read_offline_without_a_request() {
    let body = noise(LEN as usize, 1);
    let server = Server::new(body.clone());
    let place = filled(&server, LEN).await.reopened(quick().offline(true));
    server.clear_requests();
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
    assert_eq!((object.etag(), object.is_stale()), (Some("\"one\""), true));
    assert_eq!((object.counts().stale, object.counts().checks), (1, 0));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn bytes_that_are_not_cached_are_an_error_offline() {
    let server = Server::new(noise(LEN as usize, 2));
    let place = filled(&server, BLOCK).await.reopened(quick().offline(true));
    server.clear_requests();
    let error = place.cache.object(&server.url("/b")).await.expect_err("not in the cache");
    assert!(matches!(error, Error::Offline { .. }), "{error}");
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(0..BLOCK).await.expect("bytes");
    let error = object.bytes(0..BLOCK + 1).await.expect_err("not in the cache");
    let text = error.to_string();
    assert!(text.contains("offline: bytes 4096-8192 are not in the cache"), "{text}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_stale_version_is_used_after_transient_failures_but_not_after_refusals() {
    let body = noise(LEN as usize, 3);
    let server = Server::new(body.clone());
    let place = filled(&server, LEN).await.reopened(quick().max_stale(DAY));
    for status in [429, 500, 502, 503, 504] {
        fail_with(&server, status);
        server.clear_requests();
        let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
        assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
        assert!(object.is_stale());
        assert_eq!(server.requests().len(), 1, "{status}: one attempt");
    }
    let refusals = [(403, "denied"), (404, "not-found"), (400, "status")];
    for (status, code) in refusals.into_iter().chain([408, 425, 529].map(|s| (s, "status"))) {
        fail_with(&server, status);
        let error = place.cache.object(&server.url("/a")).await.expect_err("a refusal");
        assert_eq!(error.code(), code);
    }
    server.configure(|behaviour| behaviour.statuses.clear());
    assert!(!place.cache.object(&server.url("/a")).await.expect("an object").is_stale());
    assert_eq!(place.cache.counts().stale, 5);
}

#[tokio::test]
async fn a_stale_version_is_refused_unless_it_is_allowed_and_recent() {
    let server = Server::new(noise(LEN as usize, 4));
    let mut place = filled(&server, LEN).await;
    fail_with(&server, 503);
    for settings in [quick(), quick().max_stale(Duration::ZERO)] {
        place = place.reopened(settings);
        let error = place.cache.object(&server.url("/a")).await.expect_err("no version");
        assert!(matches!(error, Error::Status { status: 503, .. }), "{error}");
    }
    place = place.reopened(quick().offline(true).max_stale(Duration::ZERO));
    let error = place.cache.object(&server.url("/a")).await.expect_err("too old");
    assert!(error.to_string().contains("confirmed at most 0 s ago, found one"), "{error}");
}

#[tokio::test]
async fn stale_if_error_of_the_origin_allows_stale_versions() {
    let server = Server::new(noise(LEN as usize, 5));
    server.configure(|behaviour| behaviour.cache_control = Some("stale-if-error=600".into()));
    let place = filled(&server, LEN).await.reopened(quick());
    fail_with(&server, 503);
    assert!(place.cache.object(&server.url("/a")).await.expect("an object").is_stale());
}

#[tokio::test]
async fn an_origin_that_sends_no_response_delays_only_the_first_opening() {
    let body = noise(LEN as usize, 6);
    let server = Server::new(body.clone());
    let brief = quick().max_stale(DAY).check_timeout(Duration::from_millis(20));
    let place = filled(&server, LEN).await.reopened(brief);
    server.configure(|behaviour| behaviour.holds_all = true);
    server.clear_requests();
    for _ in 0..5 {
        // Without `check_timeout`, opening would wait for the read timeout.
        let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
        assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
    }
    // The client may cancel the request before the server has read it.
    assert_eq!(place.cache.counts().checks, 1, "one check for all openings");
    assert!(server.requests().len() <= 1);
    server.configure(|behaviour| behaviour.holds_all = false);
}

#[tokio::test]
async fn a_stale_version_is_used_while_the_origin_refuses_connections() {
    let body = noise(LEN as usize, 10);
    let server = Server::new(body.clone());
    let place = filled(&server, LEN).await.reopened(quick().max_stale(DAY));
    server.clear_requests();
    server.refuse_connections();
    for _ in 0..5 {
        let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
        assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
        assert!(object.is_stale());
    }
    let counts = place.cache.counts();
    assert_eq!((counts.stale, counts.checks, counts.retries), (5, 1, 0), "one check");
    let place = place.reopened(quick());
    let error = place.cache.object(&server.url("/a")).await.expect_err("not allowed");
    assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn missing_bytes_of_a_stale_version_are_fetched_when_the_origin_is_available_again() {
    let body = noise(LEN as usize, 7);
    let server = Server::new(body.clone());
    let place = filled(&server, BLOCK).await.reopened(quick().max_stale(DAY));
    fail_with(&server, 503);
    let object = place.cache.object(&server.url("/a")).await.expect("a stale object");
    server.configure(|behaviour| behaviour.statuses.clear());
    assert_eq!(object.bytes(0..LEN).await.expect("bytes"), body);
    server.configure(|behaviour| behaviour.etag = Some("\"two\"".into()));
    place.cache.chunks().expect("a folder").clear().expect("an empty cache");
    let error = object.bytes(0..LEN).await.expect_err("another version");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn a_check_that_finds_a_new_version_replaces_the_recorded_one() {
    let server = Server::new(noise(LEN as usize, 8));
    let place = filled(&server, LEN).await;
    server.configure(|behaviour| behaviour.etag = Some("\"two\"".into()));
    place.cache.object(&server.url("/a")).await.expect("an object");
    let place = place.reopened(quick().offline(true));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.etag(), Some("\"two\""));
    assert!(matches!(object.bytes(0..1).await, Err(Error::Offline { .. })));
}

#[tokio::test]
async fn local_files_are_read_offline_by_threads() {
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
    let place = place.reopened(quick().offline(true));
    std::fs::remove_file(&path).expect("a removed file");
    assert_eq!(read(&place), body);
}
