//! Tests clients that send requests and never read.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, TRIES, ask, clients, get, set};
use nuthatch_cache::Eviction;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// The maximum of bytes that the server may read of requests whose replies are not read.
const MAX_READ: usize = 16 << 20;

/// The number of requests of other clients that are answered without the server reading a byte of a
/// client, after which it has stopped reading.
const MIN_OTHER_REPLIES: usize = 30;

/// Sends requests until the server reads no more. Returns how many bytes of requests it read.
fn flood(subject: &Subject, stream: &mut TcpStream, request: &[u8]) -> usize {
    stream.set_nonblocking(true).expect("a socket");
    let (mut sent, mut blocked) = (0, 0);
    while blocked < MIN_OTHER_REPLIES {
        match stream.write(&request[sent % request.len()..]) {
            Ok(len) => (sent, blocked) = (sent + len, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                blocked += 1;
                subject.is_well();
            }
            // When connections use much memory, those with waiting requests are closed.
            Err(error) if is_end(&error) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(sent < MAX_READ, "the server reads on");
    }
    stream.set_nonblocking(false).expect("a socket");
    sent
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Connects with small socket buffers.
fn connect(subject: &Subject, listener: usize) -> TcpStream {
    let stream = subject.connect(listener);
    set_socket_recv_buffer_size(&stream, 64 << 10).expect("a socket");
    set_socket_send_buffer_size(&stream, 64 << 10).expect("a socket");
    stream
}

/// At the end the clients read: every reply arrives, and the request that was sent in part is
/// completed.
#[test]
fn the_server_does_not_read_from_a_client_that_does_not_read() {
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
fn clients_that_disconnect_without_reading_leave_no_memory_behind() {
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
        // The memory that a round uses is kept for the next round, and does not grow: buffers of
        // replies, of any length up to now, up to a part of the memory.
        let memory = subject.cache.stats().memory;
        let before = *before.get_or_insert(memory);
        assert!(
            memory <= before + subject.cache.memory() / 64 + (64 << 10),
            "{before} bytes grew to {memory}"
        );
    }
}

/// Measured with a second connection: a slow client does not slow down another one.
#[test]
fn other_clients_are_served_while_many_do_not_read() {
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
    // One client that has sent half a request, and one that disconnects.
    streams.truncate(10);
    subject.is_well();
}

/// Requests a value again and again, and reads nothing.
fn ask_without_reading(subject: &Subject, key: &str, times: usize) -> TcpStream {
    let mut stream = connect(subject, RESP);
    stream.write_all(&get(RESP, key, b"").0.repeat(times)).expect("sent");
    stream
}

/// Waits until the output of clients has item references, or until it has none.
fn wait_for_item_refs(subject: &Subject, some: bool) {
    while (subject.cache.stats().memory_referenced > 0) != some {
        std::thread::yield_now();
    }
}

/// Reads to the end, and returns the number of bytes.
fn rest(mut stream: TcpStream) -> usize {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes.len()
}

const LONG: usize = 20 << 20;

#[test]
fn a_killed_client_that_does_not_read_is_closed_at_once() {
    for threads in [1, 2] {
        let subject = Subject::with(64 << 20, Eviction::S3Fifo, threads);
        let mut control = subject.connect(RESP);
        let (request, stored) = set(RESP, "k", &vec![b'v'; LONG]);
        ask(&mut control, &request, stored);
        let streams: Vec<_> = (0..2).map(|_| ask_without_reading(&subject, "k", 1)).collect();
        wait_for_item_refs(&subject, true);
        assert!((0..TRIES).any(|_| clients(&mut control) == 3), "both are connected");
        ask(&mut control, b"CLIENT KILL TYPE normal SKIPME yes\r\n", b":2\r\n");
        wait_for_item_refs(&subject, false);
        // A value as long as those fits again.
        ask(&mut control, &request, stored);
        for stream in streams {
            assert!(rest(stream) < LONG, "what the kernel had is dropped, too");
        }
        subject.is_well();
    }
}

#[test]
fn a_client_beyond_an_output_limit_is_closed() {
    for (is_kept, seconds, limit) in [
        (false, 1, "hard-limit 1mb"),
        (true, 1, "soft-limit 1mb"),
        // `off` in a settings file.
        (false, 0, "soft-limit 1mb"),
    ] {
        let subject = Subject::new();
        let mut control = subject.connect(RESP);
        let (request, stored) = set(RESP, "k", &vec![b'v'; LONG]);
        ask(&mut control, &request, stored);
        let seconds = format!("client-output-soft-seconds {seconds}");
        let limit = format!("CONFIG SET {seconds} client-output-{limit}\r\n");
        ask(&mut control, limit.as_bytes(), b"+OK\r\n");
        let stream = ask_without_reading(&subject, "k", 1);
        if is_kept {
            wait_for_item_refs(&subject, true);
        }
        wait_for_item_refs(&subject, false);
        assert!(rest(stream) < LONG);
        // Shorter replies are within the limit.
        ask(&mut control, b"GETRANGE k 0 3\r\n", b"$4\r\nvvvv\r\n");
        subject.is_well();
    }
}

/// A long reply counts as a whole as soon as it is written.
#[test]
fn a_client_that_reads_at_once_is_closed_for_a_value_beyond_the_hard_limit() {
    for listener in [RESP, MEMCACHE] {
        let subject = Subject::new();
        let mut control = subject.connect(RESP);
        ask(&mut control, b"CONFIG SET client-output-hard-limit 1mb\r\n", b"+OK\r\n");
        let (short, long) = (vec![b'v'; 1_000_000], vec![b'v'; LONG]);
        for (key, value) in [("short", &short), ("long", &long)] {
            let (request, stored) = set(RESP, key, value);
            ask(&mut control, &request, stored);
        }
        let mut client = subject.connect(listener);
        let (request, answer) = get(listener, "short", &short);
        for _ in 0..5 {
            ask(&mut client, &request, &answer);
        }
        let (request, answer) = get(listener, "long", &long);
        client.write_all(&request).expect("sent");
        let len = rest(client);
        assert!(len <= answer.len() - long.len(), "{len} bytes were sent");
        subject.is_well();
    }
}

/// Each client has the value twice in its output, and the value is in memory once.
#[test]
fn an_unread_value_of_many_clients_counts_once() {
    for threads in [1, 2] {
        let subject = Subject::with(64 << 20, Eviction::S3Fifo, threads);
        let mut control = subject.connect(RESP);
        let (request, stored) = set(RESP, "k", &vec![b'v'; 1 << 20]);
        ask(&mut control, &request, stored);
        let streams: Vec<_> = (0..200).map(|_| ask_without_reading(&subject, "k", 20)).collect();
        while subject.cache.stats().memory_referenced < 100 << 20 {
            subject.is_well();
        }
        for number in 0..100 {
            let (request, stored) = set(RESP, &number.to_string(), &vec![b'w'; 500_000]);
            ask(&mut control, &request, stored);
            subject.is_well();
        }
        ask(&mut control, b"CLIENT LIST TYPE master\r\n", b"$0\r\n\r\n");
        drop((streams, control));
        subject.wait_until_alone();
    }
}

/// All memory is used by values that have been replaced, and that the output of clients keeps which
/// do not read.
#[test]
fn a_write_is_not_refused_because_of_unread_output() {
    // Without eviction, all keys that are written must fit.
    let all = [(Eviction::S3Fifo, 1, 60), (Eviction::S3Fifo, 2, 60), (Eviction::None, 1, 50)];
    for (eviction, threads, keys) in all.into_iter().chain([(Eviction::None, 2, 50)]) {
        let subject = Subject::with(64 << 20, eviction, threads);
        let mut control = subject.connect(RESP);
        let key = |number: usize| format!("k:{number}");
        for number in 0..50 {
            let (request, stored) = set(RESP, &key(number), &vec![b'v'; 900_000]);
            ask(&mut control, &request, stored);
        }
        let streams: Vec<_> =
            (0..50).map(|number| ask_without_reading(&subject, &key(number), 20)).collect();
        while subject.cache.stats().memory_referenced < 40 * 900_000 {
            subject.answers();
        }
        for number in 0..200 {
            let (request, stored) = set(RESP, &key(number % keys), &vec![b'w'; 900_000]);
            ask(&mut control, &request, stored);
            subject.is_well();
        }
        drop((streams, control));
        subject.wait_until_alone();
        assert_eq!(subject.cache.retained_bytes(), 0);
    }
}

/// Stores eight values of 5 MiB and removes them while the output of clients keeps them: the
/// buffers of a connection's two sockets hold little more than 4 MiB, `tcp_wmem` of Linux. Returns
/// the clients, which read nothing.
fn keep_removed_values(subject: &Subject, control: &mut TcpStream) -> Vec<TcpStream> {
    const LEN: usize = 5 << 20;
    let streams = (1..=8).map(|number| {
        let (request, stored) = set(RESP, "kept", &vec![b'v'; LEN]);
        ask(control, &request, stored);
        let stream = ask_without_reading(subject, "kept", 1);
        while subject.cache.stats().memory_referenced < (number * LEN) as u64 {
            subject.answers();
        }
        ask(control, b"DEL kept\r\n", b":1\r\n");
        stream
    });
    streams.collect()
}

/// Returns the head of a request that stores a value of this length.
fn head(listener: usize, len: usize) -> (Vec<u8>, &'static [u8]) {
    if listener == RESP {
        let head = format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${len}\r\n");
        (head.into_bytes(), b"+OK\r\n")
    } else {
        (format!("set big 0 0 {len}\r\n").into_bytes(), b"STORED\r\n")
    }
}

#[test]
fn a_long_value_that_is_being_received_waits_while_clients_that_do_not_read_are_closed() {
    const LEN: usize = 24 << 20;
    for threads in [1, 2] {
        for listener in [RESP, MEMCACHE] {
            let subject = Subject::with(64 << 20, Eviction::S3Fifo, threads);
            let mut control = subject.connect(RESP);
            let mut stream = subject.connect(listener);
            let (head, stored) = head(listener, LEN);
            stream.write_all(&[&head[..], &[b'x'; 1000]].concat()).expect("sent");
            while subject.cache.pending_bytes() == 0 {
                subject.answers();
            }
            let streams = keep_removed_values(&subject, &mut control);
            ask(&mut stream, &[&vec![b'x'; LEN - 1000][..], b"\r\n"].concat(), stored);
            ask(&mut control, b"STRLEN big\r\n", format!(":{LEN}\r\n").as_bytes());
            let (request, answer) = set(listener, "next", b"v");
            ask(&mut stream, &request, answer);
            drop((streams, stream, control));
            subject.wait_until_alone();
            subject.is_well();
        }
    }
}

/// The value is complete, and the command that uses it finds no memory.
#[test]
fn a_command_with_a_long_value_waits_while_clients_that_do_not_read_are_closed() {
    const LEN: usize = 4 << 20;
    let subject = Subject::with(64 << 20, Eviction::None, 1);
    let mut control = subject.connect(RESP);
    let (request, stored) = set(RESP, "old", &vec![b'v'; 8 << 20]);
    ask(&mut control, &request, stored);
    let mut stream = subject.connect(RESP);
    let head = format!("*3\r\n$6\r\nAPPEND\r\n$3\r\nold\r\n${LEN}\r\n");
    stream.write_all(&[head.as_bytes(), &vec![b'x'; LEN - 1000]].concat()).expect("sent");
    while subject.cache.stats().memory_large < (LEN + (8 << 20)) as u64 - 100_000 {
        subject.answers();
    }
    let _streams = keep_removed_values(&subject, &mut control);
    let answer = format!(":{}\r\n+PONG\r\n", LEN + (8 << 20));
    ask(&mut stream, &[&[b'x'; 1000][..], b"\r\nPING\r\n"].concat(), answer.as_bytes());
    subject.is_well();
}

/// Empty lines, which have no reply, are where the server looks for the next request.
#[test]
fn no_request_is_lost_after_one_that_waits_for_memory() {
    let subject = Subject::with(64 << 20, Eviction::None, 1);
    let mut control = subject.connect(RESP);
    let _streams = keep_removed_values(&subject, &mut control);
    let mut stream = subject.connect(RESP);
    for number in 0..50 {
        let (request, stored) = set(RESP, &format!("n:{number}"), &vec![b'w'; 900_000]);
        let request = [&request[..], &b"PING\r\n".repeat(63), b"\r\n", b"PING\r\n"].concat();
        ask(&mut stream, &request, &[stored, &b"+PONG\r\n".repeat(64)].concat());
    }
    subject.is_well();
}
