//! Tests that bytes of a value are never executed as a request, whatever length was announced.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, ask, get, mrcache_set, set};
use std::io::{Read, Write};

/// A key that requests in values would remove or replace.
const KEY: &str = "key:0";

/// Sends a request whose value consists of requests, and more requests after it. Returns what the
/// server sends until the connection ends.
fn answers(subject: &Subject, listener: usize, parts: &[&[u8]]) -> String {
    let mut stream = subject.connect(listener);
    for part in parts {
        // The server may have closed the connection.
        let _ = stream.write_all(part);
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer.escape_ascii().to_string()
}

#[track_caller]
fn keeps_the_key(subject: &Subject, request: &[u8]) {
    let (ask_for, found) = get(RESP, KEY, b"v");
    let mut stream = subject.connect(RESP);
    stream.write_all(&ask_for).expect("sent");
    let mut answer = vec![0; found.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer == found, "{} was executed", request[..request.len().min(60)].escape_ascii());
}

fn with_key() -> Subject {
    let subject = Subject::new();
    let (request, stored) = set(RESP, KEY, b"v");
    ask(&mut subject.connect(RESP), &request, stored);
    subject
}

/// Lines of memcached that store a value, and the reply. The bytes after them look like requests.
#[test]
fn values_of_memcached_with_an_invalid_length_are_not_executed() {
    let subject = with_key();
    let bad = "CLIENT_ERROR bad command line format\\r\\n";
    let error = "ERROR\\r\\n";
    for (line, expected) in [
        ("set k 0 0 -1", bad),
        ("set k 0 0 x", bad),
        ("set k 0 0 1x", bad),
        ("set k 0 0 18446744073709551616", bad),
        ("set k 0 0 noreply", bad),
        ("add k 0 0 99999999999999999999 noreply", bad),
        ("cas k 0 0 -1 7", bad),
        ("set k 0 0", error),
        ("set a key 0 0 40 noreply", error),
        ("cas k 0 0 40", error),
        ("ms", error),
        ("ms k", bad),
        ("ms k T0", bad),
        ("ms k -1 q", bad),
        ("ms k 18446744073709551616", bad),
        ("set k 0 0 3", "CLIENT_ERROR bad data chunk\\r\\n"),
        ("set k 0 0 3 noreply", "CLIENT_ERROR bad data chunk\\r\\n"),
        ("ms k 3", "CLIENT_ERROR bad data chunk\\r\\n"),
    ] {
        let value = format!("\r\ndelete {KEY}\r\nmd {KEY}\r\nflush_all\r\n").repeat(3);
        let parts = [line.as_bytes(), value.as_bytes(), value.as_bytes()];
        assert_eq!(answers(&subject, MEMCACHE, &parts), expected, "{line}");
        assert_eq!(answers(&subject, MEMCACHE, &[&parts.concat()]), expected, "{line}");
        keeps_the_key(&subject, line.as_bytes());
    }
}

#[test]
fn values_of_memcached_of_2_gib_and_more_are_too_large_and_skipped() {
    let subject = with_key();
    for len in
        ["2147483646", "2147483648", "4294967296", "9223372036854775808", "18446744073709551615"]
    {
        for (line, expected) in [
            (format!("set k 0 0 {len}"), "SERVER_ERROR object too large for cache\\r\\n"),
            (format!("add k 0 0 {len} noreply"), ""),
            (format!("ms k {len}"), "SERVER_ERROR object too large for cache\\r\\n"),
            (format!("set k x 0 {len}"), "CLIENT_ERROR bad command line format\\r\\n"),
        ] {
            let value = format!("\r\ndelete {KEY}\r\nmd {KEY}\r\nflush_all\r\n").repeat(1000);
            let parts = [line.as_bytes(), value.as_bytes(), value.as_bytes()];
            assert_eq!(answers(&subject, MEMCACHE, &parts), expected, "{line}");
            keeps_the_key(&subject, line.as_bytes());
        }
    }
}

/// As a client sends it that does not know of a limit.
#[test]
fn a_value_of_2_gib_is_skipped_and_the_connection_stays_open() {
    let subject = Subject::new();
    let mut stream = subject.connect(MEMCACHE);
    let piece = b"flush_all\r\nget k\r\n".repeat(1 << 16);
    let len = 2_u64 << 30;
    ask(
        &mut stream,
        format!("set k 0 0 {len}\r\n").as_bytes(),
        b"SERVER_ERROR object too large for cache\r\n",
    );
    let mut left = len as usize;
    while left > 0 {
        let sent = left.min(piece.len());
        stream.write_all(&piece[..sent]).expect("sent");
        left -= sent;
    }
    ask(&mut stream, b"\r\nmn\r\n", b"MN\r\n");
}

#[test]
fn values_of_resp_beyond_a_limit_are_not_executed() {
    let subject = with_key();
    let inner = format!("\r\nDEL {KEY}\r\n*2\r\n$3\r\nDEL\r\n$5\r\n{KEY}\r\n").repeat(100);
    for len in
        ["-1", "-2147483648", "x", "2147483648", "4294967296", "9999999999", "99999999999999999999"]
    {
        for listener in [RESP, PMC] {
            let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}");
            let parts = [head.as_bytes(), inner.as_bytes(), inner.as_bytes()];
            let answer = answers(&subject, listener, &parts);
            assert!(answer.starts_with("-ERR Protocol error: invalid bulk length"), "{answer}");
            assert_eq!(answer.matches("\\r\\n").count(), 1, "{answer}");
            keeps_the_key(&subject, head.as_bytes());
        }
    }
    // The value is longer than announced.
    let request = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nvv{inner}");
    let answer = answers(&subject, RESP, &[request.as_bytes()]);
    assert_eq!(answer, "-ERR Protocol error: expected CRLF after an argument\\r\\n");
    keeps_the_key(&subject, request.as_bytes());
}

#[test]
fn values_of_poor_mans_cache_and_mrcache_beyond_a_limit_are_not_executed() {
    let subject = with_key();
    let long = vec![b'v'; subject.cache.memory() as usize / 2];
    let inner = format!("\x1fDEL {KEY}\x1f*2\r\n$3\r\nDEL\r\n$5\r\n{KEY}\r\n");
    let answer = answers(&subject, PMC, &[b"SET k ", &long, inner.as_bytes()]);
    assert!(answer.starts_with("ERROR: Request is longer than"), "{answer}");
    assert_eq!(answer.matches("\\x1f").count(), 1, "{answer}");
    keeps_the_key(&subject, b"SET k");
    for len in [subject.cache.max_value_len() as u32, 1 << 31, u32::MAX] {
        let head = [&b"\0\x02\x01\0"[..], &len.to_le_bytes(), b"k"].concat();
        let inner = mrcache_set(KEY.as_bytes(), b"other");
        assert_eq!(answers(&subject, MRCACHE, &[&head, &inner, &inner]), "");
        keeps_the_key(&subject, &head);
    }
}
