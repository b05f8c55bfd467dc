//! Tests commands over all keys: `SCAN`, `KEYS`, `RANDOMKEY` and `DBSIZE`.

use crate::harness::{Reply, Resp, Setup, Site, build, build_all_types, build_with, file};
use nuthatch_snapshot::{Value, WriterOptions};
use std::collections::BTreeSet;
use std::path::Path;

fn numbers(path: &Path, options: &WriterOptions, range: std::ops::Range<i64>) {
    build_with(path, options, range.map(|number| (number.to_string(), Value::I64(number))));
}

/// Returns all keys that `SCAN` returns, and calls `between` after each request with their number.
fn scan(client: &mut Resp, options: &str, mut between: impl FnMut(usize)) -> BTreeSet<String> {
    let (mut cursor, mut found) = ("0".to_owned(), BTreeSet::new());
    loop {
        let mut reply = client.ask(&format!("SCAN {cursor}{options}")).list();
        let keys = reply.pop().expect("keys").list();
        found.extend(keys.into_iter().map(Reply::text));
        cursor = reply.pop().expect("a cursor").text();
        assert!(cursor.parse::<u64>().expect("a number") < 1 << 53, "{cursor}");
        if cursor == "0" {
            return found;
        }
        between(found.len());
    }
}

#[test]
fn scan_returns_the_keys_of_the_cache_and_of_all_snapshots() {
    let setup = Setup {
        snapshots: &[("users", "users:"), ("n", "numbers/"), ("empty", "e:"), ("set", "set:")],
        ..Setup::default()
    };
    let site = Site::start(&setup, |folder| {
        build_all_types(&file(folder, "users"));
        numbers(&file(folder, "n"), &WriterOptions::new(), 0..3000);
        build(&file(folder, "empty"), []);
        numbers(&file(folder, "set"), &WriterOptions::new().shards(8), 0..500);
    });
    let mut client = site.resp();
    for number in 0..300 {
        client.ask(&format!("SET cached:{number} x"));
    }
    let expected: BTreeSet<String> = (0..300)
        .map(|number| format!("cached:{number}"))
        .chain((0..3000).map(|number| format!("numbers/{number}")))
        .chain((0..500).map(|number| format!("set:{number}")))
        .chain(TYPES.iter().map(|key| format!("users:{key}")))
        .collect();
    for options in ["", " COUNT 1", " COUNT 1000", " COUNT 4096"] {
        assert!(scan(&mut client, options, |_| ()) == expected, "{options}");
    }
    assert_eq!(client.ask("DBSIZE"), Reply::Integer(300 + 3000 + 500 + 11));
    let keys: BTreeSet<_> = client.ask("KEYS *").list().into_iter().map(Reply::text).collect();
    assert!(keys == expected);
    let keys = client.ask("KEYS users:?a*").list();
    assert_eq!(keys.len(), 3, "{keys:?}");
    let lists = scan(&mut client, " TYPE list", |_| ());
    assert_eq!(lists.into_iter().collect::<Vec<_>>(), LISTS);
    assert_eq!(scan(&mut client, " TYPE hash", |_| ()).len(), 0);
    assert_eq!(scan(&mut client, " TYPE string", |_| ()).len(), expected.len() - LISTS.len());
    assert_eq!(scan(&mut client, " MATCH set:1? COUNT 500", |_| ()).len(), 10);
}

const TYPES: [&str; 11] =
    ["name", "bytes", "true", "false", "age", "score", "ids", "scores", "vector", "tags", "none"];
const LISTS: [&str; 5] = ["users:ids", "users:none", "users:scores", "users:tags", "users:vector"];

