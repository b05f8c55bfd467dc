//! Tests how a server ends: it drains, it stops at once, or one of its threads panics.

use crate::served::{LOCAL, ask, cache, connect, options, serve, start, with_every_io_backend};
use nuthatch_server::state::Debugging;
use nuthatch_server::state::Server;
use nuthatch_server::{IoBackend, Running};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

with_every_io_backend! {
    a_draining_server_finishes_pending_work_and_accepts_no_connections
    a_draining_server_stops_after_its_timeout
    a_draining_server_can_be_stopped_at_once
    a_panic_in_one_thread_stops_the_others
}

/// A time that no test reaches: pending work is finished before it, or the test fails.
const LONG: Duration = Duration::from_mins(2);

/// Reads until the server closes the connection.
fn read_end(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answers, then the end");
    answer.escape_ascii().to_string()
}

/// Waits until nothing listens at the address.
fn wait_until_refused(server: &Running) {
    let address = crate::served::address(server, 0);
    while TcpStream::connect(address).is_ok() {}
}

fn a_draining_server_finishes_pending_work_and_accepts_no_connections(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 2, io_backend));
    let mut connections: Vec<_> = (0..5).map(|_| connect(&server)).collect();
    for stream in &mut connections {
        ask(stream, b"PING\r\n", b"+PONG\r\n");
    }
    let [mut idle, mut half, mut long, mut transaction, mut unread] =
        connections.try_into().expect("five");
    ask(&mut half, b"PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nab", b"+PONG\r\n");
    let value = vec![b'v'; 4 << 20];
    let head = format!("PING\r\n*3\r\n$3\r\nSET\r\n$4\r\nlong\r\n${}\r\n", value.len());
    ask(&mut long, head.as_bytes(), b"+PONG\r\n");
    ask(&mut transaction, b"MULTI\r\nSET t v\r\n", b"+OK\r\n+QUEUED\r\n");
    // More replies than the server buffers for a client that does not read.
    ask(&mut unread, b"SET big x\r\nSETRANGE big 999999 x\r\n", b"+OK\r\n:1000000\r\n");
    unread.write_all(&b"GET big\r\n".repeat(20)).expect("sent");
    server.stopper().drain(LONG);
    assert_eq!(read_end(&mut idle), "");
    wait_until_refused(&server);
    half.write_all(b"cde\r\n").expect("sent");
    assert_eq!(read_end(&mut half), r"+OK\r\n");
    long.write_all(&[&value[..], b"\r\n"].concat()).expect("sent");
    assert_eq!(read_end(&mut long), r"+OK\r\n");
    transaction.write_all(b"EXEC\r\n").expect("sent");
    assert_eq!(read_end(&mut transaction), r"*1\r\n+OK\r\n");
    let mut answers = Vec::new();
    unread.read_to_end(&mut answers).expect("answers, then the end");
    assert_eq!(answers.len(), 20 * (1_000_000 + "$1000000\r\n\r\n".len()));
    server.wait().expect("it ends by itself");
}

fn a_draining_server_stops_after_its_timeout(io_backend: IoBackend) {
    let server = serve(io_backend);
    let mut stream = connect(&server);
    ask(&mut stream, b"PING\r\n*1\r\n", b"+PONG\r\n");
    server.stopper().drain(Duration::from_millis(10));
    server.wait().expect("it ends, although a request is incomplete");
    assert!(stream.read(&mut [0]).is_ok_and(|len| len == 0));
}

fn a_draining_server_can_be_stopped_at_once(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 2, io_backend));
    let mut stream = connect(&server);
    ask(&mut stream, b"PING\r\n*1\r\n", b"+PONG\r\n");
    let stopper = server.stopper();
    stopper.drain(Duration::from_hours(24));
    wait_until_refused(&server);
    stopper.stop();
    server.wait().expect("it ends");
}

fn a_panic_in_one_thread_stops_the_others(io_backend: IoBackend) {
    let mut commands = Server::new(cache());
    commands.debug = Debugging::Yes;
    let running = Running::serve(commands, &options(&[LOCAL], 3, io_backend)).expect("a server");
    let mut stream = connect(&running);
    stream.write_all(b"DEBUG PANIC\r\n").expect("sent");
    let error = running.wait().expect_err("half a server is none");
    assert_eq!(error.to_string(), "a thread panicked");
}
