//! A server as a node of a cluster: which requests it executes, and when.

use crate::nodes::{Client, Nodes};
use crate::served::{cache, connect};
use nuthatch_cluster::boot_clock::SystemBootClock;
use nuthatch_cluster::node_id::NodeId;
use nuthatch_cluster::slot::slot_of;
use nuthatch_server::state::Server;
use nuthatch_server::{Cluster, Listener, Options, Protocol, Running};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const NOT_PERMITTED: &str = "-CLUSTERDOWN The cluster is down";

#[test]
fn a_node_executes_requests_for_its_slots() {
    let nodes = Nodes::start(2);
    let (own, second, other) = (nodes.key_of(0, 0), nodes.key_of(0, 1), nodes.key_of(1, 0));
    let mut client = nodes.client(0);
    assert_eq!(client.ask(&format!("SET {own} 1")), "+OK");
    assert_eq!(client.ask(&format!("GET {own}")), "1");
    let moved = format!("-MOVED {} {}", slot_of(other.as_bytes()), nodes.address(1));
    assert_eq!(client.ask(&format!("GET {other}")), moved);
    assert_eq!(client.ask(&format!("MGET {{{other}}}1 {{{other}}}2")), moved);
    assert_eq!(nodes.ask(1, &format!("GET {other}")), "$-1");
    let cross = "-CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(client.ask(&format!("MGET {own} {second}")), cross);
    assert_eq!(client.ask(&format!("RENAME {own} {other}")), cross);
    assert_eq!(client.ask(&format!("MSET {{{own}}}1 a {{{own}}}2 b")), "+OK");
    assert_eq!(client.ask(&format!("OBJECT ENCODING {other}")), moved);
    assert_eq!(client.ask("SELECT 0"), "+OK");
    assert_eq!(client.ask("SELECT 1"), "-ERR SELECT is not allowed in cluster mode");
    for command in ["READONLY", "READWRITE", "ASKING"] {
        assert_eq!(client.ask(command), "+OK");
    }
    assert_eq!(client.ask("PING"), "+PONG");
}

/// The slots of requests with one key are checked for a whole batch before it is executed. A
/// request that is only partly seen then must not be taken for one.
#[test]
fn slots_are_checked_in_batches_of_any_size() {
    let nodes = Nodes::start(2);
    let (own, second, other) = (nodes.key_of(0, 0), nodes.key_of(0, 1), nodes.key_of(1, 0));
    let cross = "-CROSSSLOT Keys in request don't hash to the same slot";
    for many in 250..260 {
        let mut client = nodes.client(0);
        let keys = vec![own.as_str(); many].join(" ");
        let batch = [
            format!("EXISTS {keys}"),
            format!("EXISTS {own} {second}"),
            format!("SET {own} 1"),
            format!("GET {other}"),
            format!("EXISTS {own}"),
        ];
        let mut replies = vec![client.ask(&batch.join("\r\n"))];
        replies.extend(batch[1..].iter().map(|_| client.line()));
        let moved = format!("-MOVED {} {}", slot_of(other.as_bytes()), nodes.address(1));
        let exist = if many == 250 { ":0".to_owned() } else { format!(":{many}") };
        assert_eq!(replies, [exist.as_str(), cross, "+OK", moved.as_str(), ":1"], "{many}");
    }
}

#[test]
fn the_keys_of_a_transaction_belong_to_one_served_slot() {
    let nodes = Nodes::start(2);
    let (own, second, other) = (nodes.key_of(0, 0), nodes.key_of(0, 1), nodes.key_of(1, 0));
    let mut client = nodes.client(0);
    let moved = format!("-MOVED {} {}", slot_of(other.as_bytes()), nodes.address(1));
    assert_eq!(client.ask(&format!("WATCH {other}")), moved);
    assert_eq!(client.ask("MULTI"), "+OK");
    assert_eq!(client.ask(&format!("SET {other} 1")), moved);
    assert!(client.ask("EXEC").starts_with("-EXECABORT"));
    assert_eq!(client.ask("MULTI"), "+OK");
    assert_eq!(client.ask(&format!("SET {own} 1")), "+QUEUED");
    assert_eq!(client.ask(&format!("SET {second} 1")), "+QUEUED");
    let cross = "-CROSSSLOT Keys in request don't hash to the same slot";
    assert_eq!(client.ask("EXEC"), cross);
    assert_eq!(client.ask(&format!("EXISTS {own}")), ":0");
    assert_eq!(client.ask("MULTI"), "+OK");
    assert_eq!(client.ask(&format!("SET {own} 1")), "+QUEUED");
    assert_eq!(client.ask("EXEC"), "*1");
    assert_eq!(client.line(), "+OK");
}

