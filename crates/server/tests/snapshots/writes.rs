//! Tests that no request writes to a key of a snapshot, or creates an item in its place.

use crate::harness::{Reply, Site};
use crate::served::ask;
use nuthatch_server::resp::commands::{Command, all};
use nuthatch_server::state::Keys;
use std::io::{Read, Write};

const REFUSED: &str = "READONLY key \"users:name\" belongs to snapshot users, which is read-only; \
                       publish a new snapshot to change it";

/// Returns requests of this command, each with the key of a snapshot in the place of another key.
fn requests(command: &Command) -> Vec<Vec<String>> {
    let Keys { first, last, step } = command.keys;
    let min = command.arity.unsigned_abs() as usize;
    // Two keys and their values, if there may be several.
    let end = usize::try_from(last).ok();
    let len = min.max(end.map_or(first + 2 * step, |end| end + 1));
    let end = end.unwrap_or(len - 1);
    (first..=end)
        .step_by(step)
        .map(|at| {
            let mut words = vec!["1".to_owned(); len];
            command.name.clone_into(&mut words[0]);
            for key in (first..=end).step_by(step) {
                words[key] = format!("key{key}");
            }
            "users:name".clone_into(&mut words[at]);
            words
        })
        .collect()
}

#[test]
fn every_command_of_redis_that_writes_is_refused() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    let mut refused = 0;
    for command in all().filter(|command| command.flags.writes && command.keys != Keys::NONE) {
        for words in requests(command) {
            let reply = client.ask_args(&words);
            assert_eq!(reply, Reply::Text(format!("-ERR {REFUSED}")), "{words:?}");
            refused += 1;
        }
    }
    assert!(refused > 30, "{refused}");
    assert_eq!(client.ask("GET users:name").text(), "Ada");
    assert_eq!(client.report("users", "refused_writes"), refused.to_string());
    // Not even the other keys of these requests were written.
    assert_eq!(client.ask("DBSIZE"), Reply::Integer(11));
}

#[test]
fn every_other_command_with_keys_reads_snapshots() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    for command in all().filter(|command| !command.flags.writes && command.keys != Keys::NONE) {
        assert!(command.flags.reads_snapshots, "{}", command.name);
        for words in requests(command) {
            if let Reply::Text(text) = client.ask_args(&words) {
                assert!(!text.contains("snapshot"), "{words:?}: {text}");
            }
        }
    }
    assert_eq!(client.ask("DBSIZE"), Reply::Integer(11));
}

#[test]
fn every_request_of_memcached_that_writes_is_refused() {
    let site = Site::with_all_types();
    let mut stream = site.connect(1);
    let expected = format!("CLIENT_ERROR {REFUSED}\r\n");
    for request in [
        "set users:name 0 0 1\r\nx",
        "add users:name 0 0 1\r\nx",
        "replace users:name 0 0 1\r\nx",
        "append users:name 0 0 1\r\nx",
        "prepend users:name 0 0 1\r\nx",
        "cas users:name 0 0 1 1\r\nx",
        "incr users:name 1",
        "decr users:name 1",
        "touch users:name 10",
        "gat 10 users:name",
        "gats 10 a users:name",
        "delete users:name",
        "ms users:name 1\r\nx",
        "ms users:name 1 ME\r\nx",
        "ms users:name 1 q\r\nx",
        "md users:name",
        "md users:name q I",
        "ma users:name",
        "ma users:name q N0",
        "mg users:name v T30",
        "mg users:name v N30",
        "mg users:name v R30",
        "mg dXNlcnM6bmFtZQ== b T30",
    ] {
        ask(&mut stream, format!("{request}\r\n").as_bytes(), expected.as_bytes());
    }
    for request in [
        "set users:name 0 0 1 noreply\r\nx",
        "incr users:name 1 noreply",
        "touch users:name 10 noreply",
        "delete users:name noreply",
    ] {
        ask(&mut stream, format!("{request}\r\nmn\r\n").as_bytes(), b"MN\r\n");
    }
    ask(&mut stream, b"get users:name\r\n", b"VALUE users:name 0 3\r\nAda\r\nEND\r\n");
    assert_eq!(site.resp().ask("DBSIZE"), Reply::Integer(11));
}

#[test]
fn the_two_small_protocols_do_not_write_either() {
    let site = Site::with_all_types();
    let expected = format!("ERROR: {REFUSED}\x1f");
    let mut pmc = site.connect(2);
    ask(&mut pmc, b"SET users:name x\x1f", expected.as_bytes());
    ask(&mut pmc, b"DEL users:name\x1f", expected.as_bytes());
    ask(&mut pmc, b"SET other x\x1fGET users:name\x1f", b"OK\x1fAda\x1f");
    // mrcache has no errors: the connection ends.
    for op in [b"\x02", b"\x04"] {
        let mut mrcache = site.connect(3);
        let request = [b"\x00", &op[..], b"\x0a\x00\x01\x00\x00\x00users:namex"].concat();
        mrcache.write_all(&request).expect("sent");
        assert_eq!(mrcache.read_to_end(&mut Vec::new()).expect("the end"), 0);
    }
    assert_eq!(site.resp().ask("DBSIZE"), Reply::Integer(12));
}

#[test]
fn long_values_that_are_received_in_place_are_refused() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    let value = vec![b'x'; 4 << 20];
    for _ in 0..3 {
        let reply = client.ask_args(&[b"SET", &b"users:name"[..], &value]);
        assert_eq!(reply.text(), format!("-ERR {REFUSED}"));
    }
    let mut stream = site.connect(1);
    let request = [b"set users:name 0 0 4194304\r\n", &value[..], b"\r\n"].concat();
    ask(&mut stream, &request, format!("CLIENT_ERROR {REFUSED}\r\n").as_bytes());
    assert_eq!(client.ask("GET users:name").text(), "Ada");
}

#[test]
fn flushall_leaves_snapshots() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    client.ask("SET a 1");
    assert_eq!(client.ask("FLUSHALL").text(), "OK");
    assert_eq!(client.ask("DBSIZE"), Reply::Integer(11));
    let mut stream = site.connect(1);
    ask(&mut stream, b"flush_all\r\n", b"OK\r\n");
    assert_eq!(client.ask("GET users:name").text(), "Ada");
}
