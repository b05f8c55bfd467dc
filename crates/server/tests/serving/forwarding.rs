//! Nodes that forward requests for slots of other nodes, for clients that know nothing of clusters.

use crate::nodes::{Client, Nodes};
use nuthatch_cluster::member::Command;
use nuthatch_cluster::slot::slot_of;
use nuthatch_server::NodeAccess;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Starts nodes that forward requests of RESP.
fn forwarding(count: usize) -> Nodes {
    let mut nodes = Nodes::default();
    nodes.forwards = true;
    nodes.begin(count);
    nodes
}

fn field(nodes: &Nodes, node: usize, name: &str) -> u64 {
    let info = nodes.ask(node, "CLUSTER INFO");
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.parse().ok()).expect("a number")
}

/// Sends bytes, and checks the bytes of the reply.
fn exchange(client: &mut Client, request: &str, expected: &str) {
    client.0.write_all(request.as_bytes()).expect("sent");
    let mut reply = Vec::new();
    while reply.len() < expected.len() {
        let mut more = [0; 4096];
        let max = more.len().min(expected.len() - reply.len());
        let len = client.0.read(&mut more[..max]).expect("a reply");
        reply.extend_from_slice(&more[..len]);
        let found = String::from_utf8_lossy(&reply);
        assert!(len > 0 && expected.starts_with(&*found), "{request}: {found}");
    }
}

#[test]
fn requests_for_slots_of_other_nodes_are_forwarded() {
    let nodes = forwarding(2);
    let (own, other) = (nodes.key_of(0, 0), nodes.key_of(1, 0));
    let mut client = nodes.client(0);
    assert_eq!(client.ask(&format!("SET {other} there")), "+OK");
    assert_eq!(client.ask(&format!("SET {own} here")), "+OK");
    assert_eq!(nodes.ask(1, &format!("GET {own}")), "here");
    assert_eq!(nodes.ask(0, &format!("OBJECT ENCODING {other}")), "embstr");
    assert_eq!(nodes.ask(0, &format!("MEMORY USAGE {other}")).as_bytes()[0], b':');
    let error = "-ERR value is not an integer or out of range";
    assert_eq!(client.ask(&format!("INCR {other}")), error);
    assert_eq!(client.ask("PING"), "+PONG");
    assert_eq!(field(&nodes, 0, "cluster_forwards_failed"), 0);
    assert_eq!(field(&nodes, 0, "cluster_forwarded_requests"), 4);
    // The replies are in the order of the requests, and those that a client does not want are left
    // out.
    let requests = format!(
        "GET {other}\r\nGET {own}\r\nCLIENT REPLY SKIP\r\nGET {other}\r\nPING\r\n\
         CLIENT REPLY OFF\r\nGET {other}\r\nGET {own}\r\nCLIENT REPLY ON\r\nSTRLEN {other}\r\n"
    );
    let expected = "$5\r\nthere\r\n$4\r\nhere\r\n+PONG\r\n+OK\r\n:5\r\n";
    exchange(&mut client, &requests, expected);
    // A client of RESP3 gets replies of RESP3.
    client.0.write_all(b"HELLO 3\r\n").expect("sent");
    while client.line() != "modules" {}
    assert_eq!(client.line(), "*0");
    exchange(&mut client, &format!("GET {other}none\r\n"), "_\r\n");
    let other_none = nodes.key_of(1, 1);
    exchange(&mut client, &format!("GET {other_none}\r\n"), "_\r\n");
}

/// Limits values of all nodes to this length.
fn limit_values(nodes: &Nodes, len: usize) {
    for node in 0..nodes.all.len() {
        assert_eq!(nodes.ask(node, &format!("CONFIG SET proto-max-bulk-len {len}")), "+OK");
    }
}

#[test]
fn the_longest_values_are_forwarded() {
    let nodes = forwarding(2);
    limit_values(&nodes, 1 << 20);
    let other = nodes.key_of(1, 0);
    let mut client = nodes.client(0);
    let value = "v".repeat(1 << 20);
    let request = format!(
        "*3\r\n$3\r\nSET\r\n${}\r\n{other}\r\n${}\r\n{value}\r\nPING\r\n",
        other.len(),
        value.len()
    );
    exchange(&mut client, &request, "+OK\r\n+PONG\r\n");
    assert_eq!(nodes.ask(1, &format!("GET {other}")), value);
    let expected = format!("${}\r\n{value}\r\n+PONG\r\n", value.len());
    exchange(&mut client, &format!("GET {other}\r\nPING\r\n"), &expected);
}

