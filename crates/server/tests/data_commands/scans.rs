//! Tests commands over all keys, with more keys than one request looks at.

use crate::engine::{Connection, Engine};
use nuthatch_server::resp::Version;
use std::collections::BTreeSet;

const KEYS: usize = 5000;

/// Returns the strings of a reply, in their order.
fn strings(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8(reply.to_vec()).expect("keys in ASCII");
    let lines: Vec<_> = text.split("\r\n").collect();
    lines
        .windows(2)
        .filter(|pair| pair[0].starts_with('$'))
        .map(|pair| pair[1].to_owned())
        .collect()
}

fn fill(connection: &mut Connection<'_>) -> BTreeSet<String> {
    let keys: BTreeSet<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
    for key in &keys {
        assert_eq!(connection.run(&["SET", key, "v"]), b"+OK\r\n");
    }
    keys
}

/// Returns all keys that a scan with these options returns.
fn scan(connection: &mut Connection<'_>, options: &[&str]) -> BTreeSet<String> {
    let mut met = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let request = [&["SCAN", &cursor], options].concat();
        let mut reply = strings(&connection.run(&request));
        cursor = reply.remove(0);
        met.extend(reply);
        if cursor == "0" {
            return met;
        }
    }
}

#[test]
fn a_scan_returns_every_key() {
    let engine = Engine::new(1);
    let mut connection = engine.connect(Version::Resp2);
    let keys = fill(&mut connection);
    assert_eq!(scan(&mut connection, &[]), keys);
    assert_eq!(scan(&mut connection, &["COUNT", "1"]), keys);
    assert_eq!(scan(&mut connection, &["COUNT", "9223372036854775807"]), keys);
    assert_eq!(strings(&connection.run(&["KEYS", "*"])).into_iter().collect::<BTreeSet<_>>(), keys);
    let some: BTreeSet<_> = keys.iter().filter(|key| key.ends_with("77")).cloned().collect();
    assert_eq!(scan(&mut connection, &["MATCH", "*77", "COUNT", "100"]), some);
    assert!(scan(&mut connection, &["TYPE", "list"]).is_empty());
}

#[test]
fn a_scan_returns_every_key_that_is_not_removed() {
    let engine = Engine::new(1);
    let mut connection = engine.connect(Version::Resp2);
    let keys = fill(&mut connection);
    let (stay, go): (BTreeSet<String>, BTreeSet<String>) =
        keys.into_iter().partition(|key| key.ends_with('1'));
    let mut go = go.into_iter();
    let mut met = BTreeSet::new();
    let mut cursor = "0".to_owned();
    let mut number = 0;
    loop {
        let mut reply = strings(&connection.run(&["SCAN", &cursor, "COUNT", "50"]));
        cursor = reply.remove(0);
        met.extend(reply);
        if cursor == "0" {
            break;
        }
        for key in go.by_ref().take(40) {
            connection.run(&["DEL", &key]);
            connection.run(&["SET", &format!("new:{number}"), "v"]);
            number += 1;
        }
    }
    assert!(met.is_superset(&stay), "lost: {:?}", stay.difference(&met).collect::<Vec<_>>());
}

#[test]
fn random_keys_exist_and_differ() {
    let engine = Engine::new(1);
    let mut connection = engine.connect(Version::Resp2);
    let keys = fill(&mut connection);
    let drawn: BTreeSet<String> =
        (0..100).flat_map(|_| strings(&connection.run(&["RANDOMKEY"]))).collect();
    assert!(drawn.is_subset(&keys));
    assert!(drawn.len() > 50, "{} of 100 keys differ", drawn.len());
}

#[test]
fn expired_keys_are_not_scanned() {
    let engine = Engine::new(1_700_000_000_000);
    let mut connection = engine.connect(Version::Resp2);
    connection.run(&["SET", "short", "v", "PX", "10"]);
    connection.run(&["SET", "long", "v", "PX", "1000"]);
    connection.run(&["SET", "gone", "v"]);
    connection.run(&["GETDEL", "gone"]);
    connection.set_time(1_700_000_000_010);
    assert_eq!(connection.run(&["KEYS", "*"]), b"*1\r\n$4\r\nlong\r\n");
    assert_eq!(scan(&mut connection, &[]), BTreeSet::from(["long".to_owned()]));
    assert_eq!(connection.run(&["RANDOMKEY"]), b"$4\r\nlong\r\n");
    connection.set_time(1_700_000_001_000);
    assert_eq!(connection.run(&["RANDOMKEY"]), b"$-1\r\n");
    assert_eq!(connection.run(&["KEYS", "*"]), b"*0\r\n");
}

#[test]
fn a_scan_with_a_large_count_is_limited() {
    let engine = Engine::new(1);
    let mut connection = engine.connect(Version::Resp2);
    let keys = fill(&mut connection);
    for options in [&["COUNT", "9223372036854775807"][..], &["MATCH", "*", "COUNT", "1000000"]] {
        let mut reply = strings(&connection.run(&[&["SCAN", "0"], options].concat()));
        assert_ne!(reply.remove(0), "0");
        assert!((2000..4500).contains(&reply.len()), "{} keys", reply.len());
        assert_eq!(scan(&mut connection, options), keys);
    }
}

#[test]
fn scan_returns_long_keys_in_several_replies_and_keys_refuses() {
    let engine = Engine::new(1);
    let mut connection = engine.connect(Version::Resp2);
    let long = |number: usize| format!("{number}:{}", "k".repeat(60_000));
    let keys: BTreeSet<_> = (0..400).map(long).collect();
    for key in &keys {
        connection.run(&["SET", key, "v"]);
    }
    let reply = connection.run(&["SCAN", "0", "COUNT", "1000000"]);
    assert!(reply.len() < 3 << 20, "{} bytes", reply.len());
    assert_eq!(scan(&mut connection, &["COUNT", "1000000"]), keys);
    let too_long = b"-ERR the reply is longer than the free memory for connections\r\n";
    assert_eq!(
        connection.run(&["KEYS", "*"]).escape_ascii().to_string(),
        too_long.escape_ascii().to_string()
    );
    assert_eq!(strings(&connection.run(&["KEYS", "7:*"])), [long(7)]);
}
