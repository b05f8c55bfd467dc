//! Tests all protocols with one cache.

use crate::ask_last;
use crate::served::{LOCAL, ask, at, connect_to, start, with_every_io_backend};
use nuthatch_server::mrcache::Framing;
use nuthatch_server::{IoBackend, Options, Protocol, Running};
use std::io::{Read, Write};
use std::net::TcpStream;

with_every_io_backend! {
    every_protocol_reads_what_the_others_store
    every_protocol_answers_pipelines_in_any_pieces_in_order
    requests_see_the_writes_before_them_in_a_pipeline
    memcached_requests_see_the_writes_before_them_in_a_pipeline
    many_keys_of_one_request_are_found
    errors_end_a_connection_after_earlier_replies
    a_refused_object_is_skipped_while_replies_wait
    requests_of_all_protocols_are_counted
}

const EVERY_PROTOCOL: [(Protocol, &str); 5] = [
    (Protocol::Resp, LOCAL),
    (Protocol::Memcache, LOCAL),
    (Protocol::Pmc, LOCAL),
    (Protocol::Mrcache(Framing::Len4), LOCAL),
    (Protocol::Mrcache(Framing::Ver6), LOCAL),
];

fn every_protocol(threads: usize, io_backend: IoBackend) -> Running {
    let listeners = EVERY_PROTOCOL.iter().map(at).collect();
    start(&Options::new(listeners).threads(threads).io_backend(io_backend))
}

