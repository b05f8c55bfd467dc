//! Tests many clients that each send a part of a request.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, ask, get, set};
use nuthatch_cache::{Eviction, Options};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;

/// Bytes of an incomplete request: fewer than the limit for one client.
const LEN: usize = 60 << 10;

/// Together the clients send one and a half times the memory of the server.
const CLIENTS: usize = Options::MIN_MEMORY as usize / 2 * 3 / LEN;

/// Allows as many descriptors as both sides of all connections need.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(8192, |max| max.min(8192));
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), ..limit };
        setrlimit(Resource::Nofile, raised).expect("a limit");
    }
}

/// Connects many clients that send `first` and then `next`, which are no complete request. The
/// server must stay within its memory meanwhile, and store values for other clients afterwards.
fn send_incomplete(listener: usize, first: &[u8], next: &[u8]) {
    allow_descriptors();
    let subject = Subject::with(Options::MIN_MEMORY, Eviction::S3Fifo, 2);
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut client = subject.connect(listener);
        // The connection may be closed already.
        let _ = client.write_all(first).and_then(|()| client.write_all(next));
        clients.push(client);
        if number % 16 == 0 {
            subject.is_well();
        }
    }
    subject.is_well();
    for len in [100, 60_000] {
        let value = vec![b'v'; len];
        let mut other = subject.connect(RESP);
        let (request, stored) = set(RESP, "k", &value);
        ask(&mut other, &request, stored);
        let (request, found) = get(RESP, "k", &value);
        ask(&mut other, &request, &found);
    }
    subject.is_well();
    drop(clients);
    subject.wait_until_alone();
}

#[test]
fn incomplete_lines_of_many_clients_stay_within_the_memory() {
    send_incomplete(RESP, b"", &vec![b'x'; LEN]);
}

#[test]
fn incomplete_values_of_many_clients_stay_within_the_memory() {
    for listener in [RESP, MEMCACHE, PMC, MRCACHE] {
        let (request, _) = set(listener, "k", &vec![b'v'; LEN + 1]);
        send_incomplete(listener, b"", &request[..LEN]);
    }
}

/// Regression test: the positions of arguments within the request used memory that was not counted.
#[test]
fn incomplete_requests_with_many_arguments_stay_within_the_memory() {
    send_incomplete(RESP, b"*100000\r\n", &b"$0\r\n\r\n".repeat(LEN / 6));
}

#[test]
fn queued_requests_of_many_clients_stay_within_the_memory() {
    let (request, _) = set(RESP, "k", &vec![b'v'; LEN - 1000]);
    send_incomplete(RESP, b"MULTI\r\n", &request);
}
