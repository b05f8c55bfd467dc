//! What is read is what the origin has, and is asked for once.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::{ChunkedObject, Error};
use std::io::{Read, Seek, SeekFrom};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

async fn read_all(object: &mut ChunkedObject) -> Vec<u8> {
    let mut all = Vec::new();
    object.read_to_end(&mut all).await.expect("all of it");
    all
}

#[tokio::test]
async fn what_was_read_once_comes_from_the_cache() {
    let body = noise(10 * BLOCK as usize + 17, 1);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!((object.len(), object.validator()), (body.len() as u64, Some("\"one\"")));
    assert_eq!(read_all(&mut object).await, body);
    let counts = object.counts();
    assert_eq!((counts.from_origin, counts.from_cache), (body.len() as u64, 0));
    assert_eq!((counts.fetched, counts.checks, counts.retries), (body.len() as u64, 1, 0));
    assert_eq!(counts.hit_share(), Some(0.0));

    let before = server.ranges().len();
    assert_eq!(counts.requests, before as u64);
    let mut again = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(read_all(&mut again).await, body);
    let counts = again.counts();
    assert_eq!((counts.from_cache, counts.requests), (body.len() as u64, 0));
    assert_eq!(counts.hit_share(), Some(1.0));
    assert_eq!(server.ranges().len(), before, "nothing was asked for twice");
}

#[tokio::test]
async fn ranges_of_every_kind() {
    let body = noise(5 * BLOCK as usize + 100, 2);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    let len = body.len() as u64;
    for range in [0..1, 0..BLOCK, 1..BLOCK + 1, BLOCK..3 * BLOCK, len - 1..len, 100..len, 0..len] {
        let expected = &body[range.start as usize..range.end as usize];
        assert_eq!(object.bytes(range.clone()).await.expect("bytes"), expected, "{range:?}");
        let mut stream = object.stream(range.clone()).expect("a stream");
        let mut streamed = Vec::new();
        while let Some(bytes) = stream.next().await {
            streamed.extend_from_slice(&bytes.expect("bytes"));
        }
        assert_eq!(streamed, expected, "{range:?}");
    }
    for range in [0..0, 7..7, len..len] {
        assert!(object.bytes(range).await.expect("no bytes").is_empty());
    }
    let backwards = std::ops::Range { start: 2, end: 1 };
    for range in [0..len + 1, len + 1..len + 1, backwards] {
        let error = object.bytes(range).await.expect_err("a range that is none");
        assert!(matches!(error, Error::Range { .. }), "{error}");
    }
    let mut buffer = [0; 200];
    assert_eq!(object.read_at(len - 50, &mut buffer).await.expect("the end"), 50);
    assert_eq!(buffer[..50], body[body.len() - 50..]);
    assert_eq!(object.read_at(len, &mut buffer).await.expect("nothing"), 0);
    assert_eq!(object.read_at(u64::MAX, &mut buffer).await.expect("nothing"), 0);
}

#[tokio::test]
async fn only_what_is_missing_is_asked_for() {
    let server = Server::new(noise(16 * BLOCK as usize, 3));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(BLOCK..BLOCK + 1).await.expect("a byte");
    object.bytes(3 * BLOCK..5 * BLOCK).await.expect("two blocks");
    server.forget();
    object.bytes(0..7 * BLOCK).await.expect("the rest");
    let mut ranges = server.ranges();
    ranges.sort_by_key(|range| range.start);
    assert_eq!(ranges, [0..BLOCK, 2 * BLOCK..3 * BLOCK, 5 * BLOCK..7 * BLOCK]);
}

#[tokio::test]
async fn gaps_that_lie_close_together_are_one_request() {
    let body = noise(16 * BLOCK as usize, 3);
    let server = Server::new(body.clone());
    let place = Place::new(quick().max_gap(BLOCK));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(BLOCK..2 * BLOCK).await.expect("a block");
    object.bytes(3 * BLOCK..5 * BLOCK).await.expect("two blocks");
    server.forget();
    assert_eq!(object.bytes(0..7 * BLOCK).await.expect("the rest"), body[..7 * BLOCK as usize]);
    let mut ranges = server.ranges();
    ranges.sort_by_key(|range| range.start);
    assert_eq!(ranges, [0..3 * BLOCK, 5 * BLOCK..7 * BLOCK]);
}

#[tokio::test]
async fn a_sequential_reader_is_read_ahead_of_and_a_jumping_one_is_not() {
    let body = noise(64 * BLOCK as usize, 4);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    let mut byte = [0];
    for block in [40, 3, 50, 20] {
        object.seek(SeekFrom::Start(block * BLOCK)).await.expect("a place");
        object.read_exact(&mut byte).await.expect("a byte");
        assert_eq!(byte[0], body[(block * BLOCK) as usize]);
    }
    let block_at = |block: u64| block * BLOCK..(block + 1) * BLOCK;
    assert_eq!(server.ranges(), [block_at(40), block_at(3), block_at(50), block_at(20)]);

    server.forget();
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(read_all(&mut object).await, body);
    let lengths: Vec<u64> = server.ranges().iter().map(|range| range.end - range.start).collect();
    assert_eq!(lengths[0], BLOCK, "at first only what was asked for");
    assert_eq!(lengths.iter().sum::<u64>(), body.len() as u64);
    assert!(lengths.iter().any(|len| *len >= 3 * BLOCK), "then more at once: {lengths:?}");
}

