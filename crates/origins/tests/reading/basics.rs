//! Reads return the bytes of the origin, and fetch each block once.

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
async fn the_second_read_comes_from_the_cache() {
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
    assert_eq!(server.ranges().len(), before, "no block was fetched twice");
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
        let error = object.bytes(range).await.expect_err("an invalid range");
        assert!(matches!(error, Error::Range { .. }), "{error}");
    }
    let mut buffer = [0; 200];
    assert_eq!(object.read_at(len - 50, &mut buffer).await.expect("the end"), 50);
    assert_eq!(buffer[..50], body[body.len() - 50..]);
    assert_eq!(object.read_at(len, &mut buffer).await.expect("nothing"), 0);
    assert_eq!(object.read_at(u64::MAX, &mut buffer).await.expect("nothing"), 0);
}

#[tokio::test]
async fn only_missing_blocks_are_fetched() {
    let server = Server::new(noise(16 * BLOCK as usize, 3));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(BLOCK..BLOCK + 1).await.expect("a byte");
    object.bytes(3 * BLOCK..5 * BLOCK).await.expect("two blocks");
    server.clear_requests();
    object.bytes(0..7 * BLOCK).await.expect("the rest");
    let mut ranges = server.ranges();
    ranges.sort_by_key(|range| range.start);
    assert_eq!(ranges, [0..BLOCK, 2 * BLOCK..3 * BLOCK, 5 * BLOCK..7 * BLOCK]);
}

#[tokio::test]
async fn missing_blocks_with_a_small_gap_are_one_request() {
    let body = noise(16 * BLOCK as usize, 3);
    let server = Server::new(body.clone());
    let place = Place::new(quick().max_gap(BLOCK));
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    object.bytes(BLOCK..2 * BLOCK).await.expect("a block");
    object.bytes(3 * BLOCK..5 * BLOCK).await.expect("two blocks");
    server.clear_requests();
    assert_eq!(object.bytes(0..7 * BLOCK).await.expect("the rest"), body[..7 * BLOCK as usize]);
    let mut ranges = server.ranges();
    ranges.sort_by_key(|range| range.start);
    assert_eq!(ranges, [0..3 * BLOCK, 5 * BLOCK..7 * BLOCK]);
}

#[tokio::test]
async fn only_sequential_reads_fetch_ahead() {
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

    server.clear_requests();
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(read_all(&mut object).await, body);
    let lengths: Vec<u64> = server.ranges().iter().map(|range| range.end - range.start).collect();
    assert_eq!(lengths[0], BLOCK, "the first read fetches one block");
    assert_eq!(lengths.iter().sum::<u64>(), body.len() as u64);
    assert!(lengths.iter().any(|len| *len >= 3 * BLOCK), "later requests are longer: {lengths:?}");
}

#[test]
fn blocking_reads_need_no_executor() {
    let body = noise(20 * BLOCK as usize + 5, 5);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    for fetches in [true, false] {
        server.clear_requests();
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
        assert_eq!(!server.ranges().is_empty(), fetches);
    }
}

#[tokio::test]
async fn empty_objects() {
    let server = Server::new(Vec::new());
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert!(object.is_empty());
    assert!(read_all(&mut object).await.is_empty());
    server.configure(|behaviour| behaviour.ignores_ranges = true);
    let mut object = place.cache.object(&server.url("/b")).await.expect("an object");
    assert!(object.is_empty() && read_all(&mut object).await.is_empty());
}

#[tokio::test]
async fn an_origin_without_ranges_gets_one_request() {
    let body = noise(30 * BLOCK as usize + 9, 6);
    let server = Server::new(body.clone());
    server.configure(|behaviour| behaviour.ignores_ranges = true);
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(read_all(&mut object).await, body);
    assert_eq!(server.ranges().len(), 1, "one request fetched the whole object");
    assert_eq!(object.counts().from_origin, body.len() as u64);
    let tail = body.len() as u64 - 10;
    assert_eq!(object.bytes(tail..tail + 10).await.expect("bytes"), body[tail as usize..]);
    assert_eq!(server.ranges().len(), 1);
}

#[tokio::test]
async fn an_object_of_unknown_length_is_read_whole() {
    let body = noise(200_000, 7);
    let server = Server::new(body.clone());
    server.configure(|behaviour| (behaviour.ignores_ranges, behaviour.omits_length) = (true, true));
    let place = Place::new(quick());
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!((object.len(), object.key()), (body.len() as u64, None));
    assert_eq!(read_all(&mut object).await, body);
    assert_eq!(object.bytes(10..20).await.expect("bytes"), body[10..20]);
    assert_eq!(server.requests().len(), 1);

    let place = Place::new(quick().max_unsized_len(100_000));
    let error = place.cache.object(&server.url("/a")).await.expect_err("too long");
    assert!(matches!(error, Error::Response { .. }), "{error}");
}

#[tokio::test]
async fn bytes_without_a_validator_are_not_cached() {
    let body = noise(30 * BLOCK as usize, 8);
    let server = Server::new(body.clone());
    server.configure(|behaviour| behaviour.etag = Some("W/\"weak\"".into()));
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
async fn a_modification_time_is_a_validator_if_it_is_old_enough() {
    let body = noise(3 * BLOCK as usize, 9);
    let server = Server::new(body.clone());
    let date = |second| Some(format!("Sun, 06 Nov 1994 08:49:{second:02} GMT"));
    server.configure(|behaviour| {
        (behaviour.etag, behaviour.modified, behaviour.date) = (None, date(10), date(11));
    });
    let place = Place::new(quick());
    let fresh = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(fresh.key(), None, "a second write may have the same time");
    server.configure(|behaviour| behaviour.date = date(20));
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    assert_eq!(object.validator(), date(10).as_deref());
    assert_eq!(read_all(&mut object).await, body);
    server.configure(|behaviour| behaviour.modified = date(15));
    place.cache.chunks().expect("a folder").clear().expect("an empty cache");
    let error = object.bytes(0..10).await.expect_err("it changed");
    assert!(matches!(error, Error::Changed { .. }), "{error}");
}

#[tokio::test]
async fn within_max_age_an_object_is_opened_without_a_check() {
    let server = Server::new(noise(BLOCK as usize, 10));
    let place = Place::new(quick().max_age(std::time::Duration::from_hours(1)));
    for _ in 0..3 {
        let object = place.cache.object(&server.url("/a")).await.expect("an object");
        object.bytes(0..10).await.expect("bytes");
    }
    assert_eq!(server.requests().len(), 2, "one check, one block");
}
