//! Tests values that are longer than a limit: the reply names the limit, and a client that sends
//! all of such a value before it reads can read the reply.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, ask, get, printable, set};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Returns the error for a value of this length.
fn too_long(len: usize, max: usize, limit: &str) -> String {
    let text = "-ERR Protocol error: invalid bulk length";
    format!("{text}: {len} bytes exceed the limit of {max} ({limit})\r\n")
}

/// Sends a request to its end, as `redis-cli -x` does, then reads all replies.
#[track_caller]
fn send_then_read(stream: &mut TcpStream, request: &[u8], expected: &str) {
    stream.write_all(request).expect("the server takes all of it");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer, then the end");
    assert_eq!(printable(&answer), printable(expected.as_bytes()));
}

#[test]
fn a_client_that_sends_an_over_long_value_to_its_end_reads_which_limit_refused_it() {
    let subject = Subject::new();
    let memory_limit = subject.cache.max_value_len();
    let value = vec![b'v'; 2 * memory_limit];
    let (request, _) = set(RESP, "k", &value);
    let expected = too_long(value.len(), memory_limit, "5/8 of maxmemory");
    send_then_read(&mut subject.connect(RESP), &request, &expected);

    ask(&mut subject.connect(RESP), b"CONFIG SET proto-max-bulk-len 1048576\r\n", b"+OK\r\n");
    let expected = too_long(value.len(), 1 << 20, "proto-max-bulk-len");
    send_then_read(&mut subject.connect(RESP), &request, &expected);
    // The same in messages of poor-man's-cache.
    send_then_read(&mut subject.connect(PMC), &request, &expected);
    subject.wait_until_alone();
    subject.is_well();
}

#[test]
fn lengths_beyond_32_bits_name_the_limit_too() {
    let subject = Subject::new();
    let max = subject.cache.max_value_len();
    for len in [4_294_967_296_usize, 9_223_372_036_854_775_807] {
        let expected = too_long(len, max, "5/8 of maxmemory");
        let request = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}\r\n");
        let mut stream = subject.connect(RESP);
        ask(&mut stream, request.as_bytes(), expected.as_bytes());
    }
}

#[test]
fn a_client_of_poor_mans_cache_that_sends_too_much_reads_the_reply() {
    let subject = Subject::new();
    let value = vec![b'v'; 2 * subject.cache.max_value_len()];
    let (request, _) = set(PMC, "k", &value);
    let max = subject.cache.memory() as usize / 8 * 3 + nuthatch_cache::Cache::MAX_KEY_LEN + 5;
    let expected = format!("ERROR: Request is longer than {max} bytes (3/8 of maxmemory)\x1f");
    send_then_read(&mut subject.connect(PMC), &request, &expected);
    subject.is_well();
}

#[test]
fn a_client_of_memcached_continues_after_an_over_long_value() {
    let subject = Subject::new();
    let value = vec![b'v'; 2 * subject.cache.max_value_len()];
    let mut stream = subject.connect(MEMCACHE);
    let (request, _) = set(MEMCACHE, "k", &value);
    ask(&mut stream, &request, b"SERVER_ERROR object too large for cache\r\n");
    let line = [&b"set "[..], &[b'x'; 4096]].concat();
    send_then_read(&mut stream, &[line, value].concat(), "CLIENT_ERROR line too long\r\n");
}

#[test]
fn a_value_that_would_grow_beyond_a_limit_names_it() {
    let subject = Subject::new();
    let longest = vec![b'v'; subject.cache.max_value_len()];
    let mut stream = subject.connect(RESP);
    let (request, stored) = set(RESP, "k", &longest);
    ask(&mut stream, &request, stored);
    let refusal = |limit| format!("-ERR string exceeds maximum allowed size ({limit})\r\n");
    ask(&mut stream, b"APPEND k x\r\n", refusal("5/8 of maxmemory").as_bytes());
    let request = format!("SETRANGE new {} x\r\n", longest.len());
    ask(&mut stream, request.as_bytes(), refusal("5/8 of maxmemory").as_bytes());
    let request = b"SETRANGE k 1099511627776 x\r\n";
    ask(&mut stream, request, refusal("proto-max-bulk-len").as_bytes());
}

/// The number of discarded bytes has the limit of the longest request.
#[test]
fn a_client_that_never_ends_its_value_is_closed() {
    const MAX_DISCARDED: usize = 1 << 30;
    /// What the sockets on both sides hold.
    const SLACK: usize = 64 << 20;
    let subject = Subject::new();
    let mut stream = subject.connect(RESP);
    stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9999999999999\r\n").expect("sent");
    let (piece, mut sent) = (vec![b'v'; 1 << 20], 0);
    let error = loop {
        match stream.write(&piece) {
            Ok(len) => sent += len,
            Err(error) => break error,
        }
        assert!(sent < MAX_DISCARDED + SLACK, "the server takes all of it");
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    assert!(sent > MAX_DISCARDED - SLACK, "it was closed after {sent} bytes");
    subject.wait_until_alone();
}

#[test]
fn a_client_that_is_silent_after_an_over_long_value_is_closed() {
    let subject = Subject::new();
    let mut stream = subject.connect(RESP);
    stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9999999999999\r\nvvv").expect("sent");
    // The client reads the end at once, and the connection is removed a little later.
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer, then the end");
    assert!(answer.starts_with(b"-ERR Protocol error: invalid bulk length: 9999999999999 bytes"));
    subject.wait_until_alone();
}

#[test]
fn requests_of_mrcache_after_an_over_long_value_are_not_executed() {
    let subject = Subject::new();
    let len = (subject.cache.max_value_len() as u32 + 1).to_le_bytes();
    let mut stream = subject.connect(MRCACHE);
    let (inner, _) = set(MRCACHE, "k", b"v");
    let _ = stream.write_all(&[&b"\0\x02\x01\0"[..], &len, b"x", &inner].concat());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(printable(&answer), printable(b""));
    let (request, _) = get(MRCACHE, "k", b"");
    ask(&mut subject.connect(MRCACHE), &request, b"\0\0\0\0");
}
