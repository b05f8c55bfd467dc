//! Tests values that are sent in the iteration that reads them, as far as the kernel takes them.

use crate::served::{
    LOCAL, ask, at, cache, connect, connect_to, options, start, with_every_io_backend,
};
use nuthatch_server::mrcache::Framing;
use nuthatch_server::{IoBackend, Options, Protocol, Running};
use std::io::{Read, Write};

with_every_io_backend! {
    values_are_complete_when_the_client_reads_late
    values_arrive_in_order_in_every_protocol
    truncated_replies_are_not_sent
    exclusive_commands_run_between_others
    clients_that_disconnect_do_not_affect_others
}

/// Copied, referenced beside copies, referenced alone, and kept by an item reference.
const LENS: [usize; 6] = [100, 4095, 4096, 10_240, 120_000, 400_000];

fn value(key: usize, round: usize) -> Vec<u8> {
    let len = LENS[key % LENS.len()];
    (0..len).map(|at| (at / 97 + 31 * key + 7 * round) as u8).collect()
}

fn set(key: usize, value: &[u8]) -> Vec<u8> {
    let name = key.to_string();
    let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n{name}\r\n${}\r\n", name.len(), value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

#[track_caller]
fn expect(stream: &mut impl Read, expected: &[u8]) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    let differs = answer.iter().zip(expected).position(|(one, other)| one != other);
    assert_eq!(differs, None, "of {} bytes", expected.len());
}

/// Reads and writes of one client, all sent before it reads the first reply: more than the kernel's
/// buffers hold.
fn values_are_complete_when_the_client_reads_late(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 1, io_backend));
    let mut stream = connect(&server);
    let (mut requests, mut answers) = (Vec::new(), Vec::new());
    let mut rounds = [0; LENS.len()];
    for (key, _) in LENS.iter().enumerate() {
        requests.extend(set(key, &value(key, 0)));
        answers.extend(b"+OK\r\n");
    }
    for number in 0..400 {
        let key = number * number % 31 % LENS.len();
        if number % 29 == 0 {
            rounds[key] = number;
            requests.extend(set(key, &value(key, number)));
            answers.extend(b"+OK\r\n");
        }
        requests.extend(format!("GET {key}\r\n").as_bytes());
        answers.extend(bulk(&value(key, rounds[key])));
    }
    let mut writer = stream.try_clone().expect("a stream");
    std::thread::scope(|scope| {
        let sent = scope.spawn(move || writer.write_all(&requests));
        // Another client is served as always, and its values are not those that are being sent.
        let mut other = connect(&server);
        for round in 0..50 {
            let key = LENS.len() + round % LENS.len();
            other.write_all(&set(key, &value(key, round))).expect("sent");
            expect(&mut other, b"+OK\r\n");
        }
        for chunk in answers.chunks(54_321) {
            expect(&mut stream, chunk);
        }
        sent.join().expect("no panic").expect("sent");
    });
    ask(&mut stream, b"PING\r\n", b"+PONG\r\n");
}

fn every_protocol(io_backend: IoBackend) -> Running {
    let all = [
        (Protocol::Resp, LOCAL),
        (Protocol::Memcache, LOCAL),
        (Protocol::Pmc, LOCAL),
        (Protocol::Mrcache(Framing::Len4), LOCAL),
    ];
    let options = Options::new(all.iter().map(at).collect()).io_backend(io_backend);
    Running::start(cache(), &options).expect("a server")
}

fn values_arrive_in_order_in_every_protocol(io_backend: IoBackend) {
    let server = every_protocol(io_backend);
    let mut stream = connect_to(&server, 0);
    let one: Vec<_> = value(3, 1).iter().map(|byte| byte | 0x40).collect();
    stream.write_all(&set(3, &one)).expect("sent");
    expect(&mut stream, b"+OK\r\n");
    let len = one.len();
    let text = [format!("VALUE 3 0 {len}\r\n").as_bytes(), &one, b"\r\nEND\r\n"].concat();
    let meta = [format!("VA {len}\r\n").as_bytes(), &one, b"\r\n"].concat();
    let mrcache = [&(len as u32).to_le_bytes()[..], &one].concat();
    let talks: [(usize, &[u8], Vec<u8>); 4] = [
        (0, b"MGET 3 x 3\r\n", [b"*3\r\n", &*bulk(&one), b"$-1\r\n", &*bulk(&one)].concat()),
        (1, b"get 3\r\nmg 3 v\r\n", [text, meta].concat()),
        (2, b"GET 3\x1fGET x\x1f", [&one, &b"\x1f(nil)\x1f"[..]].concat()),
        (3, b"\0\x01\x01\x003", mrcache),
    ];
    for (listener, request, answer) in talks {
        let mut stream = connect_to(&server, listener);
        stream.write_all(&request.repeat(100)).expect("sent");
        for _ in 0..100 {
            expect(&mut stream, &answer);
        }
    }
}

fn truncated_replies_are_not_sent(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 1, io_backend));
    let mut stream = connect(&server);
    let one = value(3, 1);
    stream.write_all(&set(3, &one)).expect("sent");
    expect(&mut stream, b"+OK\r\n");
    let requests =
        b"GET 3\r\nCLIENT REPLY SKIP\r\nGET 3\r\nMULTI\r\nGET 3\r\nINCR 3\r\nEXEC\r\nPING\r\n";
    let not_a_number = b"-ERR value is not an integer or out of range\r\n";
    let bulk = bulk(&one);
    let queued = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n";
    let answer = [&bulk[..], queued, &bulk, not_a_number, b"+PONG\r\n"].concat();
    stream.write_all(&requests.repeat(30)).expect("sent");
    for _ in 0..30 {
        expect(&mut stream, &answer);
    }
}

fn exclusive_commands_run_between_others(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 2, io_backend));
    let mut stream = connect(&server);
    let one = value(3, 1);
    stream.write_all(&set(3, &one)).expect("sent");
    expect(&mut stream, b"+OK\r\n");
    let answer = [&bulk(&one)[..], b"+OK\r\n", &bulk(&one)].concat();
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (mut stream, answer) = (connect(&server), &answer);
            scope.spawn(move || {
                let requests = format!("GET 3\r\nMSET a {client} b {client}\r\nGET 3\r\n");
                stream.write_all(requests.repeat(200).as_bytes()).expect("sent");
                for _ in 0..200 {
                    expect(&mut stream, answer);
                }
            });
        }
    });
}

fn clients_that_disconnect_do_not_affect_others(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 1, io_backend));
    let mut stream = connect(&server);
    let one = value(4, 1);
    stream.write_all(&set(4, &one)).expect("sent");
    expect(&mut stream, b"+OK\r\n");
    for _ in 0..50 {
        let mut gone = connect(&server);
        gone.write_all(&b"GET 4\r\n".repeat(40)).expect("sent");
        drop(gone);
        stream.write_all(b"GET 4\r\n").expect("sent");
        expect(&mut stream, &bulk(&one));
    }
}