#[test]
fn commands_over_several_slots_are_split() {
    let nodes = forwarding(2);
    let (a, b, c) = (nodes.key_of(0, 0), nodes.key_of(1, 0), nodes.key_of(1, 1));
    let mut client = nodes.client(0);
    assert_eq!(client.ask(&format!("MSET {c} 3 {a} 1 {b} 2")), "+OK");
    let expected = "*4\r\n$1\r\n3\r\n$1\r\n1\r\n$-1\r\n$1\r\n2\r\n";
    exchange(&mut client, &format!("MGET {c} {a} {c}none {b}\r\n"), expected);
    assert_eq!(client.ask(&format!("EXISTS {a} {b} {a} none")), ":3");
    assert_eq!(client.ask(&format!("TOUCH {a} {b}")), ":2");
    assert_eq!(client.ask(&format!("DEL {a} {b}")), ":2");
    assert_eq!(client.ask(&format!("UNLINK {b} {c} {a}")), ":1");
    let cross = "-CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(client.ask(&format!("MSETNX {a} 1 {b} 2")), cross);
    assert_eq!(client.ask(&format!("RENAME {a} {b}")), cross);
    let arguments = "-ERR wrong number of arguments for 'mset' command";
    assert_eq!(client.ask(&format!("MSET {a} 1 {b}")), arguments);
    assert_eq!(nodes.ask(1, &format!("EXISTS {a} {b}")), ":0");
    // All keys are here.
    let before = field(&nodes, 0, "cluster_forwarded_requests");
    assert_eq!(client.ask(&format!("MSET {a} 1 {} 2", nodes.key_of(0, 1))), "+OK");
    assert_eq!(field(&nodes, 0, "cluster_forwarded_requests"), before);
}

#[test]
fn transactions_are_not_forwarded() {
    let nodes = forwarding(2);
    let (own, other) = (nodes.key_of(0, 0), nodes.key_of(1, 0));
    let moved = format!("-MOVED {} {}", slot_of(other.as_bytes()), nodes.address(1));
    let mut client = nodes.client(0);
    assert_eq!(client.ask(&format!("WATCH {other}")), moved);
    assert_eq!(client.ask("MULTI"), "+OK");
    assert_eq!(client.ask(&format!("SET {own} 1")), "+QUEUED");
    assert_eq!(client.ask(&format!("SET {other} 1")), moved);
    assert!(client.ask("EXEC").starts_with("-EXECABORT"));
    assert_eq!(client.ask(&format!("SET {other} 1")), "+OK");
}

#[test]
fn a_forwarded_request_is_not_forwarded_again() {
    let nodes = forwarding(2);
    let other = nodes.key_of(1, 0);
    let mut client = nodes.client(0);
    assert_eq!(client.ask("CLUSTER FORWARDED"), "+OK");
    let moved = format!("-MOVED {} {}", slot_of(other.as_bytes()), nodes.address(1));
    assert_eq!(client.ask(&format!("GET {other}")), moved);
    assert_eq!(client.ask("RESET"), "+RESET");
    assert_eq!(client.ask(&format!("GET {other}")), "$-1");
    // Nodes without the setting answer as before.
    let nodes = Nodes::start(2);
    let other = nodes.key_of(1, 0);
    assert!(nodes.ask(0, &format!("GET {other}")).starts_with("-MOVED"));
    assert!(nodes.ask(0, &format!("MGET {other} a b c")).starts_with("-CROSSSLOT"));
}

/// The owner cannot be reached, and has a lease.
#[test]
fn a_request_for_an_owner_that_is_gone_fails_after_a_limited_time() {
    let mut nodes = Nodes::default();
    nodes.forwards = true;
    nodes.announced = Some("127.0.0.1:1".to_owned());
    nodes.begin(2);
    let other = nodes.key_of(0, 0);
    let mut client = nodes.client(1);
    let expected =
        "-CLUSTERDOWN The request could not be forwarded: the node at 127.0.0.1:1: Connection";
    let error = client.ask(&format!("SET {other} 1"));
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(field(&nodes, 1, "cluster_forwards_failed"), 1);
    assert_eq!(client.ask("PING"), "+PONG");
}

