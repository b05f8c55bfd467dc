//! The limits of the admin endpoint, with times that tests need not wait for.

use super::*;
use crate::exposition::MetricsFormat;
use std::io::{Read, Write};
use std::net::TcpStream;

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

fn start(limits: Limits) -> (Admin, Address) {
    let any = "127.0.0.1:0".parse().expect("an address");
    let listeners = Listeners::bind(&[any]).expect("a free port");
    let source = Arc::new(Source { is_stopping: false });
    let admin = Admin::start_within(limits, listeners, source).expect("a thread");
    let address = admin.addresses()[0].clone();
    (admin, address)
}

fn connect(address: &Address) -> TcpStream {
    let Address::Tcp(address) = address else { panic!("an address of the network") };
    TcpStream::connect(address).expect("a connection")
}

fn limits() -> Limits {
    Limits { connections: 2, head: NEVER, lifetime: NEVER, leave: NEVER }
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

#[test]
fn connections_beyond_the_limit_wait_until_others_are_closed() {
    let (_admin, address) = start(limits());
    let (first, second) = (connect(&address), connect(&address));
    let mut third = connect(&address);
    third
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .expect("sent");
    drop(first);
    let mut response = String::new();
    third.read_to_string(&mut response).expect("a response");
    assert!(response.ends_with("\r\nok\n"), "{response}");
    drop(second);
}

#[test]
fn health_is_unavailable_while_the_server_stops() {
    let request = hyper::Request::get("/healthz").body(()).expect("a request");
    for (is_stopping, status) in [(false, 200), (true, 503)] {
        assert_eq!(respond::respond(&request, &Source { is_stopping }).status(), status);
    }
}
