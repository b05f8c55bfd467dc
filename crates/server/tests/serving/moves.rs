//! Slots that move between nodes with their items, while clients use them.

use crate::nodes::{Client, Nodes};
use nuthatch_cluster::member::Command;
use nuthatch_cluster::slot::slot_of;
use nuthatch_server::{NodeAccess, Tls, TlsFiles};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A client of a cluster: it follows `MOVED`, and accepts no other error.
struct ClusterClient {
    connections: BTreeMap<String, Client>,
    /// The address of the last owner of each slot.
    owners: BTreeMap<u16, String>,
    first: String,
    replies: Arc<AtomicU64>,
}

impl ClusterClient {
    fn new(first: String) -> Self {
        let (connections, owners, replies) = Default::default();
        Self { connections, owners, first, replies }
    }

    fn owner(&mut self, key: &str) -> &mut Client {
        let slot = slot_of(key.as_bytes());
        let address = self.owners.get(&slot).unwrap_or(&self.first);
        self.connections
            .entry(address.clone())
            .or_insert_with(|| Client(TcpStream::connect(address).expect("a connection")))
    }

    /// Sends a request to the last owner of a slot, and notes the new one if it has moved.
    fn ask_owner(&mut self, key: &str, request: &str) -> String {
        let reply = self.owner(key).ask(request);
        self.replies.fetch_add(1, Ordering::Relaxed);
        if let Some(moved) = reply.strip_prefix("-MOVED ") {
            let address = moved.split_once(' ').expect("an address").1.to_owned();
            self.owners.insert(slot_of(key.as_bytes()), address);
        }
        reply
    }

    fn line_of_owner(&mut self, key: &str) -> String {
        self.owner(key).line()
    }

    /// Sends a request to the owner of a slot.
    fn ask(&mut self, key: &str, request: &str) -> String {
        loop {
            let reply = self.ask_owner(key, request);
            if !reply.starts_with("-MOVED ") {
                assert!(!reply.starts_with('-'), "{request}: {reply}");
                return reply;
            }
        }
    }
}

#[test]
fn items_move_with_all_that_belongs_to_them() {
    let mut nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    let keys: Vec<String> = (0..40).map(|number| format!("key{number}")).collect();
    for key in &keys {
        assert_eq!(client.ask(&format!("SET {key} {key} PXAT 33000000000000")), "+OK");
    }
    assert_eq!(client.ask("SETRANGE {key1}long 300000 v"), ":300001");
    for _ in 0..3 {
        assert_eq!(client.ask("GET key1"), "key1");
    }
    let frequency = client.ask("OBJECT FREQ key1");
    // All slots move.
    nodes.add();
    nodes.command(0, Command::Drain);
    nodes.pass_until(|nodes| nodes.all[1].cluster.served_slots() == 16_384);
    for key in &keys {
        assert_eq!(nodes.ask(1, &format!("PEXPIRETIME {key}")), ":33000000000000");
        assert_eq!(nodes.ask(1, &format!("GET {key}")), *key);
    }
    assert_eq!(nodes.ask(1, "STRLEN {key1}long"), ":300001");
    assert_eq!(nodes.ask(1, "OBJECT FREQ key1"), frequency);
    // The previous owner has dropped them.
    let mut former = nodes.client(0);
    while former.ask("DBSIZE") != ":0" {}
}

/// A client on a thread of its own, until the test ends.
struct Running {
    is_done: Arc<AtomicBool>,
    replies: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Starts a client, which calls `work` again and again.
    fn start(nodes: &mut Nodes, mut work: impl FnMut(&mut ClusterClient) + Send + 'static) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let mut client = ClusterClient::new(nodes.address(0));
        let replies = Arc::clone(&client.replies);
        nodes.replies.push(Arc::clone(&replies));
        let done = Arc::clone(&is_done);
        let thread = thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                work(&mut client);
            }
        });
        Self { is_done, replies, thread }
    }

    /// Lets the client make this many more requests, and ends it.
    fn end(self, nodes: &mut Nodes, requests: u64) {
        let until = self.replies.load(Ordering::Relaxed) + requests;
        nodes.pass_until(|_| {
            self.thread.is_finished() || self.replies.load(Ordering::Relaxed) >= until
        });
        self.is_done.store(true, Ordering::Relaxed);
        nodes.pass_until(|_| self.thread.is_finished());
        self.thread.join().expect("all replies as expected");
    }
}

