//! Tests that `/metrics`, `INFO`, `LATENCY HISTOGRAM` and `SLOWLOG` report the same numbers.

use crate::scrape::{Family, Labels, parse};
use crate::serving::{Resp, get, serve};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

struct Metrics(BTreeMap<String, Family>);

impl Metrics {
    /// Returns the value of the sample with this name and these labels.
    #[track_caller]
    fn of(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let family = self.0.iter().find(|(family, _)| name.starts_with(family.as_str()));
        let (_, family) = family.unwrap_or_else(|| panic!("no family of {name}"));
        let labels: Labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let value = family.samples.get(&(name.to_owned(), labels)).copied();
        #[expect(clippy::cast_sign_loss, reason = "nothing that is compared is below zero")]
        value.map_or_else(|| panic!("no sample of {name}"), |value| value as u64)
    }

    fn sum(&self, name: &str) -> u64 {
        #[expect(clippy::cast_sign_loss, reason = "nothing that is compared is below zero")]
        self.0[name].samples.values().map(|value| *value as u64).sum()
    }
}

/// Returns the value of a line of `INFO`.
fn line<'a>(info: &'a str, name: &str) -> &'a str {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {info}"))
}

fn field(line: &str, name: &str) -> u64 {
    let value = line.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    value.expect(name).parse().expect("a number")
}

/// Regression test: each field of `INFO` could be a constant 0.
#[test]
fn rates_and_processor_time_become_positive_under_load() {
    const FIELDS: [&str; 7] = [
        "instantaneous_ops_per_sec",
        "instantaneous_input_kbps",
        "instantaneous_output_kbps",
        "keyspace_hits_per_sec",
        "keyspace_misses_per_sec",
        "used_cpu_sys",
        "used_cpu_user",
    ];
    // Makes the test fail instead of hang.
    let deadline = Instant::now() + Duration::from_mins(2);
    let server = serve(1);
    let mut client = Resp::connect(&server);
    client.ask("SET k v");
    loop {
        for _ in 0..200 {
            client.ask("GET k");
            client.ask("GET nothing");
        }
        let info = client.ask("INFO everything").remove(0);
        let is_zero = |name: &&&str| line(&info, name).parse::<f64>().expect("a number") <= 0.0;
        let zeros: Vec<_> = FIELDS.iter().filter(is_zero).collect();
        if zeros.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "still 0: {zeros:?}");
    }
}

#[test]
fn all_reports_of_counts_agree() {
    let server = serve(2);
    let mut clients = [Resp::connect(&server), Resp::connect(&server), Resp::connect(&server)];
    clients[0].ask("CONFIG SET slowlog-log-slower-than 0");
    for round in 0..30 {
        let client = &mut clients[round % 3];
        client.ask(&format!("SET k{round} text"));
        client.ask(&format!("GET k{round}"));
        client.ask("GET nothing");
        client.ask("MGET k1 nothing k2");
        client.ask(&format!("INCR k{round}"));
        client.ask("GET");
        client.ask("FOO");
    }
    clients[0].ask("SET gone v PX 1");
    while clients[0].ask("GET gone") != [""] {}
    let client = &mut clients[0];
    client.ask("CONFIG SET slowlog-log-slower-than -1");
    let histogram = client.ask("LATENCY HISTOGRAM get");
    let slow = client.ask("SLOWLOG LEN");
    let info = client.ask("INFO everything").remove(0);
    let metrics = Metrics(parse(&get(&server, "/metrics", "*/*").1));

    agree_on_commands(&metrics, &info);
    agree_on_the_rest(&metrics, &info);
    // Sent bytes are counted a moment after the client has received them.
    let source = line(&info, "total_net_output_bytes").parse::<u64>().expect("a number");
    let received: usize = clients.iter().map(|client| client.received).sum();
    let sent = metrics.sum("nuthatch_sent_bytes_total");
    assert!((source..=received as u64).contains(&sent), "{source} {sent} {received}");
    agree_on_times(&metrics, &histogram);
    assert_eq!(metrics.sum("nuthatch_slowlog_entries").to_string(), slow[0]);
    // In each round: the five commands, the command that expires and its lookups; not the command
    // that sets the limit.
    assert!(metrics.sum("nuthatch_slow_requests_total") >= 30 * 5 + 2);
}

fn agree_on_commands(metrics: &Metrics, info: &str) {
    for command in ["set", "get", "mget", "incr"] {
        let stat = line(info, &format!("cmdstat_{command}"));
        for (metric, name) in [
            ("nuthatch_commands_total", "calls"),
            ("nuthatch_commands_failed_total", "failed_calls"),
            ("nuthatch_commands_rejected_total", "rejected_calls"),
            ("nuthatch_command_duration_seconds_count", "calls"),
        ] {
            let source = metrics.of(metric, &[("command", command)]);
            assert_eq!(source, field(stat, name), "{metric} of {command}");
        }
    }
    assert_eq!(metrics.of("nuthatch_commands_failed_total", &[("command", "incr")]), 30);
    assert_eq!(metrics.of("nuthatch_commands_rejected_total", &[("command", "get")]), 30);
    let errors = field(line(info, "errorstat_ERR"), "count");
    assert_eq!(metrics.of("nuthatch_errors_total", &[("code", "ERR")]), errors);
}