#[test]
fn a_node_without_a_lease_executes_nothing_with_keys() {
    let mut nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    assert_eq!(client.ask("SET a 1"), "+OK");
    assert!(client.ask("CLUSTER INFO").starts_with("cluster_state:ok\r\n"));
    // The process was stopped for longer than its lease.
    nodes.clock.advance(Duration::from_secs(8));
    assert_eq!(client.ask("GET a"), NOT_PERMITTED);
    assert_eq!(client.ask("SET a 2"), NOT_PERMITTED);
    assert!(client.ask("CLUSTER INFO").starts_with("cluster_state:fail\r\n"));
    assert_eq!(client.ask("PING"), "+PONG");
    // No other node has served the slot, so its items are kept.
    nodes.settle();
    assert_eq!(client.ask("GET a"), "1");
}

#[test]
fn a_node_serves_on_without_etcd_and_then_serves_what_another_node_has_stored() {
    let mut nodes = Nodes::default();
    nodes.serves_without_etcd = true;
    nodes.begin(2);
    let key = nodes.key_of(0, 0);
    assert_eq!(nodes.ask(0, &format!("SET {key} old")), "+OK");
    nodes.all[0].is_cut = true;
    nodes.pass(Duration::from_secs(20));
    assert_eq!(nodes.ask(0, &format!("GET {key}")), "old");
    let info = nodes.ask(0, "CLUSTER INFO");
    assert!(info.starts_with("cluster_state:ok\r\n"), "{info}");
    for field in ["permitted:0", "serves_without_lease:1", "permit_seconds:0"] {
        assert!(info.contains(&format!("\r\ncluster_{field}\r\n")), "{field} in {info}");
    }
    assert_eq!(nodes.ask_served(1, &format!("SET {key} new")), "+OK");
    assert_eq!(nodes.ask(0, &format!("SET {key} lost")), "+OK");
    nodes.all[0].is_cut = false;
    nodes.settle();
    let owner = nodes.owner(&key);
    assert_eq!(nodes.ask_served(owner, &format!("GET {key}")), "new");
    let info = nodes.ask(0, "CLUSTER INFO");
    assert!(info.contains("cluster_permitted:1\r\ncluster_serves_without_lease:0\r\n"), "{info}");
}

#[test]
fn items_of_a_slot_that_another_node_has_served_are_dropped() {
    let mut nodes = Nodes::start(2);
    let (key, kept) = (nodes.key_of(0, 0), nodes.key_of(0, 1));
    assert_eq!(nodes.ask(0, &format!("SET {key} old")), "+OK");
    let mut watching = nodes.client(0);
    let absent = format!("{{{key}}}absent");
    assert_eq!(watching.ask(&format!("WATCH {absent}")), "+OK");
    nodes.all[0].is_connected = false;
    nodes.pass(Duration::from_secs(20));
    assert_eq!(nodes.ask(0, &format!("GET {key}")), NOT_PERMITTED);
    assert_eq!(nodes.ask(1, &format!("SET {key} new")), "+OK");
    assert_eq!(nodes.ask(1, &format!("SET {absent} new")), "+OK");
    // Now the other node is gone, and its items with it.
    nodes.all[0].is_connected = true;
    nodes.all[1].is_connected = false;
    nodes.pass(Duration::from_secs(20));
    assert_eq!(nodes.ask_served(0, &format!("GET {key}")), "$-1");
    assert_eq!(nodes.ask_served(0, &format!("GET {kept}")), "$-1");
    assert!(nodes.all[0].cluster.dropped_items() >= 1);
    // The watched key is absent as before, and has had a value meanwhile.
    assert_eq!(watching.ask("MULTI"), "+OK");
    assert_eq!(watching.ask(&format!("SET {absent} mine")), "+QUEUED");
    assert_eq!(watching.ask("EXEC"), "*-1");
}

#[test]
fn slots_move_to_a_node_that_joins() {
    let mut nodes = Nodes::start(1);
    let keys: Vec<String> = (0..64).map(|number| format!("key{number}")).collect();
    for key in &keys {
        assert_eq!(nodes.ask(0, &format!("SET {key} 1")), "+OK");
    }
    nodes.add();
    nodes.pass(Duration::from_secs(20));
    assert_eq!(nodes.all[0].cluster.served_slots(), 8_192);
    let moved = keys.iter().filter(|key| nodes.owner(key) == 1).count();
    assert!(moved > 0);
    for key in &keys {
        let owner = nodes.owner(key);
        assert_eq!(nodes.ask(owner, &format!("GET {key}")), "1", "{key}");
        let moved = format!("-MOVED {} {}", slot_of(key.as_bytes()), nodes.address(owner));
        assert_eq!(nodes.ask(1 - owner, &format!("GET {key}")), moved);
    }
}

