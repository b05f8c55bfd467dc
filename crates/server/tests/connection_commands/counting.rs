//! Tests what is counted, and that all reports of it agree.

use crate::house::House;
use nuthatch_server::state::{Endpoints, Totals};

/// Returns the number after `name` in a text such as `calls=3,usec=4`.
fn field(text: &str, line: &str, name: &str) -> u64 {
    let line = text.lines().find(|text| text.starts_with(line)).unwrap_or_else(|| panic!("{text}"));
    let fields = line.split_once(':').expect("a colon").1;
    let value = fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    value.expect(name).parse().expect("a number")
}

#[test]
fn calls_refusals_and_failures_are_told_apart() {
    let house = House::new();
    let mut client = house.client();
    for request in ["GET k", "GET k", "GET", "SET k text", "INCR k", "CLIENT ID", "FOO", "CLIENT X"]
    {
        house.ask(&mut client, request);
    }
    house.metrics.settle(&house.server.settings);
    let text = house.ask(&mut client, "INFO commandstats errorstats");
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
fn every_call_has_its_time_however_it_was_taken() {
    let house = House::new();
    let mut client = house.client();
    let mut expected = 0;
    for round in 0..10 {
        for _ in 0..round * 7 {
            house.ask(&mut client, "GET k");
        }
        expected += round * 7;
        house.ask(&mut client, "MGET k l");
        let value = vec![b'v'; 10_000];
        house.bytes(&mut client, &[b"SET", b"large", &value]);
        house.ask(&mut client, "GET large");
        expected += 1;
        house.metrics.settle(&house.server.settings);
    }
    let totals = house.server.totals();
    let get = &totals.commands["get"];
    assert_eq!((get.calls, get.times.iter().sum::<u64>()), (expected, expected));
    assert!(get.ns > 0);
    for name in ["mget", "set"] {
        assert_eq!(totals.commands[name].times.iter().sum::<u64>(), 10, "{name}");
    }
}

#[test]
fn threads_add_up_and_all_who_tell_agree() {
    let house = House::new();
    let other = house.server.thread();
    let mut one = house.client();
    let mut two = house.server.connect(&other, Endpoints::default(), 0).expect("a connection");
    for _ in 0..20 {
        house.ask(&mut one, "GET k");
        house.ask(&mut two, "GET k");
    }
    house.metrics.add_received(10);
    other.add_received(20);
    other.add_sent(5);
    house.metrics.settle(&house.server.settings);
    other.settle(&house.server.settings);
    let totals = house.server.totals();
    assert_eq!((totals.received, totals.sent, totals.connections), (30, 5, 2));
    assert_eq!(totals.commands["get"].calls, 40);
    let text = house.ask(&mut one, "INFO everything");
    assert_eq!(field(&text, "cmdstat_get:", "calls"), 40);
    assert!(text.contains("\r\ntotal_net_input_bytes:30\r\n"), "{text}");
    assert!(text.contains("latency_percentiles_usec_get:p50="), "{text}");
    let histogram = house.ask(&mut one, "LATENCY HISTOGRAM get");
    assert!(
        histogram.starts_with("*2\r\n$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:40\r\n"),
        "{histogram}"
    );
    assert!(histogram.ends_with(":40\r\n"), "the last octave holds all: {histogram}");
}

#[test]
fn info_tells_what_expires_and_what_the_process_takes() {
    let house = House::new();
    let mut client = house.client();
    for number in 0..100 {
        house.ask(&mut client, &format!("SET k{number} v"));
    }
    for number in 0..30 {
        house.ask(&mut client, &format!("PEXPIRE k{number} 60000"));
    }
    let text = house.ask(&mut client, "INFO");
    assert_eq!(field(&text, "db0:", "keys"), 100, "{text}");
    assert_eq!(field(&text, "db0:", "expires"), 30, "{text}");
    assert!((1..=60_000).contains(&field(&text, "db0:", "avg_ttl")), "{text}");
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
    };
    assert!(value("used_memory_rss") > 1e6);
    for number in 100..2500 {
        house.ask(&mut client, &format!("SET k{number} v EX 100"));
    }
    // For many keys it is an estimate: of 1,024 keys, nearly all expire.
    let text = house.ask(&mut client, "INFO keyspace");
    let expires = field(&text, "db0:", "expires");
    assert!((2300..=2500).contains(&expires), "{text}");
}

