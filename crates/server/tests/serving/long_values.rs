//! Tests values that are sent from the memory of the cache, between replies that are sent from a
//! buffer.

use crate::served::{LOCAL, ask, at, cache, connect_to, with_every_io_backend};
use nuthatch_cache::Cache;
use nuthatch_server::mrcache::Framing;
use nuthatch_server::{IoBackend, Options, Protocol, Running};
use std::io::{Read, Write};
use std::sync::Arc;

with_every_io_backend! {
    long_values_are_returned_in_order_in_every_protocol
    a_long_value_does_not_change_while_it_is_sent
    unread_long_values_are_released
}

const LEN: usize = 5 << 20;

fn value(seed: usize) -> Vec<u8> {
    (0..LEN).map(|at| (at / 251 + seed) as u8 | 0x40).collect()
}

fn server(cache: &Arc<Cache>, io_backend: IoBackend) -> Running {
    let all = [
        (Protocol::Resp, LOCAL),
        (Protocol::Memcache, LOCAL),
        (Protocol::Pmc, LOCAL),
        (Protocol::Mrcache(Framing::Len4), LOCAL),
    ];
    let options = Options::new(all.iter().map(at).collect()).io_backend(io_backend);
    Running::start(Arc::clone(cache), &options).expect("a server")
}

fn set(key: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n${LEN}\r\n");
    [head.as_bytes(), value, b"\r\n"].concat()
}

fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

#[track_caller]
fn expect(stream: &mut impl Read, expected: &[u8]) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer == expected);
}

fn long_values_are_returned_in_order_in_every_protocol(io_backend: IoBackend) {
    let cache = cache();
    let server = server(&cache, io_backend);
    let (one, two) = (value(1), value(2));
    let mut stream = connect_to(&server, 0);
    for (key, value) in [("a", &one), ("b", &two)] {
        stream.write_all(&set(key, value)).expect("sent");
        expect(&mut stream, b"+OK\r\n");
    }
    stream.write_all(b"PING\r\nGET a\r\nMGET b x a\r\nGET b\r\nPING\r\n").expect("sent");
    let (a, b) = (bulk(&one), bulk(&two));
    let parts: [&[u8]; 8] = [b"+PONG\r\n", &a, b"*3\r\n", &b, b"$-1\r\n", &a, &b, b"+PONG\r\n"];
    expect(&mut stream, &parts.concat());
    // A reply that is turned off is not sent.
    stream.write_all(b"CLIENT REPLY SKIP\r\nGET a\r\nPING\r\n").expect("sent");
    expect(&mut stream, b"+PONG\r\n");

    let head = format!("VALUE a 0 {LEN}\r\n").into_bytes();
    let mut memcache = connect_to(&server, 1);
    memcache.write_all(b"get a\r\nmg b v\r\nmn\r\n").expect("sent");
    let meta = format!("VA {LEN}\r\n").into_bytes();
    let parts: [&[u8]; 7] = [&head, &one, b"\r\nEND\r\n", &meta, &two, b"\r\n", b"MN\r\n"];
    expect(&mut memcache, &parts.concat());
    let mut pmc = connect_to(&server, 2);
    pmc.write_all(b"GET a\x1fGET x\x1f").expect("sent");
    expect(&mut pmc, &[&one[..], b"\x1f(nil)\x1f"].concat());
    let mut mrcache = connect_to(&server, 3);
    mrcache.write_all(b"\0\x01\x01\0a\0\x01\x01\0b").expect("sent");
    let len = (LEN as u32).to_le_bytes();
    expect(&mut mrcache, &[&len, &one[..], &len, &two].concat());
    // No bytes follow the last value, and later requests are answered as always.
    for _ in 0..2 {
        ask(&mut mrcache, b"\0\x01\x01\0x", b"\0\0\0\0");
        mrcache.write_all(b"\0\x01\x01\0a").expect("sent");
        expect(&mut mrcache, &[&len, &one[..]].concat());
    }
}

fn a_long_value_does_not_change_while_it_is_sent(io_backend: IoBackend) {
    let cache = cache();
    let server = server(&cache, io_backend);
    let (mut slow, mut other) = (connect_to(&server, 0), connect_to(&server, 0));
    let first = value(7);
    other.write_all(&set("a", &first)).expect("sent");
    expect(&mut other, b"+OK\r\n");
    slow.write_all(b"GET a\r\n").expect("sent");
    let begin = format!("${LEN}\r\n");
    expect(&mut slow, begin.as_bytes());
    // The value is replaced and removed, and others take its place, while it is being sent.
    for round in 0..20 {
        other.write_all(&set("a", &value(round))).expect("sent");
        expect(&mut other, b"+OK\r\n");
    }
    ask(&mut other, b"DEL a\r\n", b":1\r\n");
    expect(&mut slow, &[&first[..], b"\r\n"].concat());
    assert!(cache.stats().memory <= cache.memory(), "{:?}", cache.stats());
}

fn unread_long_values_are_released(io_backend: IoBackend) {
    let cache = cache();
    let server = server(&cache, io_backend);
    let mut control = connect_to(&server, 0);
    control.write_all(&set("a", &value(3))).expect("sent");
    expect(&mut control, b"+OK\r\n");
    for _ in 0..20 {
        let mut stream = connect_to(&server, 0);
        stream.write_all(&b"GET a\r\n".repeat(5)).expect("sent");
        expect(&mut stream, b"$");
    }
    // Each item reference is dropped when the kernel reports that its bytes are acknowledged.
    while cache.referenced_bytes() > 0 {
        ask(&mut control, b"PING\r\n", b"+PONG\r\n");
    }
}
