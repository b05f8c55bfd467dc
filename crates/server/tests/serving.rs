//! A server, and raw bytes over its sockets.

use nuthatch_cache::{Cache, Options as CacheOptions};
use nuthatch_server::{Address, Options, Running};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

fn serve(addresses: &[&str], threads: usize) -> Running {
    let cache = Cache::new(CacheOptions::new().memory(64 << 20)).expect("a cache");
    let resp = addresses.iter().map(|address| address.parse().expect("an address")).collect();
    Running::start(Arc::new(cache), &Options { resp, threads, ..Options::default() })
        .expect("a server")
}

fn connect(server: &Running) -> TcpStream {
    let Address::Tcp(address) = server.resp()[0] else { panic!("an address of the network") };
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
    let resp = vec!["127.0.0.1:0".parse().expect("an address")];
    let options = Options { resp, ..Options::default() };
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
