//! Collectors that are away, that hang, and that refuse.

use super::collector::{Collector, text};
use super::{cache, exposition};
use crate::folder::Folder;
use crate::server::wait_until;
use std::net::TcpListener;

/// The counter of items of a signal that were dropped for this cause.
fn dropped(signal: &str, cause: &str) -> String {
    format!("nuthatch_otlp_dropped_total{{signal=\"{signal}\",cause=\"{cause}\"}}")
}

#[test]
fn a_server_without_its_collector_serves_and_counts() {
    let folder = Folder::new();
    // The port is free again, so nothing listens there.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port");
    let server = cache(&folder, &["--log=info", &format!("--otlp=http://{free}")], &[]);
    assert_eq!(server.ask("PING"), "+PONG\r\n");
    wait_until("dropped metrics", || exposition(&server)[&dropped("metrics", "failed")] > 0.0);
    let (status, log) = server.stop();
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("nuthatch::otlp: telemetry is not exported signal="), "{log}");
    assert!(log.contains("cannot connect"), "{log}");
}

/// The log had no line of them, since the last one was less than a minute before.
#[test]
fn log_records_that_are_lost_at_the_end_are_in_the_log() {
    let folder = Folder::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port");
    let arguments = ["--log=info", &format!("--otlp=http://{free}")];
    let server = cache(&folder, &arguments, &[("OTEL_METRICS_EXPORTER", "none")]);
    let first = "telemetry is not exported signal=\"logs\"";
    wait_until("the first line", || server.messages().contains(first));
    let (status, log) = server.stop();
    assert_eq!(status, Some(0), "{log}");
    let lines: Vec<_> = log.lines().filter(|line| line.contains(first)).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].ends_with("dropped=0") && !lines[1].ends_with("dropped=0"), "{log}");
}

#[test]
fn a_full_queue_of_spans_drops_and_delays_no_command() {
    let (folder, silent) = (Folder::new(), Collector::with(|_, _| None));
    let arguments = ["--otlp", &silent.url(), "--slow-log-threshold=0s"];
    let mut server = cache(&folder, &arguments, &[]);
    // More than fit in the queue and in a batch.
    let commands = "PING\r\n".repeat(4000);
    assert_eq!(server.ask(&commands).matches("PONG").count(), 4000);
    let full = dropped("traces", "queue-full");
    wait_until("dropped spans", || exposition(&server)[&full] > 1000.0);
    // It ends although the collector never answers.
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait_until_ended(), Some(0));
    let log = server.messages();
    // Those that wait, at least a full queue, and not those that were dropped before.
    let text = "the collector did not accept the last log records and spans in time lost=";
    let lost = log.split_once(text).and_then(|(_, rest)| rest.split_whitespace().next());
    let lost: u64 = lost.and_then(|lost| lost.parse().ok()).expect(&log);
    assert!((2048..=2048 + 512).contains(&lost), "{log}");
}

/// Only metrics were not accepted, and the log said that nothing is lost.
#[test]
fn the_last_line_of_the_log_is_not_about_nothing() {
    let (folder, silent) = (Folder::new(), Collector::with(|_, _| None));
    let only_metrics = [("OTEL_LOGS_EXPORTER", "none"), ("OTEL_TRACES_EXPORTER", "none")];
    let server = cache(&folder, &["--otlp", &silent.url()], &only_metrics);
    let (status, log) = server.stop();
    assert_eq!(status, Some(0), "{log}");
    assert!(!log.contains("lost"), "{log}");
}

#[test]
fn unknown_samplers_and_exporters_are_ignored_with_a_warning() {
    let (folder, collector) = (Folder::new(), Collector::with(|_, _| Some((200, String::new()))));
    let unknown = [("OTEL_TRACES_SAMPLER", "sometimes"), ("OTEL_LOGS_EXPORTER", "console")];
    let server = cache(&folder, &["--otlp", &collector.url()], &unknown);
    let (status, log) = server.stop();
    assert_eq!(status, Some(0), "{log}");
    for expected in [
        "warning: OTEL_TRACES_SAMPLER: expected always_on, always_off or traceidratio, or one",
        "warning: OTEL_LOGS_EXPORTER: expected otlp or none, found \"console\", which is ignored",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
}

#[test]
fn log_records_wait_for_a_collector_that_is_unavailable() {
    let folder = Folder::new();
    let is_log = |path: &str| path == "/v1/logs";
    let busy = Collector::with(move |request, number| {
        Some((if is_log(&request.path) && number == 0 { 503 } else { 200 }, String::new()))
    });
    let arguments = ["--log=info", "--otlp", &busy.url()];
    let server = cache(&folder, &arguments, &[("OTEL_METRICS_EXPORTER", "none")]);
    let counted = || exposition(&server)["nuthatch_otlp_exported_total{signal=\"logs\"}"];
    wait_until("accepted log records", || counted() > 0.0);
    assert!(busy.received().iter().filter(|request| is_log(&request.path)).count() > 1);
    let starts = busy.logs().into_iter();
    let starts = starts.filter(|(_, record, _)| text(record.body.as_ref()) == "started").count();
    assert_eq!(starts, 2, "the same batch was sent twice");
    assert!(exposition(&server)[&dropped("logs", "failed")] < 1.0);
}

#[test]
fn what_a_collector_refuses_is_counted_and_not_sent_again() {
    let (folder, strict) = (Folder::new(), Collector::with(|_, _| Some((400, String::new()))));
    let arguments = ["--log=info", "--otlp", &strict.url()];
    let server = cache(&folder, &arguments, &[("OTEL_METRICS_EXPORTER", "none")]);
    wait_until("refused records", || exposition(&server)[&dropped("logs", "failed")] > 0.0);
    wait_until("a line", || server.messages().contains("answered with status 400"));
    let batches = strict.received().len();
    assert!(batches <= server.messages().lines().count(), "no batch is sent twice");
}