/// Clients that know nothing of clusters do not repeat a request that failed.
#[test]
fn a_request_waits_until_a_slot_without_an_owner_has_one() {
    let mut nodes = forwarding(2);
    let keys = [nodes.key_of(1, 0), nodes.key_of(1, 1)];
    nodes.all[1].is_connected = false;
    let no_owner = |nodes: &Nodes| nodes.ask(0, "CLUSTER NODES").contains("master,fail");
    for _ in 0..100 {
        if no_owner(&nodes) {
            break;
        }
        nodes.pass(Duration::from_millis(100));
    }
    assert!(no_owner(&nodes));
    let (mut client, mut memcached) = (nodes.client(0), nodes.memcached(0));
    client.0.write_all(format!("SET {} 1\r\n", keys[0]).as_bytes()).expect("sent");
    let set = format!("set {} 0 0 1\r\n2\r\n", keys[1]);
    memcached.0.write_all(set.as_bytes()).expect("sent");
    while field(&nodes, 0, "cluster_forwarded_requests") < 2 {
        thread::yield_now();
    }
    nodes.settle();
    assert_eq!((client.line(), memcached.line()), ("+OK".to_owned(), "STORED".to_owned()));
    assert_eq!(nodes.ask(0, &format!("EXISTS {} {}", keys[0], keys[1])), ":2");
    assert_eq!(field(&nodes, 0, "cluster_forwards_failed"), 0);
}

#[test]
fn memcached_requests_are_forwarded() {
    let nodes = Nodes::start(2);
    let (own, other, third) = (nodes.key_of(0, 0), nodes.key_of(1, 0), nodes.key_of(1, 1));
    let mut client = nodes.memcached(0);
    for key in [&own, &other] {
        exchange(&mut client, &format!("set {key} 7 0 2\r\nab\r\n"), "STORED\r\n");
        exchange(&mut client, &format!("append {key} 0 0 1\r\nc\r\n"), "STORED\r\n");
        exchange(
            &mut client,
            &format!("get {key}\r\n"),
            &format!("VALUE {key} 7 3\r\nabc\r\nEND\r\n"),
        );
        exchange(&mut client, &format!("ms {key} 1 C9\r\n5\r\n"), "EX\r\n");
        exchange(&mut client, &format!("ms {key} 1 E9\r\n5\r\n"), "HD\r\n");
        exchange(&mut client, &format!("cas {key} 1 0 1 8\r\n6\r\n"), "EXISTS\r\n");
        exchange(&mut client, &format!("cas {key} 1 0 1 9\r\n6\r\n"), "STORED\r\n");
        exchange(&mut client, &format!("incr {key} 5\r\n"), "11\r\n");
        exchange(&mut client, &format!("touch {key} 100\r\n"), "TOUCHED\r\n");
        exchange(
            &mut client,
            &format!("mg {key} t v f q\r\nmn\r\n"),
            "VA 2 t100 f1\r\n11\r\nMN\r\n",
        );
    }
    // Requests without a reply, and the order of replies.
    let requests = format!(
        "set {third} 0 0 1 noreply\r\n3\r\nset {own} 0 0 1 noreply\r\n1\r\n\
         set {other} 0 0 1 noreply\r\n2\r\nget {third} none {own} {other} {third}\r\nversion\r\n"
    );
    let expected = format!(
        "VALUE {third} 0 1\r\n3\r\nVALUE {own} 0 1\r\n1\r\nVALUE {other} 0 1\r\n2\r\n\
         VALUE {third} 0 1\r\n3\r\nEND\r\nVERSION "
    );
    exchange(&mut client, &requests, &expected);
    client.line();
    exchange(&mut client, &format!("delete {other}\r\n"), "DELETED\r\n");
    assert_eq!(nodes.ask(1, &format!("GET {third}")), "3");
    assert_eq!(field(&nodes, 0, "cluster_forwards_failed"), 0);
}

