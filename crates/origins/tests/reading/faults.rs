//! Transient and permanent faults of origins.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::Error;
use std::time::Duration;

#[tokio::test]
async fn requests_are_retried_after_transient_failures() {
    let body = noise(4 * BLOCK as usize, 1);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    server.configure(|behaviour| behaviour.statuses = [503, 500, 429].into());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.statuses = [502, 504].into());
    assert_eq!(object.bytes(0..4 * BLOCK).await.expect("bytes"), body);
    let counts = object.counts();
    assert_eq!((counts.checks, counts.requests, counts.retries), (4, 3, 5));
}

#[tokio::test]
async fn a_response_that_is_cut_off_is_continued() {
    let body = noise(4 * BLOCK as usize, 2);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.cuts = [5000, 0, 1].into());
    assert_eq!(object.bytes(0..4 * BLOCK).await.expect("bytes"), body);
    let end = 4 * BLOCK;
    assert_eq!(server.ranges(), [0..end, 5000..end, 5000..end, 5001..end]);
    assert_eq!(object.counts().fetched, end, "no byte was sent twice");
}

#[tokio::test]
async fn an_origin_may_send_a_shorter_range() {
    let body = noise(4 * BLOCK as usize, 2);
    let server = Server::new(body.clone());
    server.configure(|behaviour| behaviour.max_range_len = Some(500));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..4 * BLOCK).await.expect("bytes"), body);
    assert_eq!((object.counts().requests, object.counts().retries), (33, 0));

    // Without a validator, two responses may be of two versions.
    server.configure(|behaviour| behaviour.etag = Some("W/\"weak\"".into()));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..500).await.expect("bytes"), body[..500]);
    let error = object.bytes(0..501).await.expect_err("two responses");
    assert!(matches!(error, Error::Response { .. }), "{error}");
}

#[tokio::test]
async fn retries_are_limited() {
    let server = Server::new(noise(4 * BLOCK as usize, 3));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.statuses = [503; 4].into());
    let error = object.bytes(0..10).await.expect_err("no bytes");
    assert!(matches!(error, Error::Status { status: 503, attempts: 4, .. }), "{error}");
    server.configure(|behaviour| behaviour.cuts = [0; 4].into());
    let error = object.bytes(0..10).await.expect_err("no bytes");
    assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
    object.bytes(0..10).await.expect("the next read has its own retries");
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let server = Server::new(noise(4 * BLOCK as usize, 4));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    let expected =
        [(404, "not-found"), (410, "not-found"), (403, "denied"), (400, "status"), (501, "status")];
    for (status, code) in expected {
        server.clear_requests();
        server.configure(|behaviour| behaviour.statuses = [status].into());
        let error = object.bytes(0..10).await.expect_err("no bytes");
        assert_eq!(error.code(), code, "{error}");
        server.configure(|behaviour| behaviour.statuses = [status].into());
        let error = place.cache.object(&server.url("/b")).await.expect_err("no object");
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(server.requests().len(), 2, "{status}");
    }
}

#[tokio::test]
async fn the_status_of_an_encoded_error_response_is_reported() {
    let server = Server::new(noise(4 * BLOCK as usize, 4));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    for (statuses, code) in [(vec![404], "not-found"), (vec![503; 4], "status")] {
        let mut all = [&statuses[..], &statuses[..]].concat();
        server.configure(|behaviour| {
            behaviour.statuses = std::mem::take(&mut all).into();
            behaviour.encoding = Some("gzip".into());
        });
        let error = place.cache.object(&server.url("/b")).await.expect_err("no object");
        assert_eq!(error.code(), code, "{error}");
        let error = object.bytes(0..10).await.expect_err("no bytes");
        assert_eq!(error.code(), code, "{error}");
    }
}

#[tokio::test]
async fn retry_after_is_respected_up_to_the_maximum_delay() {
    let server = Server::new(noise(BLOCK as usize, 5));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| {
        behaviour.statuses = [429].into();
        behaviour.retry_after = Some("0".into());
    });
    object.bytes(0..10).await.expect("bytes");
    place.cache.chunks().expect("a folder").clear().expect("an empty cache");
    server.configure(|behaviour| {
        behaviour.statuses = [429].into();
        behaviour.retry_after = Some("3600".into());
    });
    let error = object.bytes(0..10).await.expect_err("a delay above the maximum");
    assert!(matches!(error, Error::Status { status: 429, attempts: 1, .. }), "{error}");
}

#[tokio::test]
async fn a_read_timeout_ends_a_request() {
    let server = Server::new(noise(BLOCK as usize, 6));
    let place = Place::new(quick().read_timeout(Duration::from_millis(50)).retries(1));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.stalls_bodies = true);
    let error = object.bytes(0..10).await.expect_err("no bytes");
    assert!(matches!(error, Error::Unreachable { attempts: 2, .. }), "{error}");
}

#[tokio::test]
async fn a_refused_connection_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let place = Place::new(quick());
    let error =
        place.cache.object(&format!("http://{address}/a")).await.expect_err("a refused connection");
    assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn invalid_responses_are_errors() {
    let server = Server::new(noise(4 * BLOCK as usize, 7));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.wrong_range = Some(5..10));
    let error = object.bytes(0..10).await.expect_err("other bytes");
    assert!(matches!(error, Error::Response { .. }), "{error}");
    server.configure(|behaviour| {
        behaviour.wrong_range = None;
        behaviour.encoding = Some("gzip".into());
    });
    let error = object.bytes(0..10).await.expect_err("encoded bytes");
    assert!(error.to_string().contains("encoded as gzip"), "{error}");
    let error = place.cache.object(&server.url("/b")).await.expect_err("encoded bytes");
    assert!(matches!(error, Error::Response { .. }), "{error}");
    assert!(place.cache.chunks().expect("a folder").list().is_empty());
}

#[tokio::test]
async fn redirects_are_followed_up_to_a_maximum() {
    let body = noise(2 * BLOCK as usize, 8);
    let (server, other) = (Server::new(body.clone()), Server::new(body.clone()));
    let place = Place::new(quick());
    server.configure(|behaviour| behaviour.redirects_to = Some(other.url("/there?x=1")));
    let object = place.cache.object(&server.url("/moved")).await.expect("an object");
    assert_eq!(object.bytes(0..2 * BLOCK).await.expect("bytes"), body);
    assert_eq!(object.address(), server.url("/moved"));
    assert!(other.requests().iter().all(|request| request.target == "/there?x=1"));
    assert_eq!(other.ranges(), std::slice::from_ref(&(0..2 * BLOCK)));

    server.configure(|behaviour| behaviour.redirects_to = Some("/moved/again".into()));
    let error = place.cache.object(&server.url("/moved")).await.expect_err("a redirect loop");
    assert!(matches!(error, Error::Response { .. }), "{error}");
    server.configure(|behaviour| behaviour.redirects_to = Some("file:///etc/passwd".into()));
    let error = place.cache.object(&server.url("/moved")).await.expect_err("a redirect to a file");
    assert!(matches!(error, Error::Response { .. }), "{error}");
}
