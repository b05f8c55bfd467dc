//! Spans, with parents across processes.

use super::collector::{Collector, Found, Request};
use super::{cache, export_soon};
use crate::folder::Folder;
use crate::server::wait_until;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Returns the header of a client that is in a trace.
fn traceparent() -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-01")
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Waits for a span with this name.
#[track_caller]
fn wait_for(collector: &Collector, name: &str) -> Found {
    wait_until(name, || collector.span(name).is_some());
    collector.span(name).expect("a span")
}

/// Serves an object with ranges.
fn origin() -> Collector {
    Collector::with(|request: &Request, _| {
        let range = request.headers.get("range").expect("a range");
        let (first, last) = range["bytes=".len()..].split_once('-').expect("a range");
        let (first, last): (usize, usize) =
            (first.parse().expect("a number"), last.parse().expect("a number"));
        let body = &"some bytes"[first..=last];
        let len = body.len();
        Some((
            206,
            format!(
                "content-range: bytes {first}-{last}/10\r\ncontent-length: {len}\r\n\
             etag: \"1\"\r\n\r\n{body}"
            ),
        ))
    })
}

#[test]
fn a_request_for_a_chunk_continues_the_trace_of_its_client_to_the_origin() {
    let (folder, collector, origin) = (Folder::new(), Collector::start(), origin());
    let (url, from) = (collector.url(), format!("{}/", origin.url()));
    let mut command = folder.command(&["chunks", "serve", "--cache", "cache", "--limit", "64MiB"]);
    command.args(["--listen", "127.0.0.1:0", "--origin", &from, "--otlp", &url]);
    export_soon(&mut command, "1000");
    let server = folder.start(command);
    let address = server.addresses[0].trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address.trim_end_matches('/')).expect("a connection");
    let header = traceparent();
    write!(stream, "GET /a HTTP/1.1\r\nhost: x\r\n{header}\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    assert!(response.ends_with("some bytes"), "{response}");

    let request = wait_for(&collector, "chunk request");
    assert_eq!(
        (hex(&request.span.trace_id), hex(&request.span.parent_span_id)),
        (TRACE.to_owned(), PARENT.to_owned())
    );
    assert_eq!(request.span.kind, 2, "a server");
    assert_eq!(request.attributes["url.path"], "/a");
    assert_eq!(request.attributes["http.response.status_code"], "200");
    for (name, at) in [("origin check", 0), ("origin fetch", 1)] {
        let found = wait_for(&collector, name);
        assert_eq!(hex(&found.span.trace_id), TRACE, "{name}");
        assert_eq!(found.span.parent_span_id, request.span.span_id, "{name}");
        assert_eq!(found.span.kind, 3, "a client");
        let sent = &origin.received()[at].headers["traceparent"];
        assert_eq!(*sent, format!("00-{TRACE}-{}-01", hex(&found.span.span_id)), "{name}");
    }
    let (status, log) = server.stop();
    assert_eq!((status, &*log), (Some(0), ""));
    // The collector's own requests make no spans.
    assert_eq!(collector.spans().len(), 3);
}

#[test]
fn a_call_of_the_store_continues_the_trace_of_its_client() {
    let (folder, collector) = (Folder::new(), Collector::start());
    let mut command = folder.command(&["store", "serve", "db", "--create", "--otlp"]);
    command.args([&*collector.url(), "--listen", "127.0.0.1:0"]);
    export_soon(&mut command, "1000");
    let server = folder.start(command);
    // A message without fields.
    folder.file("message", [0; 5]);
    let address = server.addresses[0].trim_start_matches("grpc://");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--http2-prior-knowledge", "--data-binary", "@message"]);
    curl.args(["-H", "content-type: application/grpc", "-H", "te: trailers", "-H"]);
    curl.args([&*traceparent(), &format!("http://{address}/nuthatch.store.v1.Store/Tables")]);
    let sent = curl.current_dir(folder.path(".")).output().expect("curl, of scripts/packages");
    assert!(sent.status.success(), "{sent:?}");
    let call = wait_for(&collector, "store call");
    assert_eq!(
        (hex(&call.span.trace_id), hex(&call.span.parent_span_id)),
        (TRACE.to_owned(), PARENT.to_owned())
    );
    assert_eq!(call.attributes["rpc.method"], "Tables");
    assert_eq!(call.attributes["rpc.grpc.status_code"], "0");
}

#[test]
fn slow_commands_are_spans_without_their_arguments() {
    let (folder, collector) = (Folder::new(), Collector::start());
    let arguments = ["--otlp", &collector.url(), "--slow-log-threshold=0s"];
    let server = cache(&folder, &arguments, &[]);
    assert_eq!(server.ask("SET hidden-key hidden-value"), "+OK\r\n");
    let is_set =
        |found: &Found| found.attributes.get("db.operation.name").is_some_and(|it| it == "set");
    wait_until("a span", || collector.spans().iter().any(is_set));
    let found = collector.spans().into_iter().find(is_set).expect("a span");
    assert_eq!((&*found.span.name, &found.span.parent_span_id[..]), ("slow command", &[][..]));
    assert!(!format!("{:?}", collector.spans()).contains("hidden"));
}

#[test]
fn a_publication_and_its_follower_make_traces() {
    let (folder, collector) = (Folder::new(), Collector::start());
    folder.file("rows.jsonl", "{\"key\":\"a\",\"value\":1}\n");
    folder.build(&["rows.jsonl", "-o", "one.nut"]);
    let url = collector.url();
    let run = folder.run(&["publish", "one.nut", "shared", "--quiet", "--otlp", &url]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    let publish = collector.span("publish").expect("exported before the end of the command");
    let upload = collector.span("upload").expect("a span");
    assert_eq!(upload.span.parent_span_id, publish.span.span_id);

    let run = folder.run(&["follow", "shared", "local", "--once", "--otlp", &url]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    let follow = collector.span("follow").expect("a span");
    for name in ["prepare", "check", "fetch", "verify", "swap"] {
        let found = collector.span(name).expect(name);
        assert_eq!(found.span.trace_id, follow.span.trace_id, "{name}");
    }
}