#[test]
fn flush_all_of_memcached_flushes_all_nodes() {
    let nodes = Nodes::start(2);
    let keys = [nodes.key_of(0, 0), nodes.key_of(1, 0)];
    let mut client = nodes.memcached(0);
    for request in ["flush_all\r\n", "flush_all noreply\r\nflush_all 0\r\n"] {
        for key in &keys {
            exchange(&mut client, &format!("set {key} 0 0 1\r\n1\r\n"), "STORED\r\n");
        }
        exchange(&mut client, request, "OK\r\n");
        for key in &keys {
            exchange(&mut client, &format!("get {key}\r\n"), "END\r\n");
        }
    }
}

#[test]
fn flushall_flushes_all_nodes_if_requests_are_forwarded() {
    let nodes = forwarding(2);
    let keys = [nodes.key_of(0, 0), nodes.key_of(1, 0)];
    let mut client = nodes.client(0);
    let fill = |client: &mut Client| {
        for key in &keys {
            assert_eq!(client.ask(&format!("SET {key} 1")), "+OK");
        }
    };
    for request in ["FLUSHALL", "FLUSHDB ASYNC"] {
        fill(&mut client);
        // Each node has its own items.
        assert_eq!(client.ask("DBSIZE"), ":1");
        assert_eq!(client.ask(request), "+OK");
        assert_eq!(client.ask(&format!("EXISTS {} {}", keys[0], keys[1])), ":0");
    }
    // These flush one node.
    for before in ["MULTI", "CLUSTER FORWARDED"] {
        fill(&mut client);
        assert_eq!(client.ask(before), "+OK");
        client.ask("FLUSHALL");
        if before == "MULTI" {
            assert_eq!([client.ask("EXEC"), client.line()], ["*1", "+OK"]);
        }
        let found = keys.iter().map(|key| client.ask(&format!("EXISTS {key}")));
        assert_eq!(found.filter(|reply| reply == ":0").count(), 1);
    }
}

/// It does not know which nodes there are.
#[test]
fn a_node_without_a_lease_flushes_no_nodes() {
    let mut nodes = forwarding(2);
    assert_eq!(nodes.ask(0, &format!("SET {} 1", nodes.key_of(1, 0))), "+OK");
    nodes.all[1].is_connected = false;
    nodes.pass(Duration::from_secs(20));
    assert_eq!(nodes.ask(1, "FLUSHALL"), "-CLUSTERDOWN The cluster is down");
    let error = "SERVER_ERROR CLUSTERDOWN The cluster is down\r\n";
    exchange(&mut nodes.memcached(1), "flush_all\r\n", error);
    exchange(&mut nodes.memcached(1), "get a\r\n", error);
    let info = nodes.ask(1, "INFO cluster");
    assert!(info.ends_with("cluster_refused_clusterdown:3"), "{info}");
    assert_eq!(nodes.ask(1, "DBSIZE"), ":1");
    // It has lost its slots to the other one, which need not reach it.
    assert_eq!(nodes.ask(0, "FLUSHALL"), "+OK");
}

/// The rest of an object that is refused was taken for requests.
#[test]
fn bytes_after_a_forwarded_request_are_no_requests() {
    let nodes = Nodes::start(2);
    let other = nodes.key_of(1, 0);
    let mut client = nodes.memcached(0);
    let too_long = 64 << 20;
    exchange(&mut client, &format!("set {other} 0 0 1\r\n1\r\n"), "STORED\r\n");
    let value = "flush_all\r\n".repeat(too_long / 11 + 1);
    let request =
        format!("set {other} 0 0 {too_long}\r\n{}\r\nget {other}\r\n", &value[..too_long]);
    exchange(&mut client, &request, "SERVER_ERROR object too large for cache\r\nEND\r\n");
    // The bytes of the request that is ignored arrive after the one before it was forwarded.
    exchange(&mut client, &format!("set {other} 0 0 1\r\n1\r\n"), "STORED\r\n");
    let long_key = "k".repeat(300);
    let ignored = format!("set {long_key} 0 0 100 noreply\r\n{}", &value[..50]);
    exchange(&mut client, &format!("append {other} 0 0 1\r\n2\r\n{ignored}"), "STORED\r\n");
    let rest = format!("{}\r\nget {other}\r\n", &value[50..100]);
    exchange(&mut client, &rest, &format!("VALUE {other} 0 2\r\n12\r\nEND\r\n"));
}

