//! A server, and raw bytes over its sockets.

use nuthatch_cache::{Cache, Options as CacheOptions};
use nuthatch_server::protocol::mrcache::Framing;
use nuthatch_server::{Address, Listener, Options, Protocol, Running};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn serve(addresses: &[&str], threads: usize) -> Running {
    let all: Vec<_> = addresses.iter().map(|address| (Protocol::Resp, *address)).collect();
    serve_all(&all, threads)
}

fn serve_all(listeners: &[(Protocol, &str)], threads: usize) -> Running {
    let cache = Cache::new(CacheOptions::new().memory(64 << 20)).expect("a cache");
    let listeners = listeners
        .iter()
        .map(|(protocol, address)| Listener::new(*protocol, address.parse().expect("an address")));
    let options = Options { listeners: listeners.collect(), threads };
    Running::start(Arc::new(cache), &options).expect("a server")
}

fn connect(server: &Running) -> TcpStream {
    connect_to(server, 0)
}

/// A connection to the listener of this number.
fn connect_to(server: &Running, listener: usize) -> TcpStream {
    let Address::Tcp(address) = server.listeners()[listener].address else {
        panic!("an address of the network")
    };
    TcpStream::connect(address).expect("a connection")
}

/// Sends bytes, then reads as many as are expected.
#[track_caller]
fn ask(stream: &mut (impl Read + Write), request: &[u8], expected: &[u8]) {
    stream.write_all(request).expect("sent");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn values_are_set_and_got() {
    let server = serve(&["127.0.0.1:0"], 1);
    let mut stream = connect(&server);
    ask(&mut stream, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n", b"+OK\r\n");
    ask(&mut stream, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", b"$5\r\nvalue\r\n");
    ask(&mut stream, b"get nothing\r\n\r\nping\r\n", b"$-1\r\n+PONG\r\n");
}

#[test]
fn requests_come_in_any_pieces() {
    let server = serve(&["127.0.0.1:0"], 1);
    let mut stream = connect(&server);
    stream.set_nodelay(true).expect("a socket");
    let request =
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    for byte in request {
        stream.write_all(&[*byte]).expect("sent");
    }
    ask(&mut stream, b"", b"+OK\r\n$5\r\nvalue\r\n");
}

#[test]
fn what_is_sent_before_the_end_is_answered() {
    let server = serve(&["127.0.0.1:0"], 1);
    let mut stream = connect(&server);
    let requests = b"SET k v\r\n".repeat(10_000);
    let mut writer = stream.try_clone().expect("a socket");
    let writer = std::thread::spawn(move || {
        writer.write_all(&requests).expect("sent");
        writer.shutdown(Shutdown::Write).expect("a socket");
    });
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answers, then the end");
    assert!(answer == b"+OK\r\n".repeat(10_000));
    writer.join().expect("no panic");
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let server = serve(&["127.0.0.1:0"], 1);
    let mut stream = connect(&server);
    let value = vec![b'v'; 10_000];
    let set = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10000\r\n", &value[..], b"\r\n"].concat();
    ask(&mut stream, &set, b"+OK\r\n");
    // 200 MB of answers, far more than sockets and server hold.
    let mut writer = stream.try_clone().expect("a socket");
    let writer = std::thread::spawn(move || {
        for _ in 0..20_000 {
            writer.write_all(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n").expect("sent");
        }
    });
    let mut other = connect(&server);
    ask(&mut other, b"PING\r\n", b"+PONG\r\n");
    let expected = [b"$10000\r\n", &value[..], b"\r\n"].concat();
    let mut answer = vec![0; expected.len()];
    for _ in 0..20_000 {
        stream.read_exact(&mut answer).expect("an answer");
        assert!(answer == expected);
    }
    writer.join().expect("no panic");
    ask(&mut stream, b"PING\r\n", b"+PONG\r\n");
}

#[test]
fn a_mistake_is_told_after_the_answers_before_it() {
    let server = serve(&["127.0.0.1:0"], 1);
    let mut stream = connect(&server);
    stream.write_all(b"PING\r\n*1\r\n!\r\nPING\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answers, then the end");
    assert_eq!(answer, "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n");
}

#[test]
fn many_threads_serve_one_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nuthatch.sock");
    let server = serve(&["127.0.0.1:0", &format!("unix:{}", path.display())], 4);
    let mut first = connect(&server);
    for round in 0..50 {
        let mut stream = connect(&server);
        ask(&mut first, format!("SET k {round}\r\n").as_bytes(), b"+OK\r\n");
        let expected = format!("${}\r\n{round}\r\n", round.to_string().len());
        ask(&mut stream, b"GET k\r\n", expected.as_bytes());
        let mut stream = UnixStream::connect(&path).expect("a connection");
        ask(&mut stream, b"GET k\r\n", expected.as_bytes());
    }
    drop(server);
    assert!(!path.exists());
}

#[test]
fn connections_come_and_go() {
    let server = serve(&["127.0.0.1:0"], 2);
    for round in 0..20 {
        let mut streams: Vec<_> = (0..100).map(|_| connect(&server)).collect();
        for stream in &mut streams {
            ask(stream, b"PING\r\n", b"+PONG\r\n");
        }
        // Some leave in the middle of a request.
        for stream in streams.iter_mut().skip(round) {
            stream.write_all(b"*2\r\n$3\r\nGET\r\n$100\r\nhalf").expect("sent");
        }
    }
    ask(&mut connect(&server), b"PING\r\n", b"+PONG\r\n");
}

#[test]
fn a_large_value_comes_back() {
    let server = serve(&["127.0.0.1:0"], 1);
    let mut stream = connect(&server);
    let value: Vec<u8> = (0..60_000_u32).map(|at| at as u8).collect();
    let set = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n", &value[..], b"\r\n"].concat();
    for _ in 0..100 {
        ask(&mut stream, &set, b"+OK\r\n");
        let expected = [b"$60000\r\n", &value[..], b"\r\n"].concat();
        ask(&mut stream, b"GET k\r\n", &expected);
    }
}

#[test]
fn requests_without_end_take_no_more_memory_than_there_is() {
    let cache = Cache::new(CacheOptions::new().memory(64 << 20)).expect("a cache");
    let cache = Arc::new(cache);
    let any = "127.0.0.1:0".parse().expect("an address");
    let options = Options { listeners: vec![Listener::new(Protocol::Resp, any)], threads: 1 };
    let server = Running::start(Arc::clone(&cache), &options).expect("a server");
    let mut streams: Vec<_> = (0..100).map(|_| connect(&server)).collect();
    let piece = vec![b'x'; 1 << 20];
    for stream in &mut streams {
        // A request of 100 MB, of which one comes.
        let begun = stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\n");
        // It may be refused before it is sent.
        let _ = begun.and_then(|()| stream.write_all(&piece));
        let mut other = connect(&server);
        ask(&mut other, b"PING\r\n", b"+PONG\r\n");
        let stats = cache.stats();
        assert!(stats.memory <= stats.memory_limit, "{stats:?}");
    }
    drop(streams);
    ask(&mut connect(&server), b"PING\r\n", b"+PONG\r\n");
}

const LOCAL: &str = "127.0.0.1:0";
const EVERY_PROTOCOL: [(Protocol, &str); 5] = [
    (Protocol::Resp, LOCAL),
    (Protocol::Memcache, LOCAL),
    (Protocol::Pmc, LOCAL),
    (Protocol::Mrcache(Framing::Len4), LOCAL),
    (Protocol::Mrcache(Framing::Ver6), LOCAL),
];

#[test]
fn every_protocol_reads_what_the_others_store() {
    let server = serve_all(&EVERY_PROTOCOL, 2);
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

#[test]
fn every_protocol_answers_a_pipeline_in_order_in_any_pieces() {
    let server = serve_all(&EVERY_PROTOCOL, 1);
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

#[test]
fn mistakes_end_a_connection_after_the_answers_before_them() {
    let server = serve_all(&EVERY_PROTOCOL, 1);
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
        stream.write_all(requests).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answers, then the end");
        assert_eq!(answer.escape_ascii().to_string(), answers.escape_ascii().to_string());
    }
}

/// What is behind a request that is refused is skipped, also while a slow reader holds up the rest.
#[test]
fn a_refused_object_is_skipped_while_answers_wait() {
    let server = serve_all(&EVERY_PROTOCOL, 1);
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
