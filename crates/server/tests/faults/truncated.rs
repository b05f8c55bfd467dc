//! Tests requests that end at any byte.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, framed, mrcache_get, mrcache_set, printable};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

type Exchange = (Vec<u8>, &'static [u8]);

/// Returns requests of each protocol with their replies. Each list begins with requests that make
/// the replies after them the same every time.
fn exchanges(listener: usize) -> Vec<Exchange> {
    let text =
        |request: &str, answer: &'static str| (request.as_bytes().to_vec(), answer.as_bytes());
    match listener {
        RESP => vec![
            (framed(&[b"SET", b"k", b"v\r\n$"]), b"+OK\r\n"),
            (framed(&[b"GET", b"k"]), b"$4\r\nv\r\n$\r\n"),
            text("\r\n", ""),
            text("*0\r\n", ""),
            text("get 'k'\r\n", "$4\r\nv\r\n$\r\n"),
            (framed(&[b"DEL", b"k", b"other"]), b":1\r\n"),
            (
                framed(&[b"NOTHING"]),
                b"-ERR unknown command 'NOTHING', with args beginning with: \r\n",
            ),
            (framed(&[b"PING", &[b'x'; 300]]), PING_300),
        ],
        MEMCACHE => vec![
            text("set k 7 0 5\r\nv\r\n$\n\r\n", "STORED\r\n"),
            text("get k none\r\n", "VALUE k 7 5\r\nv\r\n$\n\r\nEND\r\n"),
            text("mg k v f\r\n", "VA 5 f7\r\nv\r\n$\n\r\n"),
            text("ms k 2 T0 q\r\nab\r\n", ""),
            text("append k 0 0 1 noreply\r\nc\r\n", ""),
            text("mg k v\n", "VA 3\r\nabc\r\n"),
            text("delete k\r\n", "DELETED\r\n"),
            text("set k 0 0 1\r\n1\r\n", "STORED\r\n"),
            text("incr k 41\r\n", "42\r\n"),
            text("nothing\r\n", "ERROR\r\n"),
            text("mn\r\n", "MN\r\n"),
        ],
        PMC => vec![
            text("SET k v v\x1f", "OK\x1f"),
            text("\x1f\x1f", ""),
            text("GET k\x1f", "v v\x1f"),
            (framed(&[b"GET", b"k"]), b"$3\r\nv v\r\n"),
            text("DEL k\x1f", "OK\x1f"),
            text("NOTHING\x1f", "ERROR: Unable to parse request\x1f"),
        ],
        _ => vec![
            (mrcache_set(b"k", b"value"), b""),
            (mrcache_get(b"k"), b"\x05\0\0\0value"),
            (mrcache_set(b"", b""), b""),
            (mrcache_get(b"none"), b"\0\0\0\0"),
            (vec![0, 5], b""),
            (mrcache_get(b"k"), b"\x05\0\0\0value"),
        ],
    }
}

const PING_300: &[u8] = {
    const LEN: usize = 300 + 8;
    const fn make() -> [u8; LEN] {
        let mut bytes = [b'x'; LEN];
        let mut at = 0;
        while at < 6 {
            bytes[at] = b"$300\r\n"[at];
            at += 1;
        }
        (bytes[LEN - 2], bytes[LEN - 1]) = (b'\r', b'\n');
        bytes
    }
    &make()
};

/// Returns the replies to the requests that are complete in the first `len` bytes.
fn answers(exchanges: &[Exchange], len: usize) -> Vec<u8> {
    let mut end = 0;
    let mut whole = exchanges.iter().take_while(|(request, _)| {
        end += request.len();
        end <= len
    });
    whole.by_ref().flat_map(|(_, answer)| answer.to_vec()).collect()
}

fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut found = Vec::new();
    stream.read_to_end(&mut found).expect("answers, then the end");
    found
}

/// Complete requests are answered, and the rest has no effect.
#[test]
fn requests_may_end_at_every_byte() {
    let subject = Subject::new();
    for listener in [RESP, MEMCACHE, PMC, MRCACHE] {
        let exchanges = exchanges(listener);
        let bytes: Vec<u8> = exchanges.iter().flat_map(|one| one.0.clone()).collect();
        for len in 0..=bytes.len() {
            let mut stream = subject.connect(listener);
            stream.write_all(&bytes[..len]).expect("sent");
            stream.shutdown(Shutdown::Write).expect("a socket");
            let found = read_all(&mut stream);
            let expected = answers(&exchanges, len);
            assert_eq!(printable(&found), printable(&expected), "listener {listener}, {len} bytes");
        }
    }
    subject.wait_until_alone();
}

/// The same, and the client does not wait for the replies: some connections are reset by that.
#[test]
fn connections_may_be_closed_at_every_byte() {
    let subject = Subject::new();
    for listener in [RESP, MEMCACHE, PMC, MRCACHE] {
        let bytes: Vec<u8> = exchanges(listener).iter().flat_map(|one| one.0.clone()).collect();
        for len in 0..=bytes.len() {
            subject.connect(listener).write_all(&bytes[..len]).expect("sent");
        }
        subject.is_well();
    }
    subject.wait_until_alone();
}

/// In two pieces, of which the second is sent after the reply to the first, if any.
#[test]
fn requests_may_pause_at_every_byte() {
    let subject = Subject::new();
    for listener in [RESP, MEMCACHE, PMC, MRCACHE] {
        let exchanges = exchanges(listener);
        let bytes: Vec<u8> = exchanges.iter().flat_map(|one| one.0.clone()).collect();
        let all = answers(&exchanges, bytes.len());
        let mut stream = subject.connect(listener);
        for len in 0..=bytes.len() {
            let first = answers(&exchanges, len);
            crate::ask(&mut stream, &bytes[..len], &first);
            crate::ask(&mut stream, &bytes[len..], &all[first.len()..]);
        }
    }
}