#[test]
fn the_longest_values_of_memcached_are_forwarded() {
    let nodes = Nodes::start(2);
    limit_values(&nodes, 1 << 20);
    let other = nodes.key_of(1, 0);
    let mut client = nodes.memcached(0);
    let value = "v".repeat(1 << 20);
    let request = format!("set {other} 3 0 {}\r\n{value}\r\nversion\r\n", value.len());
    exchange(&mut client, &request, "STORED\r\nVERSION ");
    client.line();
    let expected = format!("VALUE {other} 3 {}\r\n{value}\r\nEND\r\n", value.len());
    exchange(&mut client, &format!("get {other}\r\n"), &expected);
}

/// A client of each protocol at a node, which count until the test ends.
fn count(nodes: &mut Nodes, node: usize, keys: &[String; 2]) -> (Arc<AtomicBool>, JoinHandle<u64>) {
    let (mut resp, mut memcached) = (nodes.client(node), nodes.memcached(node));
    let keys = keys.clone().map(|key| format!("{{{key}}}:{node}"));
    let (is_done, replies) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    nodes.replies.push(Arc::clone(&replies));
    let done = Arc::clone(&is_done);
    let thread = thread::spawn(move || {
        for (number, key) in (1..).flat_map(|number| keys.iter().map(move |key| (number, key))) {
            assert_eq!(resp.ask(&format!("INCR {key}")), format!(":{}", 2 * number - 1));
            assert_eq!(memcached.ask(&format!("incr {key} 1")), (2 * number).to_string());
            replies.fetch_add(2, Ordering::Relaxed);
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
        replies.load(Ordering::Relaxed)
    });
    (is_done, thread)
}

/// Clients count while all slots move forth and back: no error, and no change is lost or made
/// twice.
#[test]
fn requests_are_forwarded_while_slots_move() {
    let mut nodes = forwarding(2);
    let keys = [nodes.key_of(0, 0), nodes.key_of(1, 0)];
    let clients = [0, 1].map(|node| count(&mut nodes, node, &keys));
    for node in [0, 1] {
        nodes.command(node, Command::Drain);
        nodes.pass_until(|nodes| nodes.all[node].cluster.served_slots() == 0);
        nodes.command(node, Command::Join);
        nodes.pass_until(|nodes| nodes.all[node].cluster.served_slots() == 8_192);
    }
    for (is_done, thread) in clients {
        is_done.store(true, Ordering::Relaxed);
        nodes.pass_until(|_| thread.is_finished());
        assert!(thread.join().expect("all replies as expected") > 0);
    }
}

/// Starts two nodes that forward requests. The first one announces an address of this test, which
/// gets what the second one forwards to it.
fn stand_in() -> (Nodes, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let mut nodes = Nodes::default();
    nodes.forwards = true;
    nodes.announced = Some(listener.local_addr().expect("an address").to_string());
    nodes.begin(2);
    (nodes, listener)
}

/// Accepts a connection of a node that forwards requests.
fn accept(listener: &TcpListener) -> Client {
    let mut client = Client(listener.accept().expect("a connection").0);
    assert_eq!(client.words(2), ["CLUSTER", "FORWARDED"]);
    client.0.write_all(b"+OK\r\n").expect("sent");
    client
}

/// The owner replies late.
#[test]
fn a_slow_owner_delays_only_clients_that_wait_for_it() {
    let (nodes, listener) = stand_in();
    let (own, other) = (nodes.key_of(1, 0), nodes.key_of(0, 0));
    let get = format!("GET {other}\r\nPING\r\n");
    let mut killed = nodes.client(1);
    killed.0.write_all(get.as_bytes()).expect("sent");
    let mut owner = accept(&listener);
    assert_eq!(owner.words(2), ["GET", &*other]);
    let mut other_client = nodes.client(1);
    assert_eq!(other_client.ask(&format!("SET {own} 1")), "+OK");
    assert_eq!(other_client.ask("CLIENT KILL TYPE normal SKIPME yes"), ":1");
    assert!(!matches!(killed.0.read(&mut [0]), Ok(1..)));
    // The next client has the number of the one before, and not its reply.
    let mut client = nodes.client(1);
    client.0.write_all(get.as_bytes()).expect("sent");
    owner.0.write_all(b"$1\r\n5\r\n").expect("sent");
    assert_eq!(owner.words(2), ["GET", &*other]);
    owner.0.write_all(b"$1\r\n6\r\n").expect("sent");
    exchange(&mut client, "", "$1\r\n6\r\n+PONG\r\n");
    // A node that drains waits for the reply.
    client.0.write_all(get.as_bytes()).expect("sent");
    assert_eq!(owner.words(2), ["GET", &*other]);
    nodes.all[1].running.stopper().drain(Duration::from_hours(1));
    assert_eq!(other_client.0.read(&mut [0]).expect("the end"), 0);
    owner.0.write_all(b"$1\r\n7\r\n").expect("sent");
    let mut rest = String::new();
    client.0.read_to_string(&mut rest).expect("the reply and the end");
    assert_eq!(rest, "$1\r\n7\r\n+PONG\r\n");
}

#[test]
fn a_node_stops_while_requests_are_forwarded() {
    let (nodes, listener) = stand_in();
    let other = nodes.key_of(0, 0);
    let mut client = nodes.client(1);
    // The sockets do not take all of it.
    let value = "v".repeat(16 << 20);
    let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n{other}\r\n", other.len());
    let request = format!("{head}${}\r\n{value}\r\n", value.len());
    client.0.write_all(request.as_bytes()).expect("sent");
    let mut owner = accept(&listener);
    assert_eq!(owner.words(2), ["SET", &*other]);
    drop(nodes);
    assert!(!matches!(client.0.read(&mut [0]), Ok(1..)));
}

/// Replies use the memory of connections before they are complete.
#[test]
fn forwarded_requests_and_replies_use_limited_memory() {
    let (nodes, listener) = stand_in();
    let other = nodes.key_of(0, 0);
    let mut client = nodes.client(1);
    client.0.write_all(format!("GET {other}\r\n").as_bytes()).expect("sent");
    let mut owner = accept(&listener);
    assert_eq!(owner.words(2), ["GET", &*other]);
    // Nearly the half of the memory of the node.
    let (len, half) = (30 << 20, "v".repeat(15 << 20));
    owner.0.write_all(format!("${len}\r\n{half}").as_bytes()).expect("sent");
    owner.0.write_all(&half.as_bytes()[1..]).expect("sent");
    let mut writer = nodes.client(1);
    let is_counted = |writer: &mut Client| {
        writer.ask("INFO memory").lines().any(|line| {
            line.strip_prefix("used_memory_connections:")
                .is_some_and(|bytes| bytes.parse::<usize>().expect("a number") > len - (1 << 20))
        })
    };
    while !is_counted(&mut writer) {}
    let value = "v".repeat(4 << 20);
    let request = format!(
        "*3\r\n$3\r\nSET\r\n${}\r\n{other}\r\n${}\r\n{value}\r\n",
        other.len(),
        value.len()
    );
    let error = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    exchange(&mut writer, &request, error);
    owner.0.write_all(b"v").expect("sent");
    owner.0.write_all(b"\r\n").expect("sent");
    assert_eq!(client.line().len(), len);
    // A longer reply is an error, and the next request has another connection.
    client.0.write_all(format!("GET {other}\r\n").as_bytes()).expect("sent");
    assert_eq!(owner.words(2), ["GET", &*other]);
    let head = format!("${}\r\n", 40 << 20);
    let pieces = [head.as_bytes(), half.as_bytes(), half.as_bytes(), half.as_bytes()];
    // The node closes the connection meanwhile.
    let _ = pieces.iter().try_for_each(|piece| owner.0.write_all(piece));
    let error = client.line();
    assert!(error.ends_with("its reply is longer than the free memory"), "{error}");
    client.0.write_all(format!("GET {other}\r\n").as_bytes()).expect("sent");
    let mut owner = accept(&listener);
    assert_eq!(owner.words(2), ["GET", &*other]);
    owner.0.write_all(b"$1\r\n5\r\n").expect("sent");
    assert_eq!(client.line(), "5");
}

/// A request waits for its owner while the login of the nodes is replaced.
#[test]
fn a_new_login_is_used_at_once() {
    let mut nodes = Nodes::default();
    nodes.forwards = true;
    nodes.access.password = Some("new".to_owned());
    nodes.begin(2);
    let other = nodes.key_of(1, 0);
    let old = NodeAccess { password: Some("old".to_owned()), ..nodes.access.clone() };
    nodes.all[0].cluster.set_access(old);
    let mut client = nodes.client(0);
    client.0.write_all(format!("INCR {other}\r\n").as_bytes()).expect("sent");
    while field(&nodes, 0, "cluster_forwarded_requests") == 0 {}
    nodes.all[0].cluster.set_access(nodes.access.clone());
    assert_eq!(client.line(), ":1");
}

/// Another process at the address of an owner, which accepts requests and replies to the last one
/// only.
fn reply_to_the_third(listener: &TcpListener) {
    for connection in 1..=3 {
        let mut client = accept(listener);
        assert_eq!(client.words(1), [if connection == 1 { "SET" } else { "GET" }]);
        if connection == 3 {
            client.0.write_all(b"$1\r\n5\r\n").expect("sent");
        }
    }
}

impl Client {
    /// Reads the first arguments of a request.
    fn words(&mut self, count: usize) -> Vec<String> {
        assert!(self.line().starts_with('*'));
        (0..count).map(|_| self.line()).collect()
    }
}

/// It is not known whether a change was made.
#[test]
fn a_lost_reply_closes_the_connection_of_a_writer_only() {
    let (nodes, listener) = stand_in();
    let other = nodes.key_of(0, 0);
    let owner = thread::spawn(move || reply_to_the_third(&listener));
    let mut writer = nodes.client(1);
    writer.0.write_all(format!("SET {other} 1\r\n").as_bytes()).expect("sent");
    let mut reply = Vec::new();
    writer.0.read_to_end(&mut reply).expect("the end");
    assert_eq!(reply, b"");
    // The request of a reader is sent again.
    assert_eq!(nodes.ask(1, &format!("GET {other}")), "5");
    owner.join().expect("the requests as expected");
    assert_eq!(field(&nodes, 1, "cluster_forwards_failed"), 1);
}

/// A node forwards with its own login, so it checks the permissions of the client before.
#[test]
fn requests_without_permission_are_not_forwarded() {
    let mut nodes = Nodes::default();
    nodes.forwards = true;
    nodes.users = "user default on nopass ~* +@all\nuser few on >pw ~few:* +@all\n\
                   user plain on >pw ~* +@all -@dangerous";
    nodes.begin(2);
    let other = nodes.key_of(1, 0);
    let mut client = nodes.client(0);
    assert_eq!(client.ask("AUTH few pw"), "+OK");
    let denied = "-NOPERM this user has no permissions to access one of the keys used as arguments";
    assert_eq!(client.ask(&format!("GET {other}")), denied);
    assert!(client.ask(&format!("CLUSTER MEMCACHED \"get {other}\"")).starts_with("-NOPERM"));
    assert_eq!(
        client.ask("CLUSTER MEMCACHED \"get few\" more"),
        "-NOPERM this user has no permissions to run the request"
    );
    let line = client.ask("CLUSTER MEMCACHED version");
    assert!(line.starts_with("VERSION "), "{line}");
    assert_eq!(
        client.ask("CLUSTER MEMCACHED nonsense"),
        "-ERR expected a line of memcached, and its value"
    );
    assert_eq!(client.ask("CLUSTER FORWARDED"), "+OK");
    assert_eq!(client.ask(&format!("GET {other}")), denied);
    assert_eq!(client.ask("AUTH plain pw"), "+OK");
    for request in ["CLUSTER FORWARDED", "CLUSTER MEMCACHED version"] {
        let error = client.ask(request);
        assert!(error.starts_with("-NOPERM this user has no permissions to run the 'cluster|"));
    }
    assert_eq!(field(&nodes, 0, "cluster_forwarded_requests"), 0);
}