#[test]
fn counts_begin_anew_for_commands_but_not_for_totals() {
    let house = House::new();
    let mut client = house.client();
    house.ask(&mut client, "GET k");
    house.ask(&mut client, "FOO");
    house.ask(&mut client, "CONFIG RESETSTAT");
    let text = house.ask(&mut client, "INFO everything");
    assert!(!text.contains("cmdstat_get:") && !text.contains("errorstat_ERR"), "{text}");
    assert!(text.contains("\r\nkeyspace_misses:0\r\n"), "{text}");
    assert_eq!(house.server.totals().commands["get"].calls, 1);
    assert_ne!(house.server.totals(), Totals::default());
}

#[test]
fn slow_requests_are_logged_with_their_arguments() {
    let house = House::new();
    let mut client = house.client();
    house.ask(&mut client, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3");
    house.ask(&mut client, "CLIENT SETNAME me");
    house.ask(&mut client, "GET key");
    let long = [b'x'; 130];
    let request: Vec<_> = std::iter::once(&b"DEL"[..]).chain((0..40).map(|_| &long[..])).collect();
    house.bytes(&mut client, &request);
    house.ask(&mut client, "CONFIG SET slowlog-log-slower-than -1");
    assert_eq!(house.ask(&mut client, "SLOWLOG LEN"), ":3\r\n");
    let answer = house.ask(&mut client, "SLOWLOG GET");
    assert!(answer.contains("*32\r\n$3\r\nDEL\r\n"), "{answer}");
    assert!(answer.contains("x... (2 more bytes)\r\n"), "{answer}");
    assert!(answer.contains("... (10 more arguments)\r\n"), "{answer}");
    assert!(
        answer.contains("$3\r\nGET\r\n$3\r\nkey\r\n$15\r\n127.0.0.1:40000\r\n$2\r\nme\r\n"),
        "{answer}"
    );
    house.ask(&mut client, "SLOWLOG RESET");
    assert_eq!(house.ask(&mut client, "SLOWLOG LEN"), ":0\r\n");
}

#[test]
fn fast_requests_are_not_logged() {
    let house = House::new();
    let mut client = house.client();
    house.ask(&mut client, "CONFIG SET slowlog-log-slower-than 60000000");
    for _ in 0..100 {
        house.ask(&mut client, "GET k");
        house.ask(&mut client, "MGET k l");
    }
    assert_eq!(house.ask(&mut client, "SLOWLOG LEN"), ":0\r\n");
}

#[test]
fn commands_are_told_with_their_keys_and_parts() {
    let house = House::new();
    let mut client = house.client();
    let get = house.ask(&mut client, "COMMAND INFO get");
    assert!(get.starts_with("*1\r\n*10\r\n$3\r\nget\r\n:2\r\n"), "{get}");
    assert!(get.contains("+readonly\r\n") && get.contains(":1\r\n:1\r\n:1\r\n"), "{get}");
    let client_info = house.ask(&mut client, "COMMAND INFO client");
    assert!(client_info.contains("$11\r\nclient|list\r\n"), "{client_info}");
    let count = house.ask(&mut client, "COMMAND COUNT");
    assert!(house.ask(&mut client, "COMMAND").starts_with(&count.replace(':', "*")));
}

#[test]
fn the_list_of_commands_left_out_their_parts() {
    let house = House::new();
    let mut client = house.client();
    let list = house.ask(&mut client, "COMMAND LIST");
    for name in ["get", "client", "client|list", "command|getkeys"] {
        assert!(list.contains(&format!("${}\r\n{name}\r\n", name.len())), "{name}: {list}");
    }
    let every = house.ask(&mut client, "COMMAND LIST FILTERBY PATTERN *");
    assert_eq!(list, every);
}