#[test]
fn cluster_commands_describe_the_slots() {
    let nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    let (id, port) = (nodes.all[0].id, nodes.address(0));
    let port = port.rsplit(':').next().expect("a port");
    assert_eq!(client.ask("CLUSTER MYID"), id.to_string());
    let expected = format!("{id} 127.0.0.1:{port}@0 myself,master - 0 0");
    let found = client.ask("CLUSTER NODES");
    assert!(found.starts_with(&expected) && found.ends_with(" connected 0-16383"), "{found}");
    let expected = format!(
        "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{id}\r\n*0\r\n"
    );
    crate::served::ask(&mut client.0, b"CLUSTER SLOTS\r\n", expected.as_bytes());
    let node = format!(
        "$2\r\nid\r\n$40\r\n{id}\r\n$4\r\nport\r\n:{port}\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n\
         $8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n\
         $18\r\nreplication-offset\r\n:0\r\n$6\r\nhealth\r\n$6\r\nonline\r\n"
    );
    let shards = format!(
        "*1\r\n*4\r\n$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n$5\r\nnodes\r\n*1\r\n*14\r\n{node}"
    );
    crate::served::ask(&mut client.0, b"CLUSTER SHARDS\r\n", shards.as_bytes());
    assert_eq!(client.ask("CLUSTER LINKS"), "*0");
    assert_eq!(client.ask("CLUSTER KEYSLOT foo"), ":12182");
    assert_eq!(client.ask("MSET {foo}1 a {foo}2 b"), "+OK");
    assert_eq!(client.ask("CLUSTER COUNTKEYSINSLOT 12182"), ":2");
    assert_eq!(client.ask("CLUSTER COUNTKEYSINSLOT 16384"), "-ERR Invalid slot");
    assert_eq!(client.ask("CLUSTER GETKEYSINSLOT 12182 1"), "*1");
    assert!(client.line().starts_with("{foo}"));
    let error = "-ERR Invalid slot or number of keys";
    assert_eq!(client.ask("CLUSTER GETKEYSINSLOT 12182 -1"), error);
    assert_eq!(crate::served::info(&mut client.0, "cluster_enabled"), "1");
    assert_eq!(crate::served::info(&mut client.0, "redis_mode"), "cluster");
}

#[test]
fn operators_drain_activate_and_forget_nodes() {
    let mut nodes = Nodes::start(2);
    let served =
        |nodes: &Nodes| [0, 1].map(|number: usize| nodes.all[number].cluster.served_slots());
    assert_eq!(nodes.ask(1, "CLUSTER DRAIN"), "+OK");
    nodes.pass_until(|nodes| served(nodes) == [16_384, 0]);
    assert_eq!(nodes.ask(1, "CLUSTER JOIN"), "+OK");
    nodes.pass_until(|nodes| served(nodes) == [8192, 8192]);
    let (one, other) = (nodes.all[0].id, nodes.all[1].id);
    let mut client = nodes.client(0);
    assert_eq!(client.ask("CLUSTER MEMBERS"), "*516");
    assert_eq!(client.line(), format!("nodes/{one}"));
    assert!(client.line().starts_with("protocol 1"));
    // A node can request that another one is forgotten; that one waits afterwards.
    assert_eq!(nodes.ask(0, "CLUSTER FORGET 12"), "-ERR Unknown node 12");
    assert_eq!(nodes.ask(0, &format!("CLUSTER FORGET {other}")), "+OK");
    nodes.pass_until(|nodes| served(nodes) == [16_384, 0]);
    nodes.pass(Duration::from_secs(2));
    // The others wait, so its slots would have no owner.
    let last = "-ERR expected another active node that takes the slots, found none";
    assert_eq!(nodes.ask(1, &format!("CLUSTER FORGET {one}")), last);
    let info = nodes.ask(1, "INFO cluster");
    for field in ["cluster_permitted:1", "cluster_slots_owned:0", "cluster_slots_covered:16384"] {
        assert!(info.contains(&format!("\r\n{field}\r\n")), "{info}");
    }
    assert!(info.contains("cluster_nodes:2\r\n") && info.contains("cluster_leases_lost:1\r\n"));
    let moved = nodes.ask(1, "GET foo");
    assert!(moved.starts_with("-MOVED 12182 "), "{moved}");
    assert!(nodes.ask(1, "INFO cluster").contains("cluster_refused_moved:1\r\n"));
}

#[test]
fn without_a_cluster_its_commands_are_refused() {
    let server = crate::served::serve(nuthatch_server::IoBackend::Auto);
    let mut client = Client(connect(&server));
    for command in ["CLUSTER SLOTS", "CLUSTER HELP", "READONLY", "READWRITE", "ASKING"] {
        let disabled = "-ERR This instance has cluster support disabled";
        assert_eq!(client.ask(command), disabled, "{command}");
    }
    assert_eq!(crate::served::info(&mut client.0, "cluster_enabled"), "0");
}

