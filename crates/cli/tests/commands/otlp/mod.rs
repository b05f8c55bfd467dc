//! Logs, metrics and traces over OpenTelemetry, as a collector receives them.

mod collector;
mod traces;
mod unavailable;

use crate::folder::Folder;
use crate::server::{Running, wait_until};
use collector::{Collector, text, texts};
use nuthatch_listen::MetricSample;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// Exports soon, so that tests need not wait.
fn export_soon(command: &mut Command, interval_ms: &str) {
    command.env("OTEL_METRIC_EXPORT_INTERVAL", interval_ms);
    command.env("OTEL_BLRP_SCHEDULE_DELAY", "1").env("OTEL_BSP_SCHEDULE_DELAY", "1");
}

/// Starts a cache server with these arguments, which exports soon.
fn cache(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
    let base = ["--memory=16MiB", "--threads=1", "--memcache=off", "--resp=127.0.0.1:0"];
    let all = [&base[..], &["--admin=127.0.0.1:0"], arguments].concat();
    let mut command = folder.serve_command(&all, &[]);
    export_soon(&mut command, "20");
    command.envs(variables.iter().copied());
    folder.start(command)
}

/// Returns the samples of the admin endpoint.
fn exposition(server: &Running) -> BTreeMap<String, f64> {
    let mut stream = TcpStream::connect(&server.admin).expect("a connection");
    let request = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    let parsed = |line: &str| {
        let sample = MetricSample::parse(line)?;
        let name = line[..line.len() - sample.value.len()].trim_end();
        Some((name.to_owned(), sample.value.parse().expect("a number")))
    };
    let (_, text) = response.split_once("\r\n\r\n").expect("a body");
    text.lines().filter_map(parsed).collect()
}

/// Whether a value changes while a server is idle.
fn changes(name: &str) -> bool {
    let changing = ["process_", "nuthatch_event_loop_lag", "nuthatch_uptime", "nuthatch_otlp_"];
    changing.iter().any(|prefix| name.starts_with(prefix))
}

#[test]
fn metrics_are_those_of_the_admin_endpoint() {
    let (folder, collector) = (Folder::new(), Collector::start());
    let server = cache(&folder, &["--otlp", &collector.url()], &[]);
    assert_eq!(server.ask("SET k v\r\nGET k\r\nGET absent"), "+OK\r\n$1\r\nv\r\n$-1\r\n");
    let of_text = || -> BTreeMap<String, f64> {
        exposition(&server).into_iter().filter(|(name, _)| !changes(name)).collect()
    };
    let exported = || -> BTreeMap<String, f64> {
        collector.metrics().0.into_iter().filter(|(name, _)| !changes(name)).collect()
    };
    wait_until("the same metrics", || exported() == of_text());
    assert!(exported()["nuthatch_hits_total"] > 0.0);
    let (samples, metrics) = collector.metrics();
    assert!(samples.contains_key("nuthatch_otlp_dropped_total{signal=\"logs\",cause=\"failed\"}"));
    let names: Vec<_> = exposition(&server).into_keys().collect();
    let missing: Vec<_> = names.iter().filter(|name| !samples.contains_key(*name)).collect();
    assert_eq!(missing, [""; 0]);
    let uptime = metrics.iter().find(|metric| metric.name == "nuthatch_uptime_seconds");
    assert_eq!(uptime.expect("a metric").unit, "s");
    assert_eq!(server.stop(), (Some(0), String::new()));
}

#[test]
fn log_records_have_fields_severity_and_the_resource() {
    let (folder, collector) = (Folder::new(), Collector::start());
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20hidden"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.version=7"),
    ];
    let server = cache(&folder, &["--log=info"], &variables);
    let (status, log) = server.stop();
    assert_eq!(status, Some(0));
    // The records of the end are exported before the process ends.
    let logs = collector.logs();
    let bodies: Vec<_> = logs.iter().map(|(_, record, _)| text(record.body.as_ref())).collect();
    assert!(bodies.iter().any(|body| body == "stopped"), "{bodies:?}");
    assert_eq!(bodies.len(), log.lines().count(), "each line is a record: {log}\n{bodies:?}");
    let (target, record, resource) = logs
        .iter()
        .find(|(_, record, _)| text(record.body.as_ref()) == "started")
        .expect("a start");
    assert_eq!((&**target, &*record.severity_text), ("nuthatch::server", "INFO"));
    assert_eq!(texts(&record.attributes)["threads"], "1");
    let resource = texts(&resource.attributes);
    assert_eq!(resource["service.name"], "nuthatch-serve");
    assert_eq!(resource["service.version"], "7");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert_eq!(resource["service.instance.id"].len(), 36);
    let received = collector.received();
    assert!(received.iter().all(|request| request.headers["authorization"] == "Bearer hidden"));
    assert!(received.iter().any(|request| request.path == "/v1/metrics"), "a last export");
    assert!(!log.contains("hidden"), "{log}");
}

#[test]
fn a_password_in_an_address_is_refused_and_not_repeated() {
    let folder = Folder::new();
    for (arguments, variables) in [
        (&["--otlp=http://user:hidden@127.0.0.1:1"][..], &[][..]),
        (&[], &[("NUTHATCH_OTLP", "http://127.0.0.1:1/?key=hidden")]),
        (&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:hidden@127.0.0.1:1")]),
    ] {
        let run = folder.run_serve(arguments, variables);
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{run:?}");
        assert!(!run.stderr.contains("hidden"), "{run:?}");
    }
}
