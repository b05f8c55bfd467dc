//! Tests the admin endpoint as an HTTP server.

use crate::serving::{admin, ask, get, serve, serve_at};
use nuthatch_listen::admin::{BindError, Client};
use nuthatch_server::{Address, Listener, Options, Protocol, Running};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {answer:?}"))
}

#[test]
fn paths_and_methods_have_their_statuses() {
    let server = serve(1);
    for (request, expected) in [
        ("GET /", "200"),
        ("GET /metrics", "200"),
        ("GET /metrics?name=all", "200"),
        ("HEAD /metrics", "200"),
        ("GET /healthz", "200"),
        ("GET /live.json", "200"),
        ("GET /page/main.js", "200"),
        ("GET /metrics/", "404"),
        ("GET /nothing", "404"),
        ("POST /nothing", "404"),
        ("POST /metrics", "405"),
        ("DELETE /", "405"),
        ("OPTIONS /healthz", "405"),
    ] {
        let head = "host: localhost\r\nconnection: close";
        let request = format!("{request} HTTP/1.1\r\n{head}\r\n\r\n");
        let answer = ask(&mut admin(&server), &request);
        assert_eq!(status(&answer), expected, "{request}{answer}");
        let allowed = answer.to_ascii_lowercase().contains("\r\nallow: get, head\r\n");
        assert_eq!(allowed, expected == "405", "{answer}");
        if request.starts_with("HEAD") {
            assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        }
    }
    assert_eq!(get(&server, "/healthz", "*/*").1, "ok\n");
    let (head, page) = get(&server, "/", "*/*");
    assert!(head.contains("text/html") && page.contains("href=\"/metrics\""), "{head}{page}");
}

#[test]
fn a_connection_serves_several_requests() {
    let server = serve(1);
    let mut stream = admin(&server);
    for _ in 0..3 {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok\n") {
            let mut piece = [0; 256];
            let len = stream.read(&mut piece).expect("an answer");
            assert_ne!(len, 0, "closed after {}", answer.escape_ascii());
            answer.extend_from_slice(&piece[..len]);
        }
    }
}

#[test]
fn invalid_http_is_refused() {
    let server = serve(1);
    for request in [
        "*1\r\n$4\r\nPING\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "GET /metrics HTTP/1.1\r\nhost x\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1000)),
    ] {
        let answer = ask(&mut admin(&server), &request);
        assert!(answer.is_empty() || status(&answer).starts_with('4'), "{request}: {answer}");
    }
    assert_eq!(get(&server, "/healthz", "*/*").1, "ok\n");
}

#[test]
fn an_endless_head_is_refused() {
    let server = serve(1);
    let mut stream = admin(&server);
    stream.write_all(b"GET / HTTP/1.1\r\nlong: ").expect("sent");
    let piece = [b'x'; 4096];
    // At some time the server stops reading: the loop would send 1 GB.
    let refused = (0..1 << 18).any(|_| stream.write_all(&piece).is_err());
    assert!(refused);
    assert_eq!(get(&server, "/healthz", "*/*").1, "ok\n");
}

#[test]
fn several_addresses_are_bound_and_socket_files_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("admin.sock");
    let server = serve_at(&["127.0.0.1:0", &format!("unix:{}", path.display()), "127.0.0.1:0"], 1);
    let [Address::Tcp(first), Address::Unix(_), Address::Tcp(third)] = server.admin() else {
        panic!("{:?}", server.admin())
    };
    assert!(first.port() > 0 && third.port() > 0 && first != third);
    let request = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let mut stream = UnixStream::connect(&path).expect("a connection");
    assert!(ask(&mut stream, request).ends_with("\r\nok\n"));
    for address in server.admin() {
        let client = Client::new(address.clone(), Duration::from_mins(1)).expect("a client");
        assert_eq!(client.get("/healthz").expect("an answer"), "ok\n");
        let missing = client.get("/nothing").expect_err("no such path").to_string();
        assert!(missing.contains("expected status 200, found 404"), "{missing}");
    }
    drop(server);
    assert!(!path.exists());
}

#[test]
fn a_port_in_use_is_a_bind_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(1);
    let path = folder.path().join("resp.sock");
    let resp = Listener::new(Protocol::Resp, Address::Unix(path.clone()));
    let options = Options::new(vec![resp]).admin(server.admin().to_vec());
    let cache = nuthatch_cache::Cache::new(nuthatch_cache::Options::new()).expect("a cache");
    let error = Running::start(cache.into(), &options).expect_err("the port is taken");
    let inner = error.get_ref().expect("a reason");
    assert!(inner.is::<BindError>(), "{inner:?}");
    let expected = format!("the admin address {}: ", server.admin()[0]);
    assert!(error.to_string().starts_with(&expected), "{error}");
    // The address that was bound first is free again, so the next start can use it.
    assert!(!path.exists());
}

#[test]
fn the_admin_port_stops_with_the_server_despite_open_connections() {
    let server = serve(1);
    let mut waiting = admin(&server);
    waiting.write_all(b"GET /metrics HTTP/1.1\r\n").expect("sent");
    drop(server);
    // Reads the end or an error; the server does not wait without an end.
    let _ = waiting.read_to_end(&mut Vec::new());
}
