//! Clients that do not read their replies while connections take much of the budget.

use super::*;

with_every_backend! {
    clients_that_do_not_read_are_closed_at_five_eighths_of_the_memory
    clients_are_closed_until_connections_use_less
    a_client_that_must_not_be_evicted_keeps_its_output
    a_worker_sleeps_where_no_client_may_be_closed
    a_value_without_memory_for_requests_is_refused_and_the_connection_stays_open
    a_value_without_memory_for_requests_waits_while_clients_are_closed
}

const MEMORY: u64 = 64 << 20;

/// Bytes of the value that clients request. It is copied to their output.
const LEN: usize = 60_000;

const OOM: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// Returns clients that have requested more than their sockets and output hold, and read nothing.
fn silent_clients(
    worker: &mut Worker<'_>,
    count: usize,
    first: &[u8],
) -> Vec<(UnixStream, Number)> {
    let stored = worker.session.guard().set(b"k", &vec![7; LEN], &Write::new()).map(drop);
    stored.expect("room");
    let mut clients: Vec<_> = (0..count).map(|_| connect(worker)).collect();
    for (client, number) in &mut clients {
        client.write_all(first).expect("sent");
        client.write_all(&b"GET k\r\n".repeat(60)).expect("sent");
        while !worker.connections.get(*number).expect("it is there").blocked {
            run_iteration(worker);
        }
    }
    clients
}

/// Makes connections take this part of the budget, in sixteenths, and keep nothing unused. Returns
/// the bytes that were added.
fn hold_sixteenths(worker: &mut Worker<'_>, sixteenths: u64) -> isize {
    let mut added = 0;
    for sixteenths in [9, sixteenths] {
        let held = worker.common.server.held();
        let bytes = (MEMORY / 16 * sixteenths).cast_signed() - held.cast_signed();
        worker.common.server.hold(bytes as isize);
        added += bytes as isize;
        settle(worker);
    }
    added
}

fn open(worker: &mut Worker<'_>, clients: &[(UnixStream, Number)]) -> usize {
    clients.iter().filter(|(_, number)| worker.connections.get(*number).is_some()).count()
}

fn clients_that_do_not_read_are_closed_at_five_eighths_of_the_memory(kind: Backend) {
    let common = common(MEMORY, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let clients = silent_clients(&mut worker, 8, b"");
    hold_sixteenths(&mut worker, 10);
    assert_eq!((open(&mut worker, &clients), common.server.clients.output_closed()), (8, 0));
    // A little more closes two or three of them: a thirty-second of the budget.
    common.server.hold(64 << 10);
    settle(&mut worker);
    let closed = common.server.clients.output_closed();
    assert!((2..=3).contains(&closed), "{closed} were closed");
    assert_eq!(open(&mut worker, &clients), 8 - closed as usize);
    assert!(common.server.held() <= MEMORY / 8 * 5);
}

/// One round is not sufficient.
fn clients_are_closed_until_connections_use_less(kind: Backend) {
    let common = common(MEMORY, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let clients = silent_clients(&mut worker, 12, b"");
    hold_sixteenths(&mut worker, 11);
    assert!(common.server.held() <= MEMORY / 8 * 5, "{} bytes are held", common.server.held());
    let open = open(&mut worker, &clients);
    assert!((4..=9).contains(&open), "{open} are open");
}

fn a_client_that_must_not_be_evicted_keeps_its_output(kind: Backend) {
    let common = common(MEMORY, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let mut kept = silent_clients(&mut worker, 1, b"CLIENT NO-EVICT ON\r\n");
    let others = silent_clients(&mut worker, 3, b"CLIENT NO-EVICT ON\r\nCLIENT NO-EVICT OFF\r\n");
    let added = hold_sixteenths(&mut worker, 14);
    assert_eq!((open(&mut worker, &kept), open(&mut worker, &others)), (1, 0));
    common.server.hold(-added);
    let value = [b"$60000\r\n", &vec![7; LEN][..], b"\r\n"].concat();
    let (client, _) = &mut kept[0];
    expect(&mut worker, client, b"+OK\r\n");
    for _ in 0..60 {
        expect(&mut worker, client, &value);
    }
}

/// Regression test: the worker searched again and again for a client that it may close.
fn a_worker_sleeps_where_no_client_may_be_closed(kind: Backend) {
    let common = common(MEMORY, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let clients = silent_clients(&mut worker, 2, b"CLIENT NO-EVICT ON\r\n");
    hold_sixteenths(&mut worker, 12);
    assert_eq!((open(&mut worker, &clients), common.server.clients.output_closed()), (2, 0));
}

/// Sends bytes while the worker runs.
fn send(worker: &mut Worker<'_>, client: &mut UnixStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match client.write(bytes) {
            Ok(len) => bytes = &bytes[len..],
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        run_iteration(worker);
    }
}

/// Returns a request with a value of this length, and requests after it.
fn requests(len: usize) -> Vec<u8> {
    let head = format!("*3\r\n$3\r\nSET\r\n$3\r\nnew\r\n${len}\r\n");
    [head.as_bytes(), &vec![b'v'; len], b"\r\nPING\r\nSTRLEN new\r\n"].concat()
}

fn a_value_without_memory_for_requests_is_refused_and_the_connection_stays_open(kind: Backend) {
    for len in [100_000, 900_000, 5 << 20] {
        let common = common(MEMORY, kind);
        let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
        let (mut client, _) = connect(&mut worker);
        let added = hold_sixteenths(&mut worker, 9);
        let all = requests(len);
        let (first, rest) = all.split_at(len - 1000);
        send(&mut worker, &mut client, first);
        settle(&mut worker);
        send(&mut worker, &mut client, rest);
        expect(&mut worker, &mut client, &[OOM, b"+PONG\r\n:0\r\n"].concat());
        common.server.hold(-added);
        send(&mut worker, &mut client, &requests(len));
        let answer = format!("+OK\r\n+PONG\r\n:{len}\r\n");
        expect(&mut worker, &mut client, answer.as_bytes());
    }
}

fn a_value_without_memory_for_requests_waits_while_clients_are_closed(kind: Backend) {
    for len in [100_000, 900_000, 5 << 20] {
        let common = common(MEMORY, kind);
        let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
        let clients = silent_clients(&mut worker, 8, b"");
        let (mut client, _) = connect(&mut worker);
        hold_sixteenths(&mut worker, 9);
        let all = requests(len);
        let (first, rest) = all.split_at(len - 1000);
        send(&mut worker, &mut client, first);
        settle(&mut worker);
        send(&mut worker, &mut client, rest);
        let answer = format!("+OK\r\n+PONG\r\n:{len}\r\n");
        expect(&mut worker, &mut client, answer.as_bytes());
        assert!(open(&mut worker, &clients) < 8);
    }
}