#[test]
fn a_scan_continues_in_new_generations_and_returns_every_key_that_stays() {
    let site = Site::start(&Setup::default(), |folder| {
        numbers(&file(folder, "users"), &WriterOptions::new(), 0..4000);
    });
    let (mut client, mut other) = (site.resp(), site.resp());
    // Another number of lines, another number of shards, and another order of the hashes.
    let generations = [
        (WriterOptions::new(), 0..900),
        // The ten highest bits that a cursor once had of the seed are those of seed 0.
        (WriterOptions::new().seed(610), 0..1000),
        (WriterOptions::new().shards(4), -20_000..1000),
        (WriterOptions::new().seed(7), 0..5000),
        (WriterOptions::new(), 0..800),
    ];
    let mut next = generations.into_iter();
    let mut requests = 0;
    let found = scan(&mut client, " COUNT 40", |_| {
        requests += 1;
        if requests % 7 == 0
            && let Some((options, range)) = next.next()
        {
            let switches = other.report("users", "switches");
            numbers(&site.path("users"), &options, range);
            other.wait_for("users", "switches", |now| now != switches);
        }
    });
    assert!(next.next().is_none(), "the scan ended after {requests} requests");
    let missing: Vec<_> =
        (0..800).map(|n| format!("users:{n}")).filter(|key| !found.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn cursors_of_other_servers_end_a_scan() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    for cursor in [1_u64 << 52 | 63 << 46, (1 << 53) - 1] {
        let reply = client.ask(&format!("SCAN {cursor}")).list();
        assert_eq!(reply[0], Reply::Text("0".to_owned()), "{cursor}");
    }
    // Others end the scan of the cache.
    for cursor in [1 << 50, 1 << 53, u64::MAX] {
        let mut reply = client.ask(&format!("SCAN {cursor}")).list();
        for _ in 0..10 {
            reply = client.ask(&format!("SCAN {}", reply[0].clone().text())).list();
            if reply[0] == Reply::Text("0".to_owned()) {
                break;
            }
        }
        assert_eq!(reply[0], Reply::Text("0".to_owned()), "{cursor}");
    }
}

#[test]
fn the_longest_prefix_has_the_key() {
    let setup = Setup { snapshots: &[("all", "a:"), ("inner", "a:b:")], ..Setup::default() };
    let site = Site::start(&setup, |folder| {
        let all = [("x", "outer"), ("b:x", "hidden"), ("b", "outer")];
        let all = all.map(|(key, value)| (key.to_owned(), Value::String(value)));
        build(&file(folder, "all"), all);
        build(&file(folder, "inner"), [("y".to_owned(), Value::String("inner"))]);
    });
    let mut client = site.resp();
    assert_eq!(client.ask("GET a:x").text(), "outer");
    assert_eq!(client.ask("GET a:b").text(), "outer");
    assert_eq!(client.ask("GET a:b:x"), Reply::Null);
    assert_eq!(client.ask("GET a:b:y").text(), "inner");
    let found: Vec<_> = scan(&mut client, "", |_| ()).into_iter().collect();
    assert_eq!(found, ["a:b", "a:b:y", "a:x"]);
}

#[test]
fn random_keys_are_of_the_cache_and_of_snapshots() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    let mut found = BTreeSet::new();
    for number in 0..11 {
        client.ask(&format!("SET cached:{number} x"));
    }
    // Each of the 22 keys is missed by so many draws with a probability below 1e-6, were they
    // equally likely.
    for _ in 0..2000 {
        found.insert(client.ask("RANDOMKEY").text());
    }
    assert!(found.iter().filter(|key| key.starts_with("users:")).count() > 5, "{found:?}");
    assert!(found.iter().any(|key| key.starts_with("cached:")), "{found:?}");
}

#[test]
fn keys_is_refused_for_many_entries() {
    let site = Site::start(&Setup::default(), |folder| {
        numbers(&file(folder, "users"), &WriterOptions::new(), 0..(1 << 17) + 1);
    });
    let mut client = site.resp();
    let refused = client.ask("KEYS nothing*").text();
    assert!(refused.starts_with("-ERR KEYS would examine"), "{refused}");
}