/// Moves the slots of both nodes forth and back.
fn move_slots(nodes: &mut Nodes, turns: usize) {
    for node in (0..turns).map(|turn| turn % 2) {
        nodes.command(node, Command::Drain);
        nodes.pass_until(|nodes| nodes.all[node].cluster.served_slots() == 0);
        nodes.command(node, Command::Join);
        nodes.pass_until(|nodes| nodes.all[node].cluster.served_slots() == 8_192);
    }
}

/// Increments counters, stores and removes keys, while the slots move forth and back.
#[test]
fn no_change_is_lost_while_slots_move() {
    let mut nodes = Nodes::default();
    nodes.access.bytes_per_s = 8 << 20;
    nodes.begin(1);
    let mut client = nodes.client(0);
    // Sending these takes long enough for changes meanwhile.
    for number in 0..40 {
        assert_eq!(client.ask(&format!("SETRANGE long{number} 50000 v")), ":50001");
    }
    nodes.add();
    nodes.settle();
    let clients = (0..3).map(|number| {
        let mut round = 0;
        Running::start(&mut nodes, move |client| {
            round += 1;
            for at in 0..50 {
                let counter = format!("counter{number}.{at}");
                assert_eq!(client.ask(&counter, &format!("INCR {counter}")), format!(":{round}"));
                let key = format!("key{number}.{at}");
                let (request, reply) = match round % 3 {
                    0 => (format!("DEL {key}"), ":1".to_owned()),
                    1 => (format!("SET {key} {round} NX"), "+OK".to_owned()),
                    _ => {
                        let len = (round - 1).to_string().len() + 1;
                        (format!("APPEND {key} ."), format!(":{len}"))
                    }
                };
                assert_eq!(client.ask(&key, &request), reply, "{request}");
            }
        })
    });
    let clients: Vec<Running> = clients.collect();
    move_slots(&mut nodes, 6);
    for client in clients {
        client.end(&mut nodes, 300);
    }
}

#[test]
fn a_transaction_waits_for_slots_that_move() {
    let mut nodes = Nodes::start(2);
    let (key, mut total) = (nodes.key_of(0, 0), 0);
    let client = Running::start(&mut nodes, move |client| {
        let increment = format!("INCR {key}");
        let queued = |client: &mut ClusterClient| {
            client.ask_owner(&key, "MULTI") == "+OK"
                && client.ask_owner(&key, &increment) == "+QUEUED"
                && client.ask_owner(&key, &increment) == "+QUEUED"
        };
        if !queued(client) {
            client.ask_owner(&key, "DISCARD");
            return;
        }
        let reply = client.ask_owner(&key, "EXEC");
        if reply == "*2" {
            // No increment is lost or repeated.
            let lines = [client.line_of_owner(&key), client.line_of_owner(&key)];
            assert_eq!(lines, [format!(":{}", total + 1), format!(":{}", total + 2)]);
            total += 2;
        }
    });
    move_slots(&mut nodes, 4);
    client.end(&mut nodes, 100);
}

#[test]
fn slots_stay_where_they_are_if_the_target_does_not_respond() {
    let mut nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    assert_eq!(client.ask("SET key 1"), "+OK");
    nodes.add();
    // The server of the target stops, while its membership still renews the lease.
    nodes.all[1].running.stopper().stop();
    nodes.command(0, Command::Drain);
    nodes.pass_until(|nodes| nodes.ask(0, "CLUSTER INFO").contains("cluster_moves_failed:2"));
    assert_eq!(client.ask("INCR key"), ":2");
    assert_eq!(nodes.all[0].cluster.served_slots(), 16_384);
    // Its lease ends.
    nodes.all[1].is_connected = false;
    nodes.pass(Duration::from_secs(20));
    assert_eq!(client.ask("INCR key"), ":3");
}

