//! Concurrent readers of the same bytes, some of which are cancelled.

use crate::server::{Server, noise};
use crate::{BLOCK, Place, quick};
use nuthatch_origins::Error;
use std::sync::Arc;
use tokio::io::AsyncReadExt;

/// Reads in progress.
type Reads = Vec<tokio::task::JoinHandle<Result<bytes::Bytes, Error>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_reads_of_one_range_are_one_request() {
    let body = noise(8 * BLOCK as usize, 1);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let url = server.url("/a");
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let mut reads: Reads = Vec::new();
    for _ in 0..16 {
        // Each reader opens the object itself.
        let object = place.cache.object(&url).await.expect("an object");
        reads.push(tokio::spawn(async move { object.bytes(0..8 * BLOCK).await }));
    }
    server.wait_for_requests(1, 1);
    server.configure(|behaviour| behaviour.holds_bodies = false);
    for read in reads {
        assert_eq!(read.await.expect("a task").expect("bytes"), body);
    }
    assert_eq!(server.ranges(), std::slice::from_ref(&(0..8 * BLOCK)));
    let counts = place.cache.counts();
    assert_eq!(counts.from_origin, body.len() as u64, "one read fetched it");
    assert_eq!(counts.read(), 16 * body.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_read_does_not_cancel_the_fetch_of_others() {
    let body = noise(8 * BLOCK as usize, 2);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let first = tokio::spawn({
        let object = object.clone();
        async move { object.bytes(0..8 * BLOCK).await }
    });
    server.wait_for_requests(1, 1);
    let others: Reads = (0..4)
        .map(|_| {
            let object = object.clone();
            tokio::spawn(async move { object.bytes(0..8 * BLOCK).await })
        })
        .collect();
    first.abort();
    assert!(first.await.expect_err("a cancelled task").is_cancelled());
    server.configure(|behaviour| behaviour.holds_bodies = false);
    for other in others {
        assert_eq!(other.await.expect("a task").expect("bytes"), body);
    }
}

#[tokio::test]
async fn a_reader_that_is_not_polled_does_not_block_others() {
    let body = noise(8 * BLOCK as usize, 6);
    let server = Server::new(body.clone());
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let mut stopped = object.stream(0..8 * BLOCK).expect("a stream");
    // Polled until the origin has its request, then never again.
    while server.ranges().is_empty() {
        let next = stopped.next();
        let _ = tokio::time::timeout(std::time::Duration::from_millis(1), next).await;
    }
    let other = tokio::spawn({
        let object = object.clone();
        async move { object.bytes(0..8 * BLOCK).await }
    });
    server.configure(|behaviour| behaviour.holds_bodies = false);
    assert_eq!(other.await.expect("a task").expect("bytes"), body);
    drop(stopped);
}

#[tokio::test]
async fn an_error_is_returned_to_all_waiting_reads() {
    let server = Server::new(noise(8 * BLOCK as usize, 3));
    let place = Place::new(quick());
    let object = place.cache.object(&server.url("/a")).await.expect("an object");
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let reads: Reads = (0..4)
        .map(|_| {
            let object = object.clone();
            tokio::spawn(async move { object.bytes(0..BLOCK).await })
        })
        .collect();
    while server.ranges().is_empty() {
        tokio::task::yield_now().await;
    }
    server.configure(|behaviour| {
        behaviour.holds_bodies = false;
        behaviour.statuses = vec![404; 100].into();
    });
    for read in reads {
        let error = read.await.expect("a task").expect_err("no object");
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
}

#[tokio::test]
async fn dropping_a_reader_ends_its_read_ahead() {
    let body = noise(64 * BLOCK as usize, 4);
    let server = Server::new(body.clone());
    let place = Place::new(quick().max_requests(1));
    let mut object = place.cache.object(&server.url("/a")).await.expect("an object");
    let mut start = vec![0; 4 * BLOCK as usize];
    object.read_exact(&mut start).await.expect("the start");
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let mut more = vec![0; BLOCK as usize];
    let _ = tokio::time::timeout(std::time::Duration::from_millis(1), object.read_exact(&mut more))
        .await;
    drop(object);
    let before = server.ranges().len();
    server.configure(|behaviour| behaviour.holds_bodies = false);
    // Another reader gets its bytes, and the rest of the read-ahead is not fetched.
    let other = place.cache.object(&server.url("/a")).await.expect("an object");
    let last = 63 * BLOCK..64 * BLOCK;
    assert_eq!(other.bytes(last.clone()).await.expect("bytes"), body[last.start as usize..]);
    assert!(server.ranges().len() <= before + 2, "{:?}", server.ranges());
}

#[test]
fn threads_share_fetches() {
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
    assert_eq!(fetched, body.len() as u64, "each block was fetched once");
}