fn every_protocol_reads_what_the_others_store(io_backend: IoBackend) {
    let server = every_protocol(2, io_backend);
    let mut streams: Vec<_> = (0..5).map(|listener| connect_to(&server, listener)).collect();
    let sets: [(&[u8], &[u8]); 5] = [
        (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\none\r\n", b"+OK\r\n"),
        (b"set k 0 0 3\r\ntwo\r\n", b"STORED\r\n"),
        (b"SET k 333\x1f", b"OK\x1f"),
        (b"\x00\x02\x01\x00\x03\x00\x00\x00k4th\x00\x01\x01\x00-", b"\x00\x00\x00\x00"),
        (b"\x00\x02\x01\x00\x03\x00\x00\x00k5th\x00\x01\x01\x00-", b"\x00\x01\x00\x00\x00\x00"),
    ];
    for ((set, stored), value) in sets.into_iter().zip(["one", "two", "333", "4th", "5th"]) {
        let setter = streams.iter_mut().zip(sets).find(|(_, one)| one.0 == set);
        ask(setter.expect("one of them").0, set, stored);
        ask(&mut streams[0], b"GET k\r\n", format!("$3\r\n{value}\r\n").as_bytes());
        ask(&mut streams[1], b"get k\r\n", format!("VALUE k 0 3\r\n{value}\r\nEND\r\n").as_bytes());
        ask(&mut streams[1], b"mg k v\r\n", format!("VA 3\r\n{value}\r\n").as_bytes());
        ask(&mut streams[2], b"GET k\x1f", format!("{value}\x1f").as_bytes());
        ask(
            &mut streams[2],
            b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            format!("$3\r\n{value}\r\n").as_bytes(),
        );
        let get = b"\x00\x01\x01\x00k";
        ask(&mut streams[3], get, format!("\x03\0\0\0{value}").as_bytes());
        ask(&mut streams[4], get, format!("\0\x01\x03\0\0\0{value}").as_bytes());
    }
}

fn every_protocol_answers_pipelines_in_any_pieces_in_order(io_backend: IoBackend) {
    let server = every_protocol(1, io_backend);
    let pipelines: [(&[u8], &[u8]); 5] = [
        (b"SET a 1\r\nGET a\r\nDEL a\r\n", b"+OK\r\n$1\r\n1\r\n:1\r\n"),
        (
            b"set a 0 0 1\r\n1\r\nset toolong 0 0 99999999\r\nmn\r\n",
            b"STORED\r\nSERVER_ERROR object too large for cache\r\n",
        ),
        (b"SET a 1\x1f*2\r\n$3\r\nGET\r\n$1\r\na\r\nDEL a\x1f", b"OK\x1f$1\r\n1\r\nOK\x1f"),
        (b"\0\x02\x01\0\x01\0\0\0a1\0\x01\x01\0a", b"\x01\0\0\x001"),
        (b"\0\x02\x01\0\x01\0\0\0a1\0\x01\x01\0a", b"\0\x01\x01\0\0\x001"),
    ];
    for (listener, (requests, answers)) in pipelines.into_iter().enumerate() {
        ask(&mut connect_to(&server, listener), requests, answers);
        let mut stream = connect_to(&server, listener);
        stream.set_nodelay(true).expect("a socket");
        for byte in requests {
            stream.write_all(&[*byte]).expect("sent");
        }
        ask(&mut stream, b"", answers);
    }
}

/// If they are received together, the keys of all these requests are looked up before the first
/// request is executed.
fn requests_see_the_writes_before_them_in_a_pipeline(io_backend: IoBackend) {
    let server = every_protocol(1, io_backend);
    let mut stream = connect_to(&server, 0);
    ask(&mut stream, b"SET a 1\r\nSET b 1\r\n", b"+OK\r\n+OK\r\n");
    ask_steps(
        &mut stream,
        &[
            ("GET a", "$1\r\n1\r\n"),
            ("SET a 2", "+OK\r\n"),
            ("GET a", "$1\r\n2\r\n"),
            ("SET a 333333 GET", "$1\r\n2\r\n"),
            ("GET a", "$6\r\n333333\r\n"),
            ("MGET a b c", "*3\r\n$6\r\n333333\r\n$1\r\n1\r\n$-1\r\n"),
            ("DEL a", ":1\r\n"),
            ("GET a", "$-1\r\n"),
            ("GET c", "$-1\r\n"),
            ("SET c 4", "+OK\r\n"),
            ("GET c", "$1\r\n4\r\n"),
            ("PEXPIREAT c 1", ":1\r\n"),
            ("GET c", "$-1\r\n"),
            ("RENAME b a", "+OK\r\n"),
            ("GET b", "$-1\r\n"),
            ("GET a", "$1\r\n1\r\n"),
            ("FLUSHALL", "+OK\r\n"),
            ("GET a", "$-1\r\n"),
            ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ],
    );
}

fn memcached_requests_see_the_writes_before_them_in_a_pipeline(io_backend: IoBackend) {
    let server = every_protocol(1, io_backend);
    let mut stream = connect_to(&server, 1);
    ask_steps(
        &mut stream,
        &[
            ("set a 0 0 1\r\n1", "STORED\r\n"),
            ("get a b", "VALUE a 0 1\r\n1\r\nEND\r\n"),
            ("set b 0 0 3\r\n222", "STORED\r\n"),
            ("get b c a", "VALUE b 0 3\r\n222\r\nVALUE a 0 1\r\n1\r\nEND\r\n"),
            ("mg a v", "VA 1\r\n1\r\n"),
            ("mg YQ== b v", "VA 1\r\n1\r\n"),
            ("ms a 2\r\n44", "HD\r\n"),
            ("mg a v", "VA 2\r\n44\r\n"),
            ("delete b", "DELETED\r\n"),
            ("get a b", "VALUE a 0 2\r\n44\r\nEND\r\n"),
            ("touch a -1", "TOUCHED\r\n"),
            ("mg a v", "EN\r\n"),
            ("get a b c", "END\r\n"),
        ],
    );
}

/// Sends the requests as one pipeline, and expects their replies.
fn ask_steps(stream: &mut TcpStream, steps: &[(&str, &str)]) {
    let requests: String = steps.iter().flat_map(|(request, _)| [*request, "\r\n"]).collect();
    let replies: String = steps.iter().map(|(_, reply)| *reply).collect();
    ask(stream, requests.as_bytes(), replies.as_bytes());
}

/// A batch prefetches fewer keys than that.
fn many_keys_of_one_request_are_found(io_backend: IoBackend) {
    let server = every_protocol(1, io_backend);
    let numbers: Vec<_> = (0..1000).map(|number: u32| number.to_string()).collect();
    let join = |text: &dyn Fn(&String) -> String| numbers.iter().map(text).collect::<Vec<_>>();
    let set = join(&|number| format!("SET k{number} {number}\r\n")).concat();
    let mut stream = connect_to(&server, 0);
    ask(&mut stream, set.as_bytes(), "+OK\r\n".repeat(1000).as_bytes());
    let keys = join(&|number| format!(" k{number} absent{number}"));
    let values = join(&|number| format!("${}\r\n{number}\r\n$-1\r\n", number.len())).concat();
    let mget = format!("MGET{}\r\n", keys.concat());
    ask(&mut stream, mget.as_bytes(), format!("*2000\r\n{values}").as_bytes());
    let found = join(&|number| format!("VALUE k{number} 0 {}\r\n{number}\r\n", number.len()));
    let mut memcached = connect_to(&server, 1);
    for (keys, found) in keys.chunks(200).zip(found.chunks(200)) {
        let get = format!("get{}\r\n", keys.concat());
        ask(&mut memcached, get.as_bytes(), format!("{}END\r\n", found.concat()).as_bytes());
    }
}

fn errors_end_a_connection_after_earlier_replies(io_backend: IoBackend) {
    let server = every_protocol(1, io_backend);
    let line_too_long = [b"mn\r\n".as_slice(), &[b'x'; 5000]].concat();
    let mistakes: [(&[u8], &[u8]); 4] = [
        (
            b"PING\r\n*1\r\n!\r\nPING\r\n",
            b"+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n",
        ),
        (&line_too_long, b"MN\r\nCLIENT_ERROR line too long\r\n"),
        (b"GET a\x1f*x\r\n", b"(nil)\x1f-ERR Protocol error: invalid multibulk length\r\n"),
        (b"\0\x01\x01\0a\0\x09", b"\0\0\0\0"),
    ];
    for (listener, (requests, answers)) in mistakes.into_iter().enumerate() {
        let mut stream = connect_to(&server, listener);
        assert_eq!(ask_last(&mut stream, requests), answers.escape_ascii().to_string());
    }
}

/// The bytes after a refused request are skipped, also while a slow client delays the replies.
fn a_refused_object_is_skipped_while_replies_wait(io_backend: IoBackend) {
    let server = every_protocol(1, io_backend);
    let mut stream = connect_to(&server, 1);
    let mut writer = stream.try_clone().expect("a socket");
    let object = vec![b'v'; 40 << 20];
    let writer = std::thread::spawn(move || {
        let value = vec![b'v'; 60_000];
        writer.write_all(b"set k 0 0 60000\r\n").expect("sent");
        writer.write_all(&value).expect("sent");
        writer.write_all(b"\r\n").expect("sent");
        for _ in 0..300 {
            writer.write_all(b"get k\r\n").expect("sent");
        }
        writer.write_all(format!("set k 0 0 {}\r\n", object.len()).as_bytes()).expect("sent");
        writer.write_all(&object).expect("sent");
        writer.write_all(b"\r\nmn\r\n").expect("sent");
    });
    ask(&mut stream, b"", b"STORED\r\n");
    let mut value = b"VALUE k 0 60000\r\n".to_vec();
    value.resize(value.len() + 60_000, b'v');
    value.extend_from_slice(b"\r\nEND\r\n");
    for _ in 0..300 {
        ask(&mut stream, b"", &value);
    }
    ask(&mut stream, b"", b"SERVER_ERROR object too large for cache\r\nMN\r\n");
    writer.join().expect("no panic");
}

fn requests_of_all_protocols_are_counted(io_backend: IoBackend) {
    let server = every_protocol(1, io_backend);
    let mut resp = connect_to(&server, 0);
    let mut memcache = connect_to(&server, 1);
    ask(&mut memcache, b"mg k v\r\nmg k v\r\ncas k 0 0 1 7\r\n1\r\n", b"EN\r\nEN\r\nNOT_FOUND\r\n");
    ask(&mut connect_to(&server, 2), b"DEL k\x1f", b"ERROR: Key does not exist\x1f");
    ask(&mut connect_to(&server, 3), b"\0\x01\x01\0k", b"\0\0\0\0");
    let calls = |name: &str, stream: &mut std::net::TcpStream| {
        stream.write_all(b"INFO commandstats\r\n").expect("sent");
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n") || text.len() < 20 {
            let mut more = [0; 4096];
            let len = stream.read(&mut more).expect("an answer");
            text.extend_from_slice(&more[..len]);
        }
        let text = String::from_utf8(text).expect("text");
        let line = text.lines().find(|line| line.starts_with(&format!("cmdstat_{name}:")));
        line.and_then(|line| line.split(['=', ',']).nth(1)?.parse::<u64>().ok())
    };
    assert_eq!(calls("memcached|mg", &mut resp), Some(2));
    assert_eq!(calls("memcached|cas", &mut resp), Some(1));
    assert_eq!(calls("pmc|del", &mut resp), Some(1));
    assert_eq!(calls("mrcache|get", &mut resp), Some(1));
}