/// Nodes log in to each other, over TLS, with a certificate for their address.
#[test]
fn items_move_and_requests_are_forwarded_over_tls_after_a_login() {
    let folder = tempfile::tempdir().expect("a folder");
    let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a pair");
    let files = TlsFiles {
        cert: folder.path().join("cert"),
        key: folder.path().join("key"),
        client_ca: None,
    };
    std::fs::write(&files.cert, generated.cert.pem()).expect("a file");
    std::fs::write(&files.key, generated.signing_key.serialize_pem()).expect("a file");
    let mut nodes = Nodes::default();
    nodes.tls = Some(Tls::open(&files).expect("good files"));
    nodes.access.password = Some("s3cret".to_owned());
    nodes.forwards = true;
    nodes.begin(1);
    nodes.add();
    let mut client = nodes.client(0);
    assert_eq!(client.ask("SET key 1"), "+OK");
    assert_eq!(client.ask("SETRANGE long 300000 v"), ":300001");
    nodes.command(0, Command::Drain);
    // Without TLS, and with a password that is wrong, the target refuses.
    nodes.pass_until(|nodes| nodes.ask(0, "CLUSTER INFO").contains("cluster_moves_failed:1"));
    let roots = nuthatch_listen::tls::roots(&files.cert).expect("a certificate");
    let tls = nuthatch_listen::tls::client_config(roots, None).expect("a configuration");
    let mut access = NodeAccess { tls: Some(tls), ..NodeAccess::default() };
    access.password = Some("other".to_owned());
    nodes.all[0].cluster.set_access(access.clone());
    nodes.pass_until(|nodes| nodes.ask(0, "CLUSTER INFO").contains("cluster_moves_failed:3"));
    access.password = Some("s3cret".to_owned());
    nodes.all[0].cluster.set_access(access);
    nodes.pass_until(|nodes| nodes.all[1].cluster.served_slots() == 16_384);
    assert_eq!(nodes.ask(1, "GET key"), "1");
    assert_eq!(nodes.ask(1, "STRLEN long"), ":300001");
    for request in ["INCR key", "STRLEN long"] {
        assert_eq!(client.ask(request), if request == "INCR key" { ":2" } else { ":300001" });
    }
}

/// An item was lost if it was nearly as long as a value may be.
#[test]
fn the_longest_values_move_too() {
    let mut nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    let len = 1 << 20;
    assert_eq!(client.ask(&format!("CONFIG SET proto-max-bulk-len {len}")), "+OK");
    assert_eq!(client.ask(&format!("SETRANGE key {} v", len - 1)), format!(":{len}"));
    nodes.add();
    assert_eq!(nodes.ask(1, &format!("CONFIG SET proto-max-bulk-len {len}")), "+OK");
    nodes.command(0, Command::Drain);
    nodes.pass_until(|nodes| nodes.all[1].cluster.served_slots() == 16_384);
    assert_eq!(nodes.ask(1, "STRLEN key"), format!(":{len}"));
    assert!(nodes.ask(0, "CLUSTER INFO").contains("cluster_left_out_items:0"));
}

/// The items that one step finds were one request, which was longer than a value may be.
#[test]
fn many_long_values_move() {
    let mut nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    for number in 0..60 {
        let reply = client.ask(&format!("SETRANGE key{number} 99999 v"));
        assert_eq!(reply, ":100000");
    }
    nodes.add();
    assert_eq!(nodes.ask(1, &format!("CONFIG SET proto-max-bulk-len {}", 1 << 20)), "+OK");
    nodes.command(0, Command::Drain);
    nodes.pass_until(|nodes| nodes.all[1].cluster.served_slots() == 16_384);
    assert_eq!(nodes.ask(1, "DBSIZE"), ":60");
    assert!(nodes.ask(0, "CLUSTER INFO").contains("cluster_moves_failed:0"));
}