#[test]
fn threads_read_without_an_executor() {
    let body = noise(20 * BLOCK as usize + 5, 5);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    for origin_is_asked in [true, false] {
        server.forget();
        let mut object = place.cache.object_blocking(&server.url("/a")).expect("an object");
        let mut all = Vec::new();
        object.read_to_end(&mut all).expect("all of it");
        assert_eq!(all, body);
        assert_eq!(object.seek(SeekFrom::End(-5)).expect("a place"), body.len() as u64 - 5);
        let mut end = Vec::new();
        object.read_to_end(&mut end).expect("the end");
        assert_eq!(end, body[body.len() - 5..]);
        let mut middle = vec![0; 3 * BLOCK as usize];
        assert_eq!(object.read_at(1000, &mut middle).expect("the middle"), middle.len());
        assert_eq!(middle, body[1000..1000 + middle.len()]);
        assert!(
            object.seek(SeekFrom::Start(3)).is_ok()
                && object.seek(SeekFrom::End(-9_999_999)).is_err()
        );
        assert_eq!(!server.ranges().is_empty(), origin_is_asked);
    }
}

#[tokio::test]
async fn objects_without_bytes() {
    let server = Server::new(Vec::new());
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert!(object.is_empty());
    assert!(read_all(&mut object).await.is_empty());
    server.behave(|manners| manners.ignores_ranges = true);
    let mut object = place.cache.object(&server.url("/b")).await.expect("an object");
    assert!(object.is_empty() && read_all(&mut object).await.is_empty());
}

#[tokio::test]
async fn an_origin_without_ranges_is_read_once() {
    let body = noise(30 * BLOCK as usize + 9, 6);
    let server = Server::new(body.clone());
    server.behave(|manners| manners.ignores_ranges = true);
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(read_all(&mut object).await, body);
    assert_eq!(server.ranges().len(), 1, "one request brought all of it");
    assert_eq!(object.counts().from_origin, body.len() as u64);
    let tail = body.len() as u64 - 10;
    assert_eq!(object.bytes(tail..tail + 10).await.expect("bytes"), body[tail as usize..]);
    assert_eq!(server.ranges().len(), 1);
}

#[tokio::test]
async fn an_object_of_unknown_length_is_read_whole() {
    let body = noise(200_000, 7);
    let server = Server::new(body.clone());
    server.behave(|manners| (manners.ignores_ranges, manners.unmeasured) = (true, true));
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!((object.len(), object.key()), (body.len() as u64, None));
    assert_eq!(read_all(&mut object).await, body);
    assert_eq!(object.bytes(10..20).await.expect("bytes"), body[10..20]);
    assert_eq!(server.asked().len(), 1);

    let place = Place::new(quick().max_unsized_len(100_000));
    let error = place.cache.object(&server.url("/a")).await.expect_err("too long");
    assert!(matches!(error, Error::Response { .. }), "{error}");
}

#[tokio::test]
async fn without_a_validator_bytes_are_passed_on() {
    let body = noise(30 * BLOCK as usize, 8);
    let server = Server::new(body.clone());
    server.behave(|manners| manners.etag = Some("W/\"weak\"".into()));
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!((object.validator(), object.key()), (None, None));
    for _ in 0..2 {
        object.seek(SeekFrom::Start(10)).await.expect("a place");
        assert_eq!(read_all(&mut object).await, body[10..]);
    }
    assert_eq!(server.ranges().len(), 2, "one request each");
    assert!(place.cache.chunks().expect("a folder").list().is_empty());
}

#[tokio::test]
async fn times_are_validators_if_they_lie_back() {
    let body = noise(3 * BLOCK as usize, 9);
    let server = Server::new(body.clone());
    let date = |second| Some(format!("Sun, 06 Nov 1994 08:49:{second:02} GMT"));
    server.behave(|manners| {
        (manners.etag, manners.modified, manners.date) = (None, date(10), date(11));
    });
    let place = Place::new(quick());
    let fresh = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(fresh.key(), None, "it may be written again within the same second");
    server.behave(|manners| manners.date = date(20));
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.validator(), date(10).as_deref());
    assert_eq!(read_all(&mut object).await, body);
    server.behave(|manners| manners.modified = date(15));
    place.cache.chunks().expect("a folder").clear().expect("an empty cache");
    let error = object.bytes(0..10).await.expect_err("it changed");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn an_origin_that_is_believed_is_not_asked_again() {
    let server = Server::new(noise(BLOCK as usize, 10));
    let place = Place::new(quick().believe(std::time::Duration::from_hours(1)));
    for _ in 0..3 {
        let object = place.cache.object(&server.url("/a")).await.expect("an object");
        object.bytes(0..10).await.expect("bytes");
    }
    assert_eq!(server.asked().len(), 2, "one opening, one block");
}