/// Clients did not refresh their slots: they take a slot without a node for an error of their own.
#[test]
fn a_node_that_is_gone_is_listed_until_its_slots_have_other_owners() {
    let mut nodes = Nodes::start(2);
    let key = nodes.key_of(1, 0);
    let gone = format!("{} {}@0 ", nodes.all[1].id, nodes.address(1));
    nodes.all[1].is_connected = false;
    let mut listed = String::new();
    // The slots are claimed when the set of nodes did not change for half a second.
    for _ in 0..100 {
        nodes.pass(Duration::from_millis(100));
        listed = nodes.ask(0, "CLUSTER NODES");
        if listed.contains("fail") {
            break;
        }
        assert!(listed.contains(&format!("{gone}master - 0 0 ")), "{listed}");
    }
    assert!(listed.contains(&format!("{gone}master,fail - 0 0 ")), "{listed}");
    assert_eq!(nodes.ask(0, &format!("GET {key}")), "-CLUSTERDOWN Hash slot not served");
    let info = nodes.ask(0, "CLUSTER INFO");
    assert!(info.contains("cluster_state:fail\r\ncluster_slots_assigned:16384\r\n"), "{info}");
    assert!(info.contains("cluster_slots_fail:8192\r\n"), "{info}");
    nodes.settle();
    assert!(!nodes.ask(0, "CLUSTER NODES").contains("fail"));
    assert_eq!(nodes.ask(0, &format!("GET {key}")), "$-1");
}

/// A new process may have the name of an earlier one, whose lease has not ended yet. Clients were
/// sent from this node to itself.
#[test]
fn a_node_with_the_address_of_an_earlier_one_sends_no_client_to_itself() {
    let mut nodes = Nodes::start(2);
    let key = nodes.key_of(1, 0);
    nodes.all[1].is_connected = false;
    nodes.announced = Some(nodes.address(1));
    nodes.add();
    nodes.pass(Duration::from_secs(1));
    assert_eq!(nodes.ask(2, &format!("GET {key}")), "-CLUSTERDOWN Hash slot not served");
    nodes.pass(Duration::from_secs(20));
    let owner = nodes.owner(&key);
    assert_eq!(nodes.ask(owner, &format!("GET {key}")), "$-1");
}

/// Sends requests in one batch to a node that is stopped for an hour after this many looks at the
/// clock. Returns what arrives until the connection ends.
fn stopped_after(looks: u64, requests: &str) -> String {
    let nodes = Nodes::start(1);
    let mut client = nodes.client(0);
    assert_eq!(client.ask("SET a short"), "+OK");
    assert_eq!(client.ask("SETRANGE long 200000 v"), ":200001");
    let Client(mut stream) = client;
    // Longer than any machine takes.
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a socket");
    nodes.clock.calls_before_jump.store(looks, Ordering::Relaxed);
    stream.write_all(requests.as_bytes()).expect("sent");
    let mut replies = Vec::new();
    // A reset is an error after the bytes that arrived before.
    let _ = stream.read_to_end(&mut replies);
    replies.escape_ascii().to_string()
}

#[test]
fn replies_of_a_batch_that_outlived_the_permit_do_not_leave() {
    for requests in ["GET a\r\n", "GET long\r\n", "GET long\r\nGET a\r\n", "SET a 2\r\n"] {
        assert_eq!(stopped_after(1, requests), "", "{requests}");
    }
    // A batch that ended in time has replies.
    assert_eq!(stopped_after(2, "GET a\r\nQUIT\r\n"), "$5\\r\\nshort\\r\\n+OK\\r\\n");
    assert!(stopped_after(4, "GET long\r\nQUIT\r\n").ends_with("v\\r\\n+OK\\r\\n"));
}

#[test]
fn a_node_listens_for_clients_of_redis_and_memcached_only() {
    let cache = cache();
    let clock = Arc::new(SystemBootClock);
    let cluster = Cluster::new(NodeId::numbered(1), cache.clone(), Arc::default(), clock);
    let mut server = Server::new(cache);
    server.cluster = Some(Arc::new(cluster));
    let listener = Listener::new(Protocol::Pmc, "127.0.0.1:0".parse().expect("an address"));
    let error = Running::serve(server, &Options::new(vec![listener])).expect_err("refused");
    let expected = "a node of a cluster: expected clients of Redis and memcached, found a listener \
                    for clients of poor-man's-cache at 127.0.0.1:0";
    assert_eq!(error.to_string(), expected);
}
