//! Tests what is counted, and that all reports of it agree.

use crate::harness::Harness;
use nuthatch_server::state::{Endpoints, Totals};

/// Returns the number after `name` in a text such as `calls=3,usec=4`.
fn field(text: &str, line: &str, name: &str) -> u64 {
    let line = text.lines().find(|text| text.starts_with(line)).unwrap_or_else(|| panic!("{text}"));
    let fields = line.split_once(':').expect("a colon").1;
    let value = fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    value.expect(name).parse().expect("a number")
}

#[test]
fn calls_rejections_and_failures_are_counted_separately() {
    let harness = Harness::new();
    let mut client = harness.client();
    for request in ["GET k", "GET k", "GET", "SET k text", "INCR k", "CLIENT ID", "FOO", "CLIENT X"]
    {
        harness.ask(&mut client, request);
    }
    harness.metrics.settle(&harness.server.settings);
    let text = harness.ask(&mut client, "INFO commandstats errorstats");
    for (name, expected) in [
        ("get", (2, 1, 0)),
        ("set", (1, 0, 0)),
        ("incr", (1, 0, 1)),
        ("client|id", (1, 0, 0)),
        ("client", (0, 1, 0)),
    ] {
        let line = format!("cmdstat_{name}:");
        let found = ["calls", "rejected_calls", "failed_calls"].map(|f| field(&text, &line, f));
        assert_eq!(found, <[u64; 3]>::from(expected), "{name}: {text}");
    }
    assert_eq!(field(&text, "errorstat_ERR:", "count"), 4, "{text}");
}

#[test]
fn every_call_is_timed_however_it_was_executed() {
    let harness = Harness::new();
    let mut client = harness.client();
    let mut expected = 0;
    for round in 0..10 {
        for _ in 0..round * 7 {
            harness.ask(&mut client, "GET k");
        }
        expected += round * 7;
        harness.ask(&mut client, "MGET k l");
        let value = vec![b'v'; 10_000];
        harness.bytes(&mut client, &[b"SET", b"large", &value]);
        harness.ask(&mut client, "GET large");
        expected += 1;
        harness.metrics.settle(&harness.server.settings);
    }
    let totals = harness.server.totals();
    let get = &totals.commands["get"];
    assert_eq!((get.calls, get.times.iter().sum::<u64>()), (expected, expected));
    assert!(get.ns > 0);
    for name in ["mget", "set"] {
        assert_eq!(totals.commands[name].times.iter().sum::<u64>(), 10, "{name}");
    }
}

#[test]
fn totals_of_threads_are_the_same_in_all_reports() {
    let harness = Harness::new();
    let other = harness.server.thread();
    let mut one = harness.client();
    let mut two = harness.server.connect(&other, Endpoints::default(), 0).expect("a connection");
    for _ in 0..20 {
        harness.ask(&mut one, "GET k");
        harness.ask(&mut two, "GET k");
    }
    harness.metrics.add_received(10);
    other.add_received(20);
    other.add_sent(5);
    harness.metrics.settle(&harness.server.settings);
    other.settle(&harness.server.settings);
    let totals = harness.server.totals();
    assert_eq!((totals.received, totals.sent, totals.connections), (30, 5, 2));
    assert_eq!(totals.commands["get"].calls, 40);
    let text = harness.ask(&mut one, "INFO everything");
    assert_eq!(field(&text, "cmdstat_get:", "calls"), 40);
    assert!(text.contains("\r\ntotal_net_input_bytes:30\r\n"), "{text}");
    assert!(text.contains("latency_percentiles_usec_get:p50="), "{text}");
    let histogram = harness.ask(&mut one, "LATENCY HISTOGRAM get");
    assert!(
        histogram.starts_with("*2\r\n$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:40\r\n"),
        "{histogram}"
    );
    assert!(histogram.ends_with(":40\r\n"), "the last octave holds all: {histogram}");
}

