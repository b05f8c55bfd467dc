//! Requests that find no memory while clients do not read their replies.

use super::*;

with_every_backend! {
    a_write_that_waits_for_closed_clients_does_not_busy_wait
    many_clients_that_keep_one_removed_item_are_closed_in_few_rounds
    clients_that_receive_an_item_of_the_cache_are_not_closed_for_a_write
    long_requests_do_not_exceed_a_budget_that_items_use
    short_requests_of_many_clients_share_an_eighth_of_a_budget_that_items_use
    replies_are_short_while_items_use_the_whole_budget
    long_requests_that_store_nothing_are_executed_while_items_use_the_whole_budget
}

const MEMORY: u64 = 64 << 20;

/// Bytes of the value that clients request and do not read. It is sent without a copy.
const LEN: usize = 8 << 20;

const OOM: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// More iterations than the worker needs for everything that a test sends at once.
const ENOUGH_ITERATIONS: usize = 2000;

/// Stores the value that clients request, and fills the rest of the budget.
fn fill(worker: &mut Worker<'_>) {
    let stored = worker.session.guard().set(b"big", &vec![7; LEN], &Write::new()).map(drop);
    stored.expect("room");
    for number in 0_u32.. {
        let (key, value) = (number.to_le_bytes(), vec![7; 300_000]);
        if worker.session.guard().set(&key, &value, &Write::new()).is_err() {
            return;
        }
    }
}

/// Clients that have requested the value and do not read it.
fn silent_clients(worker: &mut Worker<'_>, count: usize) -> Vec<(UnixStream, Number)> {
    let mut clients: Vec<_> = (0..count).map(|_| connect(worker)).collect();
    for (client, number) in &mut clients {
        worker.connections.get(*number).expect("it is there").client.zero_copy.enable();
        client.write_all(b"GET big\r\n").expect("sent");
        while !worker.connections.get(*number).expect("it is there").blocked {
            run_iteration(worker);
        }
    }
    clients
}

fn set(key: &str, len: usize) -> Vec<u8> {
    let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${len}\r\n", key.len());
    [head.as_bytes(), &vec![b'v'; len], b"\r\n"].concat()
}

/// Sends bytes until all are sent and the worker has nothing to do, or until it reads no more.
/// Returns the maximum number of times that the request has waited for memory.
fn send(worker: &mut Worker<'_>, (client, number): &mut (UnixStream, Number), bytes: &[u8]) -> u32 {
    let (mut rest, mut waits) = (bytes, 0);
    for _ in 0..ENOUGH_ITERATIONS {
        send_some(client, &mut rest);
        run_iteration(worker);
        let connection = worker.connections.get(*number).expect("it is open");
        waits = waits.max(connection.memory_waits);
        let stats = worker.common.server.cache.stats();
        assert!(stats.memory <= MEMORY + (1 << 20), "{stats:?}");
    }
    waits
}

