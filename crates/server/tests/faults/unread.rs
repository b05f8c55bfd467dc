//! Clients that ask and never read.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, ask, get, set};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;

/// Bytes that the server may read of requests whose answers nobody takes.
const READ_MOST: usize = 16 << 20;

/// How often the server must have answered others while it took no byte of a client, for that to be
/// the end.
const PATIENT: usize = 30;

/// Asks until the server reads no more. Answers how many bytes of requests it took.
fn flood(subject: &Subject, stream: &mut TcpStream, request: &[u8]) -> usize {
    stream.set_nonblocking(true).expect("a socket");
    let (mut sent, mut blocked) = (0, 0);
    while blocked < PATIENT {
        match stream.write(&request[sent % request.len()..]) {
            Ok(len) => (sent, blocked) = (sent + len, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                blocked += 1;
                subject.is_well();
            }
            // When connections take much memory, those with requests that wait are ended.
            Err(error) if is_end(&error) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(sent < READ_MOST, "the server reads on");
    }
    stream.set_nonblocking(false).expect("a socket");
    sent
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// A connection whose sockets hold little.
fn connect(subject: &Subject, listener: usize) -> TcpStream {
    let stream = subject.connect(listener);
    set_socket_recv_buffer_size(&stream, 64 << 10).expect("a socket");
    set_socket_send_buffer_size(&stream, 64 << 10).expect("a socket");
    stream
}

/// Then they read after all: every answer is there, and the request that was in the middle of being
/// sent goes on where it was.
#[test]
fn who_does_not_read_is_not_read_from_until_it_does() {
    let subject = Subject::new();
    let key = "k".repeat(200);
    let value: Vec<u8> = (0..5000_usize).map(|at| b'a' + (at % 26) as u8).collect();
    for listener in [RESP, MEMCACHE, PMC, MRCACHE] {
        let mut stream = connect(&subject, listener);
        let (request, stored) = set(listener, &key, &value);
        ask(&mut stream, &request, stored);
        let (request, answer) = get(listener, &key, &value);
        let sent = flood(&subject, &mut stream, &request);
        for _ in 0..sent / request.len() {
            ask(&mut stream, b"", &answer);
        }
        ask(&mut stream, &request[sent % request.len()..], &answer);
        ask(&mut stream, &request, &answer);
    }
    subject.wait_until_alone();
}

#[test]
fn who_goes_without_reading_leaves_nothing() {
    let subject = Subject::new();
    let key = "k".repeat(200);
    let mut before = None;
    for _ in 0..4 {
        let mut streams = Vec::new();
        for listener in [RESP, MEMCACHE, PMC, MRCACHE].repeat(3) {
            let mut stream = connect(&subject, listener);
            let (request, stored) = set(listener, &key, &[b'v'; 5000]);
            ask(&mut stream, &request, stored);
            let (request, _) = get(listener, &key, b"");
            flood(&subject, &mut stream, &request);
            streams.push(stream);
        }
        drop(streams);
        subject.wait_until_alone();
        // What a round leaves is kept for the next one, and does not grow: buffers of answers, as
        // long as they happened to be, up to a part of the memory.
        let memory = subject.cache.stats().memory;
        let before = *before.get_or_insert(memory);
        assert!(
            memory <= before + subject.cache.memory() / 64 + (64 << 10),
            "{before} bytes grew to {memory}"
        );
    }
}

/// With a second connection to count by: a slow client costs another one nothing.
#[test]
fn others_are_served_while_many_do_not_read() {
    let subject = Subject::new();
    let key = "k".repeat(200);
    let mut streams: Vec<_> = [RESP, MEMCACHE, PMC, MRCACHE]
        .repeat(5)
        .into_iter()
        .map(|listener| {
            let mut stream = connect(&subject, listener);
            let (request, stored) = set(listener, &key, &[b'v'; 5000]);
            ask(&mut stream, &request, stored);
            flood(&subject, &mut stream, &get(listener, &key, b"").0);
            stream
        })
        .collect();
    let mut other = subject.connect(RESP);
    for number in 0..1000 {
        let (request, answer) = set(RESP, "other", number.to_string().as_bytes());
        ask(&mut other, &request, answer);
    }
    // One that has sent half a request, and one that goes.
    streams.truncate(10);
    subject.is_well();
}