#[test]
fn an_item_that_is_too_long_for_the_target_is_counted() {
    let mut nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    assert_eq!(client.ask(&format!("SETRANGE key {} v", 1 << 20)), format!(":{}", (1 << 20) + 1));
    nodes.add();
    assert_eq!(nodes.ask(1, &format!("CONFIG SET proto-max-bulk-len {}", 1 << 20)), "+OK");
    nodes.command(0, Command::Drain);
    nodes.pass_until(|nodes| nodes.all[1].cluster.served_slots() == 16_384);
    assert_eq!(nodes.ask(1, "EXISTS key"), ":0");
    assert!(nodes.ask(0, "CLUSTER INFO").contains("cluster_left_out_items:1"));
}

#[test]
fn a_flush_removes_the_items_that_were_sent_before() {
    let mut nodes = Nodes::default();
    nodes.access.bytes_per_s = 1 << 20;
    nodes.begin(1);
    let mut client = nodes.client(0);
    for number in 0..40 {
        assert_eq!(client.ask(&format!("SETRANGE key{number} 50000 v")), ":50001");
    }
    nodes.add();
    nodes.command(0, Command::Drain);
    nodes.pass_until(|nodes| !nodes.ask(0, "CLUSTER INFO").contains("cluster_sent_items:0"));
    assert_eq!(client.ask("FLUSHALL"), "+OK");
    nodes.pass_until(|nodes| nodes.all[1].cluster.served_slots() == 16_384);
    assert_eq!(nodes.ask(1, "DBSIZE"), ":0");
}

/// Ends a loop of another thread, also if the test fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Each flush began the transfer anew, so it never ended.
#[test]
fn slots_move_while_a_client_removes_all_items_again_and_again() {
    let mut nodes = Nodes::default();
    nodes.access.bytes_per_s = 1 << 20;
    nodes.begin(1);
    let (mut client, is_end) = (nodes.client(0), AtomicBool::new(false));
    for number in 0..40 {
        assert_eq!(client.ask(&format!("SETRANGE key{number} 50000 v")), ":50001");
    }
    nodes.add();
    nodes.command(0, Command::Drain);
    nodes.pass_until(|nodes| !nodes.ask(0, "CLUSTER INFO").contains("cluster_sent_items:0"));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_end.load(Ordering::Relaxed) {
                assert_eq!(client.ask("FLUSHALL"), "+OK");
            }
        });
        let _end = SetAtEnd(&is_end);
        nodes.pass_until(|nodes| nodes.all[1].cluster.served_slots() == 16_384);
    });
    assert_eq!(nodes.ask(1, "DBSIZE"), ":0");
    assert!(nodes.ask(0, "CLUSTER INFO").contains("cluster_moves_failed:0"));
}

#[test]
fn items_of_transfers_that_are_not_open_are_refused() {
    let nodes = Nodes::start(2);
    let (own, other) = (nodes.all[0].id, nodes.all[1].id);
    let ask = |rest: &str| nodes.ask(0, &format!("CLUSTER TRANSFER {rest}"));
    let not_ready = "-TRYAGAIN the slots are not ready for their items";
    assert_eq!(ask(&format!("{other} 1 BEGIN 0-5")), not_ready);
    assert_eq!(ask(&format!("{own} 1 BEGIN 0-5")), not_ready);
    let unknown = "-ERR no such transfer is open";
    assert_eq!(ask(&format!("{other} 1 ITEMS abc")), unknown);
    assert_eq!(ask(&format!("{other} 1 COMPLETE")), unknown);
    assert_eq!(ask("x 1 COMPLETE"), "-ERR expected the identifier of a node");
    assert_eq!(ask(&format!("{other} 1 BEGIN 5-0")), "-ERR expected slots such as 0-5,7");
    assert_eq!(ask(&format!("{other} 1 END")), "-ERR syntax error");
    assert_eq!(ask(&format!("{other} x COMPLETE")), "-ERR syntax error");
}