#[test]
fn info_reports_expired_keys_and_resources_of_the_process() {
    let harness = Harness::new();
    let mut client = harness.client();
    for number in 0..100 {
        harness.ask(&mut client, &format!("SET k{number} v"));
    }
    for number in 0..30 {
        harness.ask(&mut client, &format!("PEXPIRE k{number} 60000"));
    }
    let text = harness.ask(&mut client, "INFO");
    assert_eq!(field(&text, "db0:", "keys"), 100, "{text}");
    assert_eq!(field(&text, "db0:", "expires"), 30, "{text}");
    assert!((1..=60_000).contains(&field(&text, "db0:", "avg_ttl")), "{text}");
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
    };
    assert!(value("used_memory_rss") > 1e6);
    for number in 100..2500 {
        harness.ask(&mut client, &format!("SET k{number} v EX 100"));
    }
    // For many keys it is an estimate: of 1,024 keys, nearly all expire.
    let text = harness.ask(&mut client, "INFO keyspace");
    let expires = field(&text, "db0:", "expires");
    assert!((2300..=2500).contains(&expires), "{text}");
}

#[test]
fn resetstat_resets_commands_but_not_totals() {
    let harness = Harness::new();
    let mut client = harness.client();
    harness.ask(&mut client, "GET k");
    harness.ask(&mut client, "FOO");
    harness.ask(&mut client, "CONFIG RESETSTAT");
    let text = harness.ask(&mut client, "INFO everything");
    assert!(!text.contains("cmdstat_get:") && !text.contains("errorstat_ERR"), "{text}");
    assert!(text.contains("\r\nkeyspace_misses:0\r\n"), "{text}");
    assert_eq!(harness.server.totals().commands["get"].calls, 1);
    assert_ne!(harness.server.totals(), Totals::default());
}

#[test]
fn slow_requests_are_logged_with_their_arguments() {
    let harness = Harness::new();
    let mut client = harness.client();
    harness.ask(&mut client, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3");
    harness.ask(&mut client, "CLIENT SETNAME me");
    harness.ask(&mut client, "GET key");
    let long = [b'x'; 130];
    let request: Vec<_> = std::iter::once(&b"DEL"[..]).chain((0..40).map(|_| &long[..])).collect();
    harness.bytes(&mut client, &request);
    harness.ask(&mut client, "CONFIG SET slowlog-log-slower-than -1");
    assert_eq!(harness.ask(&mut client, "SLOWLOG LEN"), ":3\r\n");
    let answer = harness.ask(&mut client, "SLOWLOG GET");
    assert!(answer.contains("*32\r\n$3\r\nDEL\r\n"), "{answer}");
    assert!(answer.contains("x... (2 more bytes)\r\n"), "{answer}");
    assert!(answer.contains("... (10 more arguments)\r\n"), "{answer}");
    assert!(
        answer.contains("$3\r\nGET\r\n$3\r\nkey\r\n$15\r\n127.0.0.1:40000\r\n$2\r\nme\r\n"),
        "{answer}"
    );
    harness.ask(&mut client, "SLOWLOG RESET");
    assert_eq!(harness.ask(&mut client, "SLOWLOG LEN"), ":0\r\n");
}

#[test]
fn fast_requests_are_not_logged() {
    let harness = Harness::new();
    let mut client = harness.client();
    harness.ask(&mut client, "CONFIG SET slowlog-log-slower-than 60000000");
    for _ in 0..100 {
        harness.ask(&mut client, "GET k");
        harness.ask(&mut client, "MGET k l");
    }
    assert_eq!(harness.ask(&mut client, "SLOWLOG LEN"), ":0\r\n");
}

#[test]
fn command_info_has_keys_and_subcommands() {
    let harness = Harness::new();
    let mut client = harness.client();
    let get = harness.ask(&mut client, "COMMAND INFO get");
    assert!(get.starts_with("*1\r\n*10\r\n$3\r\nget\r\n:2\r\n"), "{get}");
    assert!(get.contains("+readonly\r\n") && get.contains(":1\r\n:1\r\n:1\r\n"), "{get}");
    let client_info = harness.ask(&mut client, "COMMAND INFO client");
    assert!(client_info.contains("$11\r\nclient|list\r\n"), "{client_info}");
    let count = harness.ask(&mut client, "COMMAND COUNT");
    assert!(harness.ask(&mut client, "COMMAND").starts_with(&count.replace(':', "*")));
}

#[test]
fn command_list_includes_subcommands() {
    let harness = Harness::new();
    let mut client = harness.client();
    let list = harness.ask(&mut client, "COMMAND LIST");
    for name in ["get", "client", "client|list", "command|getkeys"] {
        assert!(list.contains(&format!("${}\r\n{name}\r\n", name.len())), "{name}: {list}");
    }
    let every = harness.ask(&mut client, "COMMAND LIST FILTERBY PATTERN *");
    assert_eq!(list, every);
}
