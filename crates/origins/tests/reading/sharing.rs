//! Readers of the same bytes at the same time, and readers that go.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::Error;
use std::sync::Arc;
use tokio::io::AsyncReadExt;

/// Begins reads of ranges, and answers when all of them have begun and wait for the origin.
type Reads = Vec<tokio::task::JoinHandle<Result<bytes::Bytes, Error>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_gap_is_one_request_however_many_want_it() {
    let body = noise(8 * BLOCK as usize, 1);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let url = server.url("/a");
    server.behave(|manners| manners.held = true);
    let mut reads: Reads = Vec::new();
    for _ in 0..16 {
        // Opened each by itself, as by strangers.
        let object = place.cache.object(&url).await.expect("an object");
        reads.push(tokio::spawn(async move { object.bytes(0..8 * BLOCK).await }));
    }
    server.wait_for(1, 1);
    server.behave(|manners| manners.held = false);
    for read in reads {
        assert_eq!(read.await.expect("a task").expect("bytes"), body);
    }
    assert_eq!(server.ranges(), std::slice::from_ref(&(0..8 * BLOCK)));
    let counts = place.cache.counts();
    assert_eq!(counts.from_origin, body.len() as u64, "one of them had it fetched");
    assert_eq!(counts.read(), 16 * body.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_goes_does_not_take_it_from_the_others() {
    let body = noise(8 * BLOCK as usize, 2);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.held = true);
    let first = tokio::spawn({
        let object = object.clone();
        async move { object.bytes(0..8 * BLOCK).await }
    });
    server.wait_for(1, 1);
    let others: Reads = (0..4)
        .map(|_| {
            let object = object.clone();
            tokio::spawn(async move { object.bytes(0..8 * BLOCK).await })
        })
        .collect();
    first.abort();
    assert!(first.await.expect_err("it was told to go").is_cancelled());
    server.behave(|manners| manners.held = false);
    for other in others {
        assert_eq!(other.await.expect("a task").expect("bytes"), body);
    }
}

#[tokio::test]
async fn a_reader_that_is_not_polled_holds_up_nobody() {
    let body = noise(8 * BLOCK as usize, 6);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.held = true);
    let mut stopped = object.stream(0..8 * BLOCK).expect("a stream");
    // Polled until its request is on its way, and never again.
    while server.ranges().is_empty() {
        let next = stopped.next();
        let _ = tokio::time::timeout(std::time::Duration::from_millis(1), next).await;
    }
    let other = tokio::spawn({
        let object = object.clone();
        async move { object.bytes(0..8 * BLOCK).await }
    });
    server.behave(|manners| manners.held = false);
    assert_eq!(other.await.expect("a task").expect("bytes"), body);
    drop(stopped);
}

#[tokio::test]
async fn an_error_reaches_all_who_wait() {
    let server = Server::new(noise(8 * BLOCK as usize, 3));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.behave(|manners| manners.held = true);
    let reads: Reads = (0..4)
        .map(|_| {
            let object = object.clone();
            tokio::spawn(async move { object.bytes(0..BLOCK).await })
        })
        .collect();
    while server.ranges().is_empty() {
        tokio::task::yield_now().await;
    }
    server.behave(|manners| {
        manners.held = false;
        manners.statuses = vec![404; 100].into();
    });
    for read in reads {
        let error = read.await.expect("a task").expect_err("nothing there");
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
}

#[tokio::test]
async fn dropping_a_reader_ends_what_was_read_ahead() {
    let body = noise(64 * BLOCK as usize, 4);
    let server = Server::new(body.clone());
    let place = Place::new(quick().max_requests(1));
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    let mut start = vec![0; 4 * BLOCK as usize];
    object.read_exact(&mut start).await.expect("the start");
    server.behave(|manners| manners.held = true);
    let mut more = vec![0; BLOCK as usize];
    let _ = tokio::time::timeout(std::time::Duration::from_millis(1), object.read_exact(&mut more))
        .await;
    drop(object);
    let asked = server.ranges().len();
    server.behave(|manners| manners.held = false);
    // Others are served, and what was to come for the one that went never does.
    let other = place.cache.object(&server.url("/a")).await.expect("an object");
    let last = 63 * BLOCK..64 * BLOCK;
    assert_eq!(other.bytes(last.clone()).await.expect("bytes"), body[last.start as usize..]);
    assert!(server.ranges().len() <= asked + 2, "{:?}", server.ranges());
}

#[test]
fn threads_share_too() {
    let body = Arc::new(noise(32 * BLOCK as usize, 5));
    let server = Server::new(body.to_vec());
    let place = Place::new(quick());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let object = place.cache.object_blocking(&server.url("/a")).expect("an object");
                let mut all = vec![0; body.len()];
                assert_eq!(object.read_at(0, &mut all).expect("bytes"), all.len());
                assert_eq!(all, **body);
            });
        }
    });
    let fetched: u64 = server.ranges().iter().map(|range| range.end - range.start).sum();
    assert_eq!(fetched, body.len() as u64, "every block came once");
}
