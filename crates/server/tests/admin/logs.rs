//! Tests what is logged, and what never is.

use crate::serving::{Resp, serve, serve_all_protocols};
use nuthatch_server::Address;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::fmt::MakeWriter;

/// The lines that were logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Sends an HTTP request to the port of each protocol, and a value that is too long to that of
/// mrcache. Waits until the server has closed each connection.
fn refuse_http_and_a_long_value() {
    let server = serve_all_protocols();
    let addresses: Vec<_> = server.listeners().iter().map(|one| one.address.clone()).collect();
    let send = |address: &Address, request: &[u8]| {
        let Address::Tcp(address) = address else { unreachable!("all are of the network") };
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(request).expect("sent");
        // A connection that is closed with unread input is reset.
        let _ = stream.read_to_end(&mut Vec::new());
    };
    for address in &addresses {
        send(address, b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nmy-body");
    }
    let len = (64_u32 << 20).to_le_bytes();
    send(addresses.last().expect("mrcache"), &[&b"\0\x02\x01\0"[..], &len, b"x"].concat());
    server.stopper().stop();
    server.wait().expect("stopped");
}

/// One test for all lines, since all threads of a process log to one place.
#[test]
fn events_are_logged_and_neither_requests_nor_secrets() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("the only one");
    refuse_http_and_a_long_value();
    let server = serve(1);
    let mut client = Resp::connect(&server);
    let mut other = Resp::connect(&server);
    client.ask("AUTH no\u{1b}body my-secret-password");
    client.ask("HELLO 3 AUTH somebody my-secret-password");
    client.ask("SET my-key my-value");
    client.ask("GET my-key");
    let id = other.ask("CLIENT ID").remove(0);
    client.ask(&format!("CLIENT KILL ID {id}"));
    client.ask("CONFIG SET maxclients 1");
    Resp::connect(&server).ask("PING");
    client.ask("*1\r\n!");
    server.stopper().stop();
    server.wait().expect("stopped");
    let text = lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let text = String::from_utf8(text).expect("a text");
    for (expected, times) in [
        ("INFO nuthatch::server: started threads=1 resp=127.0.0.1:", 1),
        ("WARN nuthatch::users: a login failed unlogged=0 peer=\"127.0.0.1:", 2),
        ("user=\"no\\u{1b}body\"", 1),
        ("user=\"somebody\"", 1),
        ("INFO nuthatch::connections: closed by CLIENT KILL unlogged=0 peer=", 1),
        ("WARN nuthatch::connections: a connection was refused: too many unlogged=0 peer=", 1),
        ("DEBUG nuthatch::connections: a request breaks the protocol unlogged=0 peer=", 1),
        ("WARN nuthatch::connections: closed: an HTTP request arrived, perhaps from a browser", 4),
        ("nothing of the request was executed unlogged=0 peer=\"127.0.0.1:", 4),
        ("port_of=\"Redis\"", 1),
        ("port_of=\"memcached\"", 1),
        ("port_of=\"poor-man's-cache\"", 1),
        ("port_of=\"mrcache\"", 1),
        ("WARN nuthatch::connections: a value was refused: too long unlogged=0 peer=\"127", 1),
        ("limit=3/8 of maxmemory", 1),
        ("INFO nuthatch::server: stopping", 1),
        ("INFO nuthatch::server: stopped", 1),
    ] {
        // Other tests of this process log, too.
        assert!(text.matches(expected).count() >= times, "{expected:?} in\n{text}");
    }
    for secret in ["my-secret-password", "my-key", "my-value", "my-body"] {
        assert!(!text.contains(secret), "{secret} in\n{text}");
    }
}
