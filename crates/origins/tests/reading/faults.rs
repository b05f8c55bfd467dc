//! Origins that fail in passing, or for good.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::Error;
use std::time::Duration;

#[tokio::test]
async fn what_fails_in_passing_is_asked_for_again() {
    let body = noise(4 * BLOCK as usize, 1);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    server.behave(|manners| manners.statuses = [503, 500, 429].into());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.statuses = [502, 504].into());
    assert_eq!(object.bytes(0..4 * BLOCK).await.expect("bytes"), body);
    let counts = object.counts();
    assert_eq!((counts.checks, counts.requests, counts.retries), (4, 3, 5));
}

#[tokio::test]
async fn an_answer_that_breaks_off_goes_on_where_it_stopped() {
    let body = noise(4 * BLOCK as usize, 2);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.cuts = [5000, 0, 1].into());
    assert_eq!(object.bytes(0..4 * BLOCK).await.expect("bytes"), body);
    let end = 4 * BLOCK;
    assert_eq!(server.ranges(), [0..end, 5000..end, 5000..end, 5001..end]);
    assert_eq!(object.counts().fetched, end, "no byte came twice");
}

#[tokio::test]
async fn an_origin_may_answer_with_less() {
    let body = noise(4 * BLOCK as usize, 2);
    let server = Server::new(body.clone());
    server.behave(|manners| manners.max_range_len = Some(500));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..4 * BLOCK).await.expect("bytes"), body);
    assert_eq!((object.counts().requests, object.counts().retries), (33, 0));

    // Without a validator, two answers may be of two versions.
    server.behave(|manners| manners.etag = Some("W/\"weak\"".into()));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.bytes(0..500).await.expect("bytes"), body[..500]);
    let error = object.bytes(0..501).await.expect_err("two answers");
    assert!(matches!(error, Error::Response { .. }), "{error}");
}

#[tokio::test]
async fn attempts_end() {
    let server = Server::new(noise(4 * BLOCK as usize, 3));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.statuses = [503; 4].into());
    let error = object.bytes(0..10).await.expect_err("no bytes");
    assert!(matches!(error, Error::Status { status: 503, attempts: 4, .. }), "{error}");
    server.behave(|manners| manners.cuts = [0; 4].into());
    let error = object.bytes(0..10).await.expect_err("no bytes");
    assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
    object.bytes(0..10).await.expect("the next reader begins anew");
}

#[tokio::test]
async fn what_stays_wrong_is_asked_for_once() {
    let server = Server::new(noise(4 * BLOCK as usize, 4));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    let expected =
        [(404, "not-found"), (410, "not-found"), (403, "denied"), (400, "status"), (501, "status")];
    for (status, code) in expected {
        server.forget();
        server.behave(|manners| manners.statuses = [status].into());
        let error = object.bytes(0..10).await.expect_err("no bytes");
        assert_eq!(error.code(), code, "{error}");
        server.behave(|manners| manners.statuses = [status].into());
        let error = place.cache.object(&server.url("/b")).await.expect_err("no object");
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(server.asked().len(), 2, "{status}");
    }
}

#[tokio::test]
async fn an_encoded_page_of_an_error_does_not_hide_the_status() {
    let server = Server::new(noise(4 * BLOCK as usize, 4));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    for (statuses, code) in [(vec![404], "not-found"), (vec![503; 4], "status")] {
        let mut all = [&statuses[..], &statuses[..]].concat();
        server.behave(|manners| {
            manners.statuses = std::mem::take(&mut all).into();
            manners.encoding = Some("gzip".into());
        });
        let error = place.cache.object(&server.url("/b")).await.expect_err("no object");
        assert_eq!(error.code(), code, "{error}");
        let error = object.bytes(0..10).await.expect_err("no bytes");
        assert_eq!(error.code(), code, "{error}");
    }
}

#[tokio::test]
async fn an_origin_that_wants_to_be_left_alone_is() {
    let server = Server::new(noise(BLOCK as usize, 5));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| {
        manners.statuses = [429].into();
        manners.retry_after = Some("0".into());
    });
    object.bytes(0..10).await.expect("bytes");
    place.cache.chunks().expect("a folder").clear().expect("an empty cache");
    server.behave(|manners| {
        manners.statuses = [429].into();
        manners.retry_after = Some("3600".into());
    });
    let error = object.bytes(0..10).await.expect_err("that is too long");
    assert!(matches!(error, Error::Status { status: 429, attempts: 1, .. }), "{error}");
}

#[tokio::test]
async fn an_origin_that_falls_silent_is_given_up() {
    let server = Server::new(noise(BLOCK as usize, 6));
    let place = Place::new(quick().read_timeout(Duration::from_millis(50)).retries(1));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.silent = true);
    let error = object.bytes(0..10).await.expect_err("no bytes");
    assert!(matches!(error, Error::Unreachable { attempts: 2, .. }), "{error}");
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let place = Place::new(quick());
    let error = place.cache.object(&format!("http://{address}/a")).await.expect_err("nobody");
    assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn answers_that_are_not_what_was_asked_for() {
    let server = Server::new(noise(4 * BLOCK as usize, 7));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.wrong_range = Some(5..10));
    let error = object.bytes(0..10).await.expect_err("other bytes");
    assert!(matches!(error, Error::Response { .. }), "{error}");
    server.behave(|manners| {
        manners.wrong_range = None;
        manners.encoding = Some("gzip".into());
    });
    let error = object.bytes(0..10).await.expect_err("encoded bytes");
    assert!(error.to_string().contains("encoded as gzip"), "{error}");
    let error = place.cache.object(&server.url("/b")).await.expect_err("encoded bytes");
    assert!(matches!(error, Error::Response { .. }), "{error}");
    assert!(place.cache.chunks().expect("a folder").list().is_empty());
}

#[tokio::test]
async fn redirects_are_followed_to_an_end() {
    let body = noise(2 * BLOCK as usize, 8);
    let (server, other) = (Server::new(body.clone()), Server::new(body.clone()));
    let place = Place::new(quick());
    server.behave(|manners| manners.moved_to = Some(other.url("/there?x=1")));
    let object = place.cache.object(&server.url("/moved")).await.expect("an object");
    assert_eq!(object.bytes(0..2 * BLOCK).await.expect("bytes"), body);
    assert_eq!(object.address(), server.url("/moved"));
    assert!(other.asked().iter().all(|asked| asked.target == "/there?x=1"));
    assert_eq!(other.ranges(), std::slice::from_ref(&(0..2 * BLOCK)));

    server.behave(|manners| manners.moved_to = Some("/moved/again".into()));
    let error = place.cache.object(&server.url("/moved")).await.expect_err("a circle");
    assert!(matches!(error, Error::Response { .. }), "{error}");
    server.behave(|manners| manners.moved_to = Some("file:///etc/passwd".into()));
    let error = place.cache.object(&server.url("/moved")).await.expect_err("no address");
    assert!(matches!(error, Error::Response { .. }), "{error}");
}