fn agree_on_the_rest(metrics: &Metrics, info: &str) {
    let number = |name: &str| line(info, name).parse::<u64>().expect("a number");
    for (metric, name) in [
        ("nuthatch_hits_total", "keyspace_hits"),
        ("nuthatch_misses_total", "keyspace_misses"),
        ("nuthatch_items_expired_total", "expired_keys"),
        ("nuthatch_items_evicted_total", "evicted_keys"),
        ("nuthatch_moved_bytes_total", "moved_bytes"),
        ("nuthatch_memory_limit_bytes", "maxmemory"),
        ("nuthatch_memory_bytes", "used_memory"),
        ("nuthatch_connections", "connected_clients"),
        ("nuthatch_connections_limit", "maxclients"),
        ("nuthatch_connections_accepted_total", "total_connections_received"),
        ("nuthatch_connections_refused_total", "rejected_connections"),
        ("nuthatch_output_limit_hits_total", "output_limit_hits"),
        ("nuthatch_received_bytes_total", "total_net_input_bytes"),
    ] {
        assert_eq!(metrics.sum(metric), number(name), "{metric} and {name}");
    }
    let expired = metrics.of("nuthatch_misses_total", &[("cause", "expired")]);
    assert_eq!(expired, number("keyspace_misses_expired"));
    assert!(expired >= 1);
    for kind in ["items", "large", "index", "connections", "other"] {
        let source = metrics.of("nuthatch_memory_bytes", &[("kind", kind)]);
        assert_eq!(source, number(&format!("used_memory_{kind}")), "{kind}");
    }
}

/// Each octave of the histogram is a bucket of `/metrics`, for times from about a microsecond.
fn agree_on_times(metrics: &Metrics, histogram: &[String]) {
    let number = |text: &String| text.parse::<u64>().expect("a number");
    assert_eq!(&histogram[..2], ["get", "calls"]);
    let calls = metrics.of("nuthatch_commands_total", &[("command", "get")]);
    assert_eq!(calls, number(&histogram[2]));
    assert_eq!(histogram[3], "histogram_usec");
    assert!(histogram.len() > 4);
    for pair in histogram[4..].chunks(2) {
        // Times are in whole microseconds, from powers of two of nanoseconds.
        let ns = 1_u64 << (number(&pair[0]) * 1024).ilog2();
        let le = (ns as f64 / 1e9).to_string();
        let labels = [("command", "get"), ("le", &le[..])];
        let source = metrics.of("nuthatch_command_duration_seconds_bucket", &labels);
        assert_eq!(source, number(&pair[1]), "up to {le} s");
    }
}

#[test]
fn resetstat_does_not_reset_metrics() {
    let server = serve(1);
    let mut client = Resp::connect(&server);
    client.ask("GET nothing");
    client.ask("CONFIG RESETSTAT");
    let metrics = Metrics(parse(&get(&server, "/metrics", "*/*").1));
    assert_eq!(metrics.of("nuthatch_commands_total", &[("command", "get")]), 1);
    assert_eq!(metrics.sum("nuthatch_misses_total"), 1);
}

#[test]
fn untracked_times_are_in_no_histogram() {
    let server = serve(1);
    let mut client = Resp::connect(&server);
    client.ask("GET nothing");
    client.ask("CONFIG SET latency-tracking no");
    client.ask("GET nothing");
    let metrics = Metrics(parse(&get(&server, "/metrics", "*/*").1));
    let labels = [("command", "get")];
    assert_eq!(metrics.of("nuthatch_commands_total", &labels), 2);
    assert_eq!(metrics.of("nuthatch_command_duration_seconds_count", &labels), 1);
}

#[test]
fn a_client_that_does_not_read_is_counted() {
    let server = serve(1);
    let mut client = Resp::connect(&server);
    client.ask(&format!("SET k {}", "v".repeat(10_000)));
    let mut slow = Resp::connect(&server);
    // 100 MB of replies, of which the client reads one.
    let requests = "GET k\r\n".repeat(10_000);
    slow.ask(requests.trim_end());
    let hits = || {
        let metrics = Metrics(parse(&get(&server, "/metrics", "*/*").1));
        metrics.sum("nuthatch_output_limit_hits_total")
    };
    // Sockets hold some megabytes before the server has to wait.
    assert!((0..10_000).any(|_| hits() > 0));
}
