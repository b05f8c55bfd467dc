//! Single iterations of a worker.

use super::*;
use nuthatch_cache::{Cache, Eviction, Options as CacheOptions, Write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;

/// A module for each backend with all tests.
macro_rules! with_every_backend {
    ($($test:ident)*) => {
        mod io_uring {
            $(#[test] fn $test() { super::$test(crate::net::reactor::Backend::Uring); })*
        }
        mod epoll {
            $(#[test] fn $test() { super::$test(crate::net::reactor::Backend::Epoll); })*
        }
    };
}

mod shedding;
mod starving;

with_every_backend! {
    buffers_of_unknown_connections_are_returned
    unused_memory_is_returned_while_little_is_free
    unread_replies_count_before_the_iteration_ends
    the_soft_limit_counts_from_the_first_check_over_it
    a_long_pipeline_does_not_starve_others
    many_long_pipelines_do_not_starve_each_other
    a_long_pipeline_is_executed_although_its_client_sends_no_more
    bytes_that_the_kernel_did_not_report_are_received
}

/// More iterations than any test needs.
const MAX_ITERATIONS: usize = 1_000_000;

fn common(memory: u64, kind: Backend) -> Common {
    common_with(memory, Eviction::S3Fifo, kind)
}

fn common_with(memory: u64, eviction: Eviction, kind: Backend) -> Common {
    let cache = Cache::new(CacheOptions::new().memory(memory).eviction(eviction)).expect("a cache");
    Common::new(Server::new(Arc::new(cache)), 1, None, kind)
}

fn pair() -> (OwnedFd, UnixStream) {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None).expect("sockets");
    (ours, theirs.into())
}

/// Returns a client of a worker, and the number of its connection.
fn connect(worker: &mut Worker<'_>) -> (UnixStream, Number) {
    let (ours, theirs) = pair();
    let server = &worker.common.server;
    let client = server.connect(&worker.metrics, Endpoints::default(), 0).expect("room");
    let connection = Connection::new(ours, Protocol::Resp, client, server);
    let number = worker.connections.insert(connection);
    worker.touched.push(number);
    run_iteration(worker);
    theirs.set_nonblocking(true).expect("a socket");
    (theirs, number)
}

/// Runs an iteration, whether or not there are events.
fn run_iteration(worker: &mut Worker<'_>) {
    worker.reactor.waker().wake();
    worker.run_iteration(&mut Vec::new()).expect("an iteration");
}

/// Runs iterations until these bytes have arrived.
#[track_caller]
fn expect(worker: &mut Worker<'_>, client: &mut UnixStream, expected: &[u8]) {
    let mut answer = Vec::new();
    for _ in 0..MAX_ITERATIONS {
        let mut room = vec![0; expected.len() - answer.len()];
        match client.read(&mut room) {
            Ok(0) => panic!("the end, behind {:?}", answer.escape_ascii().to_string()),
            Ok(len) => answer.extend_from_slice(&room[..len]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        if answer.len() == expected.len() {
            assert_eq!(answer.escape_ascii().to_string(), expected.escape_ascii().to_string());
            return;
        }
        run_iteration(worker);
    }
    panic!("no answer");
}

/// Regression test: a buffer with bytes for a removed connection was lost, until there were none.
fn buffers_of_unknown_connections_are_returned(kind: Backend) {
    let common = common(16 << 20, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let (ours, theirs) = pair();
    let ours = crate::net::reactor::Socket::new(ours);
    worker.reactor.receive(&ours, 77).expect("receives");
    let mut events = Vec::new();
    for round in 0..2 * MAX_BUFFERS {
        rustix::io::write(&theirs, b"PING\r\n").expect("sent");
        while events.is_empty() {
            worker.reactor.wait(None, &mut events).expect("a wait");
        }
        for event in events.drain(..) {
            let received = matches!(event, Event::Received { bytes: Ok(Some(_)), .. });
            assert!(received, "round {round}: {event:?}");
            worker.take(event).expect("taken");
        }
    }
}

/// No reply is so long that its client must read it first, and together they exceed the budget.
fn unread_replies_count_before_the_iteration_ends(kind: Backend) {
    const MEMORY: u64 = 64 << 20;
    let common = common(MEMORY, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let stored = worker.session.guard().set(b"k", &vec![7; 100 << 10], &Write::new()).map(drop);
    stored.expect("room");
    let mut clients: Vec<_> = (0..200).map(|_| connect(&mut worker)).collect();
    for (number, (client, connection)) in clients.iter_mut().enumerate() {
        if number % 2 == 0 {
            worker.connections.get(*connection).expect("it is there").client.zero_copy.enable();
        }
        client.write_all(&b"GET k\r\n".repeat(9)).expect("sent");
    }
    for _ in 0..10 {
        run_iteration(&mut worker);
        let held = common.server.held();
        assert!(held < MEMORY, "{held} bytes are held");
    }
}

fn the_soft_limit_counts_from_the_first_check_over_it(kind: Backend) {
    let common = common(64 << 20, kind);
    let limits = [("client-output-soft-limit", "10"), ("client-output-soft-seconds", "1")];
    let limits = limits.map(|(name, value)| (name, value.to_owned()));
    common.server.settings.change_all(&limits).expect("settings");
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let (_client, number) = connect(&mut worker);
    let connection = worker.connections.get(number).expect("it is there");
    assert!(!connection.enforce_output_limits(&common.server, 5), "nothing is unsent");
    connection.out = vec![b'x'; 11];
    assert!(!connection.enforce_output_limits(&common.server, 6), "over the limit since now");
    assert!(connection.enforce_output_limits(&common.server, 7), "over it for a second");
}

fn unused_memory_is_returned_while_little_is_free(kind: Backend) {
    const MEMORY: isize = 64 << 20;
    let common = common(MEMORY as u64, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let request = [b"*2\r\n$4\r\nECHO\r\n$9000\r\n", &[b'x'; 9000][..], b"\r\n"].concat();
    let answer = &request[14..];
    let mut clients: Vec<_> = (0..64).map(|_| connect(&mut worker)).collect();
    for (client, _) in &mut clients {
        client.write_all(&request).expect("sent");
        expect(&mut worker, client, answer);
        run_iteration(&mut worker);
    }
    let kept: usize = worker.connections.iter().map(|(_, it)| it.out.capacity()).sum();
    assert!(kept >= 64 * 9000, "{kept} bytes");
    let before = common.server.held();
    assert!(before >= 4608 << 10, "{before} bytes are held");

    // Other connections take most of the memory.
    common.server.hold(MEMORY * 3 / 4);
    for round in 0..3 * MAX_BUFFERS {
        let (client, _) = &mut clients[round as usize % 64];
        client.write_all(&request).expect("sent");
        expect(&mut worker, client, answer);
    }
    run_iteration(&mut worker);
    let kept = |(_, it): (_, &mut Connection)| it.out.capacity() + it.inbox.capacity();
    assert_eq!(worker.connections.iter().map(kept).sum::<usize>(), 0);
    let scarce = common.server.held() - MEMORY as u64 * 3 / 4;
    assert!(scarce + (4 << 20) <= before, "{scarce} bytes are held, and {before} before");

    // There is enough memory again.
    common.server.hold(-MEMORY * 3 / 4);
    for _ in 0..2 {
        for (client, _) in &mut clients {
            client.write_all(&request).expect("sent");
        }
        for (client, _) in &mut clients {
            expect(&mut worker, client, answer);
        }
        run_iteration(&mut worker);
    }
    let after = common.server.held();
    assert!(
        after >= before - MIN_REPORTED_CHANGE.unsigned_abs() as u64,
        "{after} bytes, {before} before"
    );
    let gone: Vec<_> = clients.drain(..).map(|(_, number)| number).collect();
    for _ in 0..MAX_ITERATIONS {
        if gone.iter().all(|number| worker.connections.get(*number).is_none()) {
            break;
        }
        run_iteration(&mut worker);
    }
    assert_eq!(worker.connections.iter().count(), 0);
}

/// Runs the worker until nothing wakes it.
#[track_caller]
fn settle(worker: &mut Worker<'_>) {
    run_iteration(worker);
    for _ in 0..MAX_ITERATIONS {
        let mut events = Vec::new();
        worker.reactor.wait(Some(Duration::ZERO), &mut events).expect("a wait");
        if events.is_empty() && !worker.has_waiting() {
            return;
        }
        for event in events {
            worker.take(event).expect("taken");
        }
        run_iteration(worker);
    }
    panic!("the worker does not come to rest");
}

/// Sends as much as the socket accepts.
fn send_some(client: &mut UnixStream, bytes: &mut &[u8]) {
    while !bytes.is_empty() {
        match client.write(bytes) {
            Ok(len) => *bytes = &bytes[len..],
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                return;
            }
        }
    }
}

/// Returns the number of RESP integers received so far.
fn numbers(client: &mut UnixStream, answers: &mut Vec<u8>) -> usize {
    let mut room = [0; 1 << 12];
    loop {
        match client.read(&mut room) {
            Ok(0) => break,
            Ok(len) => answers.extend_from_slice(&room[..len]),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                break;
            }
        }
    }
    answers.split(|byte| *byte == b':').count() - 1
}

/// While one client has a pipeline of many requests, a request of another client is executed before
/// most of them.
fn a_long_pipeline_does_not_starve_others(kind: Backend) {
    const REQUESTS: usize = 60_000;
    let common = common(64 << 20, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let (mut long, _) = connect(&mut worker);
    let (mut short, _) = connect(&mut worker);
    let pipeline = b"INCR n\r\n".repeat(REQUESTS);
    let (mut rest, mut answers) = (&pipeline[..], Vec::new());
    send_some(&mut long, &mut rest);
    let mut last = 0;
    while last < REQUESTS as u64 - 8 * 1024 {
        short.write_all(b"INCRBY n 0\r\n").expect("sent");
        let (mut answer, mut iterations) = (Vec::new(), 0);
        while numbers(&mut short, &mut answer) == 0 {
            assert!(iterations < MAX_ITERATIONS, "it is not answered");
            iterations += 1;
            run_iteration(&mut worker);
            send_some(&mut long, &mut rest);
            numbers(&mut long, &mut answers);
        }
        let now = String::from_utf8(answer).expect("a number")[1..].trim_end().parse();
        let now: u64 = now.expect("a number");
        assert!(now - last <= 3 * 1024 + 1024, "{} were executed before it", now - last);
        last = now;
    }
    for _ in 0..MAX_ITERATIONS {
        if numbers(&mut long, &mut answers) == REQUESTS {
            break;
        }
        send_some(&mut long, &mut rest);
        run_iteration(&mut worker);
    }
    let expected: Vec<_> = (1..=REQUESTS).map(|number| format!(":{number}\r\n")).collect();
    assert!(answers == expected.concat().as_bytes());
}

/// More requests than one iteration serves.
fn many_long_pipelines_do_not_starve_each_other(kind: Backend) {
    const REQUESTS: usize = 10_000;
    let common = common(64 << 20, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let mut clients: Vec<_> = (0..40).map(|_| connect(&mut worker).0).collect();
    let pipeline = b"INCR n\r\n".repeat(REQUESTS);
    let mut sent: Vec<_> = clients.iter().map(|_| (&pipeline[..], Vec::new())).collect();
    let mut ahead = 0;
    for _ in 0..MAX_ITERATIONS {
        let mut counts = Vec::new();
        for (client, (rest, answers)) in clients.iter_mut().zip(&mut sent) {
            send_some(client, rest);
            counts.push(numbers(client, answers));
        }
        let (least, most) = (counts.iter().min(), counts.iter().max());
        ahead = ahead.max(most.unwrap_or(&0) - least.unwrap_or(&0));
        if least == Some(&REQUESTS) {
            break;
        }
        run_iteration(&mut worker);
    }
    assert!(sent.iter().all(|(_, answers)| answers.ends_with(b"\r\n")));
    assert!(ahead < REQUESTS / 2, "one was {ahead} requests ahead of another");
    let (mut control, _) = connect(&mut worker);
    control.write_all(b"GET n\r\n").expect("sent");
    expect(&mut worker, &mut control, b"$6\r\n400000\r\n");
}

fn a_long_pipeline_is_executed_although_its_client_sends_no_more(kind: Backend) {
    const REQUESTS: usize = 10_000;
    let common = common(64 << 20, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let (mut client, number) = connect(&mut worker);
    let pipeline = b"INCR n\r\n".repeat(REQUESTS);
    let (mut rest, mut answers) = (&pipeline[..], Vec::new());
    for _ in 0..MAX_ITERATIONS {
        send_some(&mut client, &mut rest);
        if rest.is_empty() {
            break;
        }
        run_iteration(&mut worker);
    }
    client.shutdown(std::net::Shutdown::Write).expect("a socket");
    for _ in 0..MAX_ITERATIONS {
        numbers(&mut client, &mut answers);
        if worker.connections.get(number).is_none() {
            break;
        }
        run_iteration(&mut worker);
    }
    assert_eq!(numbers(&mut client, &mut answers), REQUESTS);
    assert!(answers.ends_with(b":10000\r\n"));
}

/// Simulates a receive operation that reports nothing, with one on a socket on which nothing
/// arrives.
fn bytes_that_the_kernel_did_not_report_are_received(kind: Backend) {
    let common = common(16 << 20, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let (mut client, number) = connect(&mut worker);
    worker.reactor.pause(number).expect("a pause");
    let mut events = Vec::new();
    let is_paused = |event: &Event| matches!(event, Event::Received { more: false, .. });
    while !events.iter().any(is_paused) {
        worker.reactor.wait(None, &mut events).expect("a wait");
    }
    let (silent, _theirs) = pair();
    let silent = crate::net::reactor::Socket::new(silent);
    worker.reactor.receive(&silent, number).expect("receives");
    client.write_all(b"PING\r\n").expect("sent");
    let connection = worker.connections.get(number).expect("it is open");
    worker.clock.note_received(connection);
    while worker.connections.get(number).expect("it is open").operations.eof_unchecked {
        run_iteration(&mut worker);
    }
    expect(&mut worker, &mut client, b"+PONG\r\n");
}
