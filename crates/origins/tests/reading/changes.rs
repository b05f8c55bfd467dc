//! Objects that change while they are read.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::Error;
use std::sync::Arc;

#[tokio::test]
async fn versions_never_mix() {
    for ignores_conditions in [false, true] {
        let (old, new) = (noise(20 * BLOCK as usize, 1), noise(20 * BLOCK as usize, 2));
        let server = Server::new(old.clone());
        server.configure(|behaviour| {
            behaviour.ignores_conditions = ignores_conditions;
            behaviour.changes_after = Some((2, Arc::new(new.clone()), "\"two\"".into()));
        });
        let place = Place::new(quick().max_requests(1));
        let url = server.url("/a");
        let object = place.cache.object(&url).await.expect("an object");
        let mut stream = object.stream(0..object.len()).expect("a stream");
        let mut read = Vec::new();
        let error = loop {
            match stream.next().await.expect("an error before the end") {
                Ok(bytes) => read.extend_from_slice(&bytes),
                Err(error) => break error,
            }
        };
        assert!(stream.next().await.is_none(), "the stream ends after an error");
        assert!(!read.is_empty() && old.starts_with(&read), "all bytes are of the old version");
        let Error::Changed { was, is, .. } = &error else { panic!("{error}") };
        assert_eq!((was.as_str(), is.as_str()), ("\"one\"", "\"two\""));

        let object = place.cache.object(&url).await.expect("an object");
        assert_eq!(object.validator(), Some("\"two\""));
        assert_eq!(object.bytes(0..object.len()).await.expect("the new version"), new);
    }
}

#[tokio::test]
async fn versions_with_the_same_weak_tag_never_mix() {
    let (then, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT");
    for ignores_conditions in [false, true] {
        let server = Server::new(noise(4 * BLOCK as usize, 1));
        server.configure(|behaviour| {
            behaviour.ignores_conditions = ignores_conditions;
            behaviour.etag = Some("W/\"one\"".into());
            behaviour.modified = Some(then.into());
        });
        let place = Place::new(quick());
        let object = place.cache.object(&server.url("/a")).await.expect("an object");
        object.bytes(0..BLOCK).await.expect("bytes of the first version");
        server.configure(|behaviour| {
            behaviour.body = Arc::new(noise(4 * BLOCK as usize, 2));
            behaviour.modified = Some(later.into());
        });
        let error = object.bytes(0..2 * BLOCK).await.expect_err("blocks of two versions");
        let Error::Changed { was, is, .. } = &error else { panic!("{error}") };
        assert_eq!(was, &format!("W/\"one\" of {then}"));
        assert_eq!(is, &format!("W/\"one\" of {later}"));
        let requests = server.requests();
        let last = &requests.last().expect("a request").headers;
        assert_eq!(last["if-unmodified-since"], then);
        assert!(!last.contains_key("if-match"), "a weak tag never matches in If-Match");
    }
}

#[tokio::test]
async fn a_response_that_is_cut_off_is_not_continued_with_another_version() {
    let (old, new) = (noise(2 * BLOCK as usize, 1), noise(2 * BLOCK as usize, 2));
    let server = Server::new(old);
    server.configure(|behaviour| {
        behaviour.cuts = [100].into();
        behaviour.changes_after = Some((1, Arc::new(new), "\"two\"".into()));
    });
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    let error = object.bytes(0..BLOCK).await.expect_err("another version");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn another_length_is_another_version_even_with_the_same_tag() {
    let server = Server::new(noise(4 * BLOCK as usize, 1));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.body = Arc::new(noise(5 * BLOCK as usize, 1)));
    let error = object.bytes(0..BLOCK).await.expect_err("a longer one");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    server.configure(|behaviour| behaviour.body = Arc::new(noise(10, 1)));
    let error = object.bytes(BLOCK..2 * BLOCK).await.expect_err("a shorter one");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    server.configure(|behaviour| behaviour.body = Arc::default());
    let error = object.bytes(BLOCK..2 * BLOCK).await.expect_err("an empty one");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn a_response_without_the_tag_is_a_change() {
    let server = Server::new(noise(4 * BLOCK as usize, 1));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| (behaviour.etag, behaviour.ignores_conditions) = (None, true));
    let error = object.bytes(0..BLOCK).await.expect_err("a response without a tag");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn cached_blocks_are_read_although_the_origin_has_another_version() {
    let old = noise(4 * BLOCK as usize, 1);
    let server = Server::new(old.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(0..2 * BLOCK).await.expect("bytes");
    server.configure(|behaviour| behaviour.etag = Some("\"two\"".into()));
    assert_eq!(object.bytes(10..BLOCK).await.expect("bytes"), old[10..BLOCK as usize]);
    let error = object.bytes(0..3 * BLOCK).await.expect_err("blocks of two versions");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn a_version_within_max_age_is_dropped_after_a_change() {
    check_changed_within_max_age("\"one\"", "\"two\"").await;
}

#[tokio::test]
async fn a_version_within_max_age_that_is_not_cached_is_dropped_after_a_change() {
    check_changed_within_max_age("W/\"one\"", "W/\"two\"").await;
}

/// Checks an object that is opened with the tag `one` within `max_age`, and now has the tag `two`.
async fn check_changed_within_max_age(one: &str, two: &str) {
    let new = noise(4 * BLOCK as usize, 2);
    let server = Server::new(noise(4 * BLOCK as usize, 1));
    server.configure(|behaviour| behaviour.etag = Some(one.into()));
    let place = Place::new(quick().max_age(std::time::Duration::from_hours(1)));
    let url = server.url("/a");
    place.cache.object(&url).await.expect("an object");
    let now = new.clone();
    server.configure(|behaviour| {
        (behaviour.body, behaviour.etag) = (Arc::new(now), Some(two.into()));
    });
    let object = place.cache.object(&url).await.expect("an object");
    assert_eq!(object.etag(), Some(one), "no check");
    assert!(matches!(object.bytes(0..10).await, Err(Error::Changed { .. })));
    let object = place.cache.object(&url).await.expect("an object");
    assert_eq!(object.bytes(0..10).await.expect("bytes"), new[..10]);
}
