//! Tests sockets, and what is received and sent over them.

use crate::served::{
    LOCAL, ask, cache, connect, info, iterations, options, pass_time, serve, start,
    with_every_io_backend,
};
use nuthatch_server::{IoBackend, Running};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

with_every_io_backend! {
    values_are_set_and_got
    requests_arrive_in_any_pieces
    requests_before_the_end_of_input_are_answered
    a_client_that_does_not_read_is_not_read_from
    an_error_is_replied_after_earlier_replies
    many_threads_serve_one_cache
    connections_open_and_close
    a_large_value_is_returned
    endless_requests_fit_into_memory
    info_reports_the_io_backend
    interleaved_pieces_become_requests
    a_client_that_shuts_down_writing_receives_all_replies
    a_slow_client_receives_long_replies_completely
    more_clients_than_buffers_are_read_from
    thousands_of_connections_open_and_close
    a_client_refused_while_it_sends_receives_the_error_at_once
    idle_clients_cause_no_iterations
    a_server_stops_with_connections_open
    idle_connections_are_probed
}

/// The time after which a test fails that waits for something.
const PATIENCE: Duration = Duration::from_mins(1);

fn values_are_set_and_got(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    ask(&mut stream, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n", b"+OK\r\n");
    ask(&mut stream, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", b"$5\r\nvalue\r\n");
    ask(&mut stream, b"get nothing\r\n\r\nping\r\n", b"$-1\r\n+PONG\r\n");
}

/// Returns the timer that the kernel runs for the server's end of a connection: 02 for probes.
fn timer(stream: &TcpStream) -> String {
    let port = |address: std::net::SocketAddr| format!(":{:04X}", address.port());
    let local = port(stream.peer_addr().expect("an address"));
    let remote = port(stream.local_addr().expect("an address"));
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("the table of sockets");
    let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = |row: &Vec<&str>| row[1].ends_with(&local) && row[2].ends_with(&remote);
    let row = columns.skip(1).find(ours).expect("the connection");
    row[5].split(':').next().expect("a timer").to_owned()
}

fn idle_connections_are_probed(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    let expected = b"*2\r\n$13\r\ntcp-keepalive\r\n$3\r\n300\r\n";
    ask(&mut stream, b"CONFIG GET tcp-keepalive\r\n", expected);
    // Until the last reply is acknowledged, another timer runs.
    while timer(&stream) == "01" {
        std::thread::yield_now();
    }
    assert_eq!(timer(&stream), "02");
    ask(&mut stream, b"CONFIG SET tcp-keepalive 0\r\n", b"+OK\r\n");
    let mut other = connect(&server);
    ask(&mut other, b"PING\r\n", b"+PONG\r\n");
    while timer(&other) == "01" {
        std::thread::yield_now();
    }
    assert_eq!(timer(&other), "00");
}

/// A client that sends without an end, and reads nothing, is not left waiting for a free
/// connection.
fn a_client_refused_while_it_sends_receives_the_error_at_once(io_backend: IoBackend) {
    let server = serve(io_backend);
    for _ in 0..20 {
        let mut stream = connect(&server);
        stream.set_write_timeout(Some(PATIENCE / 2)).expect("a timeout");
        stream.write_all(b"PING\r\n*1\r\n:4\r\n").expect("sent");
        let chunk = vec![b'x'; 1 << 20];
        let error = loop {
            if let Err(error) = stream.write_all(&chunk) {
                break error.kind();
            }
        };
        assert!([ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error), "{error:?}");
        let mut answer = [0; 30];
        stream.read_exact(&mut answer).expect("what was answered before");
        assert!(answer.starts_with(b"+PONG\r\n-ERR Protocol error"));
    }
}

fn requests_arrive_in_any_pieces(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    stream.set_nodelay(true).expect("a socket");
    let request =
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    for byte in request {
        stream.write_all(&[*byte]).expect("sent");
    }
    ask(&mut stream, b"", b"+OK\r\n$5\r\nvalue\r\n");
}

fn requests_before_the_end_of_input_are_answered(io_backend: IoBackend) {
    let server = serve(io_backend);
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

fn a_client_that_does_not_read_is_not_read_from(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    let value = vec![b'v'; 10_000];
    let set = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10000\r\n", &value[..], b"\r\n"].concat();
    ask(&mut stream, &set, b"+OK\r\n");
    // 200 MB of replies, far more than sockets and server buffer.
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

fn an_error_is_replied_after_earlier_replies(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    stream.write_all(b"PING\r\n*1\r\n!\r\nPING\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answers, then the end");
    assert_eq!(answer, "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n");
}

fn many_threads_serve_one_cache(io_backend: IoBackend) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nuthatch.sock");
    let addresses = [LOCAL, &format!("unix:{}", path.display())];
    let server = start(&options(&addresses, 4, io_backend));
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

fn connections_open_and_close(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 2, io_backend));
    for round in 0..20 {
        let mut streams: Vec<_> = (0..100).map(|_| connect(&server)).collect();
        for stream in &mut streams {
            ask(stream, b"PING\r\n", b"+PONG\r\n");
        }
        // Some disconnect in the middle of a request.
        for stream in streams.iter_mut().skip(round) {
            stream.write_all(b"*2\r\n$3\r\nGET\r\n$100\r\nhalf").expect("sent");
        }
    }
    ask(&mut connect(&server), b"PING\r\n", b"+PONG\r\n");
}

fn a_large_value_is_returned(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    let value: Vec<u8> = (0..60_000_u32).map(|at| at as u8).collect();
    let set = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n", &value[..], b"\r\n"].concat();
    for _ in 0..100 {
        ask(&mut stream, &set, b"+OK\r\n");
        let expected = [b"$60000\r\n", &value[..], b"\r\n"].concat();
        ask(&mut stream, b"GET k\r\n", &expected);
    }
}

fn endless_requests_fit_into_memory(io_backend: IoBackend) {
    let cache = cache();
    let options = options(&[LOCAL], 1, io_backend);
    let server = Running::start(Arc::clone(&cache), &options).expect("a server");
    let mut streams: Vec<_> = (0..100).map(|_| connect(&server)).collect();
    let piece = vec![b'x'; 1 << 20];
    for stream in &mut streams {
        // A request of 100 MB, of which 1 MB is sent.
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

fn info_reports_the_io_backend(io_backend: IoBackend) {
    let server = serve(io_backend);
    let expected = if io_backend == IoBackend::Uring { "io_uring" } else { "epoll" };
    assert_eq!(server.io_backend(), expected);
    assert_eq!(info(&mut connect(&server), "multiplexing_api"), expected);
}

#[test]
fn the_default_io_backend_is_selected() {
    let server = serve(IoBackend::Auto);
    assert!(["io_uring", "epoll"].contains(&server.io_backend()));
    assert_eq!(info(&mut connect(&server), "multiplexing_api"), server.io_backend());
}

/// Sets `k` to this value.
fn set(stream: &mut TcpStream, value: &[u8]) {
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    ask(stream, &[head.as_bytes(), value, b"\r\n"].concat(), b"+OK\r\n");
}

/// Returns the reply to a `GET` of this value.
fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

fn interleaved_pieces_become_requests(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut streams: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    for stream in &streams {
        stream.set_nodelay(true).expect("a socket");
    }
    let request = |at: usize| format!("*2\r\n$4\r\nECHO\r\n$4\r\n{at:04}\r\n").into_bytes();
    for byte in 0..request(0).len() {
        for (at, stream) in streams.iter_mut().enumerate() {
            stream.write_all(&[request(at)[byte]]).expect("sent");
        }
    }
    for (at, stream) in streams.iter_mut().enumerate() {
        ask(stream, b"", format!("$4\r\n{at:04}\r\n").as_bytes());
    }
}

fn a_client_that_shuts_down_writing_receives_all_replies(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    let value = vec![b'v'; 10_000];
    set(&mut stream, &value);
    // 30 MB of replies, more than the server writes before the client reads some.
    stream.write_all(&b"GET k\r\n".repeat(3000)).expect("sent");
    stream.shutdown(Shutdown::Write).expect("a socket");
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).expect("answers, then the end");
    assert!(answers == bulk(&value).repeat(3000));
}

fn a_slow_client_receives_long_replies_completely(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    let value: Vec<u8> = (0..60_000_u32).map(|at| (at / 7) as u8).collect();
    set(&mut stream, &value);
    stream.write_all(&b"GET k\r\n".repeat(200)).expect("sent");
    let mut other = connect(&server);
    let mut piece = vec![0; 3001];
    for expected in bulk(&value).repeat(200).chunks(piece.len()) {
        let piece = &mut piece[..expected.len()];
        stream.read_exact(piece).expect("answers");
        assert!(piece == expected);
        // Other clients are answered meanwhile, which takes some time.
        ask(&mut other, b"PING\r\n", b"+PONG\r\n");
    }
    ask(&mut stream, b"PING\r\n", b"+PONG\r\n");
}

fn more_clients_than_buffers_are_read_from(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut streams: Vec<_> = (0..400).map(|_| connect(&server)).collect();
    let value = vec![b'v'; 30_000];
    for _ in 0..3 {
        for stream in &mut streams {
            let head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$30000\r\n";
            stream.write_all(&[&head[..], &value, b"\r\nGET k\r\n"].concat()).expect("sent");
        }
        let expected = [b"+OK\r\n", &bulk(&value)[..]].concat();
        for stream in &mut streams {
            ask(stream, b"", &expected);
        }
    }
}

/// Waits until a condition holds.
#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "it does not come to hold");
    }
}

fn thousands_of_connections_open_and_close(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut control = connect(&server);
    for round in 0..3000 {
        let mut stream = connect(&server);
        match round % 4 {
            0 => ask(&mut stream, b"PING\r\n", b"+PONG\r\n"),
            1 => ask(&mut stream, b"QUIT\r\n", b"+OK\r\n"),
            // Unread replies turn the end into a reset.
            2 => stream.write_all(&b"INFO\r\n".repeat(3)).expect("sent"),
            _ => {}
        }
    }
    until(|| info(&mut control, "connected_clients") == "1");
    assert_eq!(info(&mut control, "total_connections_received"), "3001");
    ask(&mut control, b"PING\r\n", b"+PONG\r\n");
}

/// Connects a client that reads no replies, and sends requests until the server reads no more.
fn blocked(server: &Running) -> TcpStream {
    let mut stream = connect(server);
    set(&mut stream, &vec![b'v'; 30_000]);
    stream.set_nonblocking(true).expect("a socket");
    let requests = b"GET k\r\n".repeat(1000);
    let error = loop {
        if let Err(error) = stream.write(&requests) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).expect("a socket");
    stream
}

fn idle_clients_cause_no_iterations(io_backend: IoBackend) {
    let (server, other) = (serve(io_backend), serve(io_backend));
    let (mut control, mut clock) = (connect(&server), connect(&other));
    let (_silent, mut half, _blocked) = (connect(&server), connect(&server), blocked(&server));
    half.write_all(b"*2\r\n$3\r\nGET\r\n$100\r\nhalf").expect("sent");
    let mut reset = blocked(&server);
    reset.read_exact(&mut [0; 1000]).expect("answers");
    drop(reset);
    // The client is blocked when its socket is full, which takes some iterations.
    until(|| {
        let before = iterations(&mut control);
        pass_time(&mut clock, 1000);
        // One iteration answers this client, one completes its send, and one receives the next
        // request.
        iterations(&mut control) - before <= 3
    });
}

fn a_server_stops_with_connections_open(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 3, io_backend));
    let mut streams: Vec<_> = (0..30).map(|_| connect(&server)).collect();
    for (at, stream) in streams.iter_mut().enumerate() {
        ask(stream, b"PING\r\n", b"+PONG\r\n");
        if at % 2 == 0 {
            stream.write_all(b"*2\r\n$3\r\nGET\r\n$100\r\nhalf").expect("sent");
        }
    }
    streams.extend((0..3).map(|_| blocked(&server)));
    server.stopper().stop();
    server.wait().expect("no thread failed");
    for stream in &mut streams {
        // Input that the server did not read makes it a reset.
        match stream.read_to_end(&mut Vec::new()) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}