/// Regression test: the worker executed the write in each iteration until the clients of the other
/// one were closed.
fn a_write_that_waits_for_closed_clients_does_not_busy_wait(kind: Backend) {
    let common = common_with(MEMORY, Eviction::None, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let mut other = Worker::new(&common, Vec::new()).expect("a worker");
    fill(&mut worker);
    let _silent = silent_clients(&mut other, 4);
    assert!(worker.session.guard().remove(b"big"));
    settle(&mut worker);
    let mut writer = connect(&mut worker);
    let request = set("new", 60_000);
    let replies = (0..LEN / 60_000).map(|_| &b"+OK\r\n"[..]).collect::<Vec<_>>().concat();
    let all = request.repeat(LEN / 60_000);
    let mut rest = &all[..];
    let mut answers = Vec::new();
    while worker.starving.is_empty() {
        send_some(&mut writer.0, &mut rest);
        run_iteration(&mut worker);
    }
    settle(&mut worker);
    assert!(common.server.clients.is_closing());
    let (mut client, _) = connect(&mut worker);
    for _ in 0..10 {
        client.write_all(b"PING\r\n").expect("sent");
        expect(&mut worker, &mut client, b"+PONG\r\n");
    }
    let waits =
        |worker: &mut Worker<'_>| worker.connections.get(writer.1).map(|it| it.memory_waits);
    assert_eq!(waits(&mut worker), Some(1), "the write was executed again in vain");
    // Each round ends when the other worker closes its clients.
    for _ in 0..MAX_ITERATIONS {
        settle(&mut other);
        settle(&mut worker);
        send_some(&mut writer.0, &mut rest);
        let mut room = [0; 1 << 12];
        while let Ok(len) = writer.0.read(&mut room) {
            answers.extend_from_slice(&room[..len]);
        }
        if answers.len() >= replies.len() {
            break;
        }
    }
    assert_eq!(answers.escape_ascii().to_string(), replies.escape_ascii().to_string());
}

/// Regression test: one client was closed for each attempt, and only the last one freed memory.
fn many_clients_that_keep_one_removed_item_are_closed_in_few_rounds(kind: Backend) {
    const CLIENTS: usize = 200;
    let common = common_with(MEMORY, Eviction::None, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    fill(&mut worker);
    let _silent = silent_clients(&mut worker, CLIENTS);
    assert!(worker.session.guard().remove(b"big"));
    let mut writer = connect(&mut worker);
    // The request, its item and an index that may have grown fit in what the value used.
    let waits = send(&mut worker, &mut writer, &set("new", LEN / 4));
    expect(&mut worker, &mut writer.0, b"+OK\r\n");
    assert_eq!(common.server.clients.output_closed(), CLIENTS as u64);
    assert!((1..=12).contains(&waits), "the write has waited {waits} times");
}

/// Regression test: all of them were closed, one for each attempt, which freed nothing.
fn clients_that_receive_an_item_of_the_cache_are_not_closed_for_a_write(kind: Backend) {
    let common = common_with(MEMORY, Eviction::None, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    // Connections take enough for clients to be closed, but not those that do not read.
    common.server.hold((MEMORY / 6).cast_signed() as isize);
    fill(&mut worker);
    let silent = silent_clients(&mut worker, 20);
    let mut writer = connect(&mut worker);
    for len in [100_000, LEN] {
        let waits = send(&mut worker, &mut writer, &set("new", len));
        expect(&mut worker, &mut writer.0, OOM);
        assert_eq!((waits, common.server.clients.output_closed()), (0, 0), "{len}");
    }
    assert!(silent.iter().all(|(_, number)| worker.connections.get(*number).is_some()));
}

/// Regression test: values that did not fit were gathered in buffers, in addition to items that use
/// the budget.
fn long_requests_do_not_exceed_a_budget_that_items_use(kind: Backend) {
    let common = common_with(MEMORY, Eviction::None, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    fill(&mut worker);
    let mut clients: Vec<_> = (0..8).map(|_| connect(&mut worker)).collect();
    for client in &mut clients {
        // Incomplete, so that all requests exist at the same time.
        let request = set("new", 2 * LEN);
        send(&mut worker, client, &request[..request.len() - 1]);
    }
    for (client, number) in &mut clients {
        client.write_all(b"\n").expect("sent");
        expect(&mut worker, client, OOM);
        assert!(worker.connections.get(*number).is_some(), "the connection goes on");
    }
    assert!(!common.server.cache.is_exhausted());
}

/// Regression test: connections could take five eighths of the budget in addition to items that use
/// all of it.
fn short_requests_of_many_clients_share_an_eighth_of_a_budget_that_items_use(kind: Backend) {
    let common = common_with(MEMORY, Eviction::None, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    fill(&mut worker);
    let request = set("new", 60_000);
    let mut clients: Vec<_> = (0..500).map(|_| connect(&mut worker)).collect();
    for (client, _) in &mut clients {
        let mut rest = &request[..request.len() - 1];
        while !rest.is_empty() {
            send_some(client, &mut rest);
            run_iteration(&mut worker);
        }
        let memory = common.server.cache.stats().memory;
        assert!(memory <= MEMORY + MEMORY / 8 + (1 << 20), "{memory} bytes");
    }
    for (client, number) in &mut clients {
        client.write_all(b"\n").expect("sent");
        expect(&mut worker, client, OOM);
        assert!(worker.connections.get(*number).is_some(), "the connection goes on");
    }
    assert_eq!(common.server.clients.output_closed(), 0);
}

fn replies_are_short_while_items_use_the_whole_budget(kind: Backend) {
    const REPLY_LEN: usize = 10_010;
    let common = common_with(MEMORY, Eviction::None, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    let stored = worker.session.guard().set(b"k", &[7; 10_000], &Write::new()).map(drop);
    stored.expect("room");
    fill(&mut worker);
    let (mut client, number) = connect(&mut worker);
    common.server.hold((MEMORY / 16).cast_signed() as isize);
    assert!(common.server.cache.is_exhausted());
    client.write_all(&b"GET k\r\n".repeat(500)).expect("sent");
    settle(&mut worker);
    let connection = worker.connections.get(number).expect("it is open");
    assert!(connection.blocked, "the client has read nothing");
    let unsent = connection.output_len();
    assert!(unsent <= (16 << 10) + REPLY_LEN, "{unsent} bytes");
}

/// Keys are not values that may be discarded.
fn long_requests_that_store_nothing_are_executed_while_items_use_the_whole_budget(kind: Backend) {
    const KEYS: usize = 500;
    let common = common_with(MEMORY, Eviction::None, kind);
    let mut worker = Worker::new(&common, Vec::new()).expect("a worker");
    fill(&mut worker);
    let mut client = connect(&mut worker);
    common.server.hold((MEMORY / 16).cast_signed() as isize);
    let key = format!("$1000\r\n{}\r\n", "k".repeat(1000));
    let request = format!("*{}\r\n$6\r\nEXISTS\r\n{}", KEYS + 1, key.repeat(KEYS));
    for end in [request.len() - 500, request.len()] {
        let start = if end == request.len() { end - 500 } else { 0 };
        let mut rest = &request.as_bytes()[start..end];
        while !rest.is_empty() {
            send_some(&mut client.0, &mut rest);
            run_iteration(&mut worker);
        }
        settle(&mut worker);
    }
    assert!(common.server.cache.is_exhausted());
    expect(&mut worker, &mut client.0, b":0\r\n");
}
