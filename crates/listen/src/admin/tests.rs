//! The limits of the admin endpoint, with times that tests need not wait for.

use super::*;
use crate::exposition::MetricsFormat;
use crate::secret_hash::SecretHash;
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longer than any test waits.
const NEVER: Duration = Duration::from_hours(1);
const SOON: Duration = Duration::from_millis(10);

/// A server without metrics.
struct Source {
    is_stopping: bool,
}

impl MetricsSource for Source {
    fn metrics(&self, _: MetricsFormat) -> String {
        String::new()
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping
    }
}

fn access() -> Access {
    let token = Some(SecretHash::of(b"a token of the tests"));
    Access::new(AccessRules { hosts: vec!["cache-7.example".to_owned()], token })
}

fn start(limits: Limits) -> (Admin, Address) {
    let any = "127.0.0.1:0".parse().expect("an address");
    let listeners = Listeners::bind(&[any]).expect("a free port");
    let source = Arc::new(Source { is_stopping: false });
    let admin = Admin::start_within(limits, listeners, source, access()).expect("a thread");
    let address = admin.addresses()[0].clone();
    (admin, address)
}

fn connect(address: &Address) -> TcpStream {
    let Address::Tcp(address) = address else { panic!("an address of the network") };
    TcpStream::connect(address).expect("a connection")
}

fn limits() -> Limits {
    Limits { connections: 2, idle: SOON, head: NEVER, lifetime: NEVER, leave: NEVER }
}

#[test]
fn a_silent_client_is_closed() {
    let (_admin, address) = start(Limits { head: SOON, ..limits() });
    for begun in ["", "GET / HTTP/1.1\r\nhost:"] {
        let mut stream = connect(&address);
        stream.write_all(begun.as_bytes()).expect("sent");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the end");
    }
}

#[test]
fn a_client_with_a_slow_head_is_closed() {
    let (_admin, address) = start(Limits { lifetime: SOON, leave: SOON, ..limits() });
    let mut stream = connect(&address);
    stream.write_all(b"GET / HTTP/1.1\r\nhost:").expect("sent");
    stream.read_to_end(&mut Vec::new()).expect("the end");
}

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// Returns the response of a server to a question about its health.
fn health(mut stream: impl Read + Write) -> String {
    stream.write_all(HEALTH).expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

#[test]
fn idle_connections_keep_no_health_check_out() {
    let (_admin, address) = start(limits());
    let mut idle: Vec<_> = (0..20).map(|_| connect(&address)).collect();
    let response = health(connect(&address));
    assert!(response.ends_with("\r\nok\n"), "{response}");
    // Those that were idle for longest were closed.
    idle[0].read_to_end(&mut Vec::new()).expect("the end");
}

/// Returns a connection: the client's end and, after it, the server's.
fn connection() -> (UnixStream, UnixStream) {
    let (client, server) = UnixStream::pair().expect("a descriptor");
    server.set_nonblocking(true).expect("a mode");
    (client, server)
}

/// Serves connections of two listeners on a thread. The first one accepts these connections. The
/// second one has no free descriptor until the flag is set, and then accepts `last`.
fn serve_without_descriptors(mut first: Vec<UnixStream>, last: UnixStream, free: Arc<AtomicBool>) {
    // Far below the limit of connections.
    let limits = Limits { connections: 100, ..limits() };
    let accept = |stream| Poll::Ready(tokio::net::UnixStream::from_std(stream));
    let serve = async move {
        let lifecycle = Lifecycle::new();
        let (live, descriptors) = (Arc::default(), Arc::new(Descriptors::new(limits.idle)));
        let (source, drain) = (Arc::new(Source { is_stopping: false }), lifecycle.signal());
        let endpoint = Endpoint { source, access: access(), live, limits, descriptors, drain };
        let first = RefCell::new(first.drain(..));
        let last = Cell::new(Some(last));
        let of_first = endpoint.clone().accept(true, |_: &mut Context<'_>| {
            first.borrow_mut().next().map_or(Poll::Pending, accept)
        });
        let of_last = endpoint.accept(false, |_: &mut Context<'_>| {
            if free.load(Ordering::Acquire) {
                return last.take().map_or(Poll::Pending, accept);
            }
            Poll::Ready(Err(io::Error::from(Errno::MFILE)))
        });
        tokio::join!(of_first, of_last);
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(serve);
}

#[test]
fn idle_connections_of_any_listener_end_while_no_descriptor_is_free() {
    let (clients, servers): (Vec<_>, Vec<_>) = (0..4).map(|_| connection()).unzip();
    let (client, last) = connection();
    let free = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&free);
    std::thread::spawn(move || serve_without_descriptors(servers, last, flag));
    for mut idle in clients {
        idle.read_to_end(&mut Vec::new()).expect("the end");
    }
    free.store(true, Ordering::Release);
    let response = health(client);
    assert!(response.ends_with("\r\nok\n"), "{response}");
}

#[test]
fn connections_of_the_network_take_no_slots_of_a_socket_file() {
    let path = std::env::temp_dir().join(format!("nuthatch-admin-{}.sock", std::process::id()));
    let network = "127.0.0.1:0".parse().expect("an address");
    let listeners = Listeners::bind(&[network, Address::Unix(path.clone())]).expect("free");
    let source = Arc::new(Source { is_stopping: false });
    // No connection is ever idle.
    let limits = Limits { idle: NEVER, ..limits() };
    let admin = Admin::start_within(limits, listeners, source, access()).expect("a thread");
    let _idle: Vec<_> = (0..20).map(|_| connect(&admin.addresses()[0])).collect();
    let stream = UnixStream::connect(path).expect("a connection");
    let response = health(stream);
    assert!(response.ends_with("\r\nok\n"), "{response}");
}

/// Returns the response to a request with these headers.
fn response(path: &str, headers: &[(&str, &str)]) -> Response<http_body_util::Full<Bytes>> {
    response_of(&Source { is_stopping: false }, (path, headers), &access())
}

fn response_of(
    source: &Source,
    (path, headers): (&str, &[(&str, &str)]),
    access: &Access,
) -> Response<http_body_util::Full<Bytes>> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let live = LiveCache::default();
    let site = Site { source, access, live: &live, is_network: true };
    respond::respond(&request.body(()).expect("a request"), &site)
}

#[test]
fn health_is_unavailable_while_the_server_stops() {
    for (is_stopping, status) in [(false, 200), (true, 503)] {
        let response = response_of(&Source { is_stopping }, ("/healthz", &[]), &access());
        assert_eq!(response.status(), status);
    }
}

#[test]
fn the_page_and_its_files_have_headers_that_protect_them() {
    for path in ["/", "/page/style.css", "/page/main.js", "/metrics", "/live.json", "/nothing"] {
        let response = response(path, &[("host", "localhost")]);
        let headers = response.headers();
        let policy = headers["content-security-policy"].to_str().expect("a text");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin", "{path}");
        assert_eq!(headers["cache-control"], "no-store", "{path}");
        assert!(!headers.contains_key("access-control-allow-origin"), "{path}");
    }
}

#[test]
fn other_names_and_sites_are_refused() {
    let evil = ("host", "evil.example:9464");
    let cross = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
    for path in ["/", "/live.json", "/page/main.js"] {
        assert_eq!(response(path, &[evil]).status(), StatusCode::MISDIRECTED_REQUEST, "{path}");
        assert_eq!(response(path, &cross).status(), StatusCode::FORBIDDEN, "{path}");
        let named = [("host", "cache-7.example:9464")];
        assert_eq!(response(path, &named).status(), StatusCode::OK, "{path}");
    }
    for path in ["/metrics", "/healthz"] {
        assert_eq!(response(path, &[evil]).status(), StatusCode::OK, "{path}");
        let browser = [evil, ("accept-language", "en")];
        assert_eq!(response(path, &browser).status(), StatusCode::MISDIRECTED_REQUEST, "{path}");
    }
}

#[test]
fn private_values_need_the_token() {
    let status = |value| response("/live.json", &[("authorization", value)]).status();
    assert_eq!(status("Bearer a token of the tests"), StatusCode::OK);
    assert_eq!(status("bearer a token of the tests"), StatusCode::OK);
    for wrong in ["Bearer a token", "Bearer ", "Basic a token of the tests", ""] {
        assert_eq!(status(wrong), StatusCode::UNAUTHORIZED, "{wrong}");
    }
    let (source, access) = (Source { is_stopping: false }, access());
    let statuses = (0..7).map(|_| {
        let headers = [("authorization", "Bearer wrong")];
        response_of(&source, ("/live.json", &headers), &access).status().as_u16()
    });
    assert_eq!(statuses.collect::<Vec<_>>(), [401, 401, 401, 401, 401, 429, 429]);
    let headers = [("authorization", "Bearer a token of the tests")];
    let without_token = Access::default();
    let refused = response_of(&source, ("/live.json", &headers), &without_token);
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn refused_requests_are_counted_by_cause() {
    let (source, access) = (Source { is_stopping: false }, access());
    for (header, times) in [
        (("authorization", "Bearer wrong"), 7),
        (("host", "evil.example"), 2),
        (("sec-fetch-site", "cross-site"), 1),
    ] {
        for _ in 0..times {
            response_of(&source, ("/live.json", &[header]), &access);
        }
    }
    let text = access.exposition()();
    for (cause, count) in [("wrong-token", 5), ("too-many-tokens", 2), ("host", 2)] {
        let line = format!("nuthatch_admin_refused_total{{cause=\"{cause}\"}} {count}\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(text.contains("{cause=\"cross-site\"} 1\n"), "{text}");
}
