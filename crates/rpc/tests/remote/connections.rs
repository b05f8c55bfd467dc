//! Connections that send nothing, and clients that wait for a slot.

use super::security::{Files, issuer, secured};
use super::served::{Served, TABLE, options, served_to, served_with};
use nuthatch_rpc::{Client, ClientOptions, ClientTls, ServerTls};
use nuthatch_store::Start;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);
const HOURS: Duration = Duration::from_hours(9);
/// A timeout for tests that would hang otherwise.
const PATIENCE: Duration = Duration::from_mins(2);

/// The preface of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn silent(address: SocketAddr, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(sent).expect("sent");
    stream
}

/// Waits until the server has closed a connection.
#[track_caller]
fn is_closed(mut stream: impl Read) {
    let mut rest = Vec::new();
    if let Err(error) = stream.read_to_end(&mut rest) {
        let timed_out = [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut];
        assert!(!timed_out.contains(&error.kind()), "the connection is still open");
    }
}

/// Returns options for a client that waits as long as a test may take.
fn client() -> ClientOptions {
    ClientOptions::new().timeout(PATIENCE)
}

/// Makes a call with another client.
#[track_caller]
fn another_calls(served: &Served) -> Client {
    let address = super::served::address(&served.server);
    let other = served.wait(async {
        let other = Client::connect_with(&address, &client()).await?;
        other.get(TABLE, b"a").await?;
        Ok::<_, nuthatch_rpc::Error>(other)
    });
    other.expect("an answer")
}

/// Regression: connections that sent nothing were never closed, and kept other clients out.
#[test]
fn connections_that_do_not_begin_http2_are_closed_and_let_others_in() {
    let served = served_with(&options().connections(3).handshake(SHORT).idle(HOURS));
    let address = served.server.addresses()[0];
    for sent in [&b""[..], &PREFACE[..9], PREFACE] {
        let streams: Vec<_> = (0..5).map(|_| silent(address, sent)).collect();
        another_calls(&served);
        streams.into_iter().for_each(is_closed);
    }
}

/// Regression: each connection kept its slot for the maximum time of a handshake or of a call.
#[test]
fn connections_that_do_not_begin_http2_make_room_for_clients_that_wait() {
    let served = served_with(&options().connections(3).handshake(HOURS).idle(HOURS));
    let address = served.server.addresses()[0];
    let streams: Vec<_> = (0..20).map(|_| silent(address, &PREFACE[..9])).collect();
    another_calls(&served);
    streams.into_iter().take(15).for_each(is_closed);
}

#[test]
fn connections_that_ignore_goaway_end_for_waiting_clients() {
    let served = served_with(&options().connections(2).handshake(HOURS).idle(SHORT));
    let address = served.server.addresses()[0];
    let begun = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    let streams: Vec<_> = (0..5).map(|_| silent(address, &begun)).collect();
    another_calls(&served);
    streams.into_iter().take(3).for_each(is_closed);
}

#[test]
fn a_client_of_another_protocol_is_closed_at_once() {
    let served = served_with(&options().handshake(HOURS));
    is_closed(silent(served.server.addresses()[0], b"GET / HTTP/1.1\r\n\r\n"));
}

#[test]
fn connections_without_a_tls_handshake_are_closed_for_waiting_clients() {
    let (files, issuer) = (Files::new(), issuer());
    let (cert, key) = files.identity("server", &issuer);
    let ca = files.write("ca.pem", &issuer.pem());
    let tls = ServerTls::open(&cert, &key).expect("files");
    let secured = secured(&options().connections(2).handshake(SHORT).tls(tls));
    let address = secured.server.addresses()[0];
    let trusting = client().tls(ClientTls::open(&ca).expect("a file"));
    let without: Vec<_> = (0..5).map(|_| silent(address, b"")).collect();
    let with = tls_without_http(address, &issuer.pem());
    secured.put(&secured.connect("grpcs", &trusting).expect("a client")).expect("written");
    without.into_iter().for_each(is_closed);
    is_closed(with);
}

/// Does the TLS handshake, and then sends nothing.
fn tls_without_http(address: SocketAddr, ca: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM")).expect("an issuer");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let tls = ClientConnection::new(Arc::new(config), name).expect("a client of TLS");
    let mut stream = StreamOwned::new(tls, silent(address, b""));
    stream.conn.complete_io(&mut stream.sock).expect("a handshake");
    stream
}

/// Regression: connections without calls kept other clients out.
#[test]
fn an_idle_connection_ends_for_a_waiting_client_at_the_maximum() {
    let served = served_to(&options().connections(1).idle(SHORT), &client());
    served.wait(served.client.put(TABLE, b"a", b"1")).expect("written");
    let other = another_calls(&served);
    // The first client reconnects by itself, and then the other one.
    for client in [&served.client, &other, &served.client] {
        assert!(served.wait(client.get(TABLE, b"a")).expect("read").is_some());
    }
}

/// A failed call fails the test: this client does not retry.
#[test]
fn idle_connections_stay_below_the_maximum() {
    let served = served_to(&options().connections(3).idle(SHORT), &client().retries(0));
    let settings = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat();
    let mut stream = silent(served.server.addresses()[0], &settings);
    let other = another_calls(&served);
    for _ in 0..200 {
        served.wait(other.get(TABLE, b"a")).expect("read");
    }
    assert!(served.wait(served.client.get(TABLE, b"a")).is_ok());
    stream.set_nonblocking(true).expect("a socket");
    let error = loop {
        match stream.read(&mut [0; 1024]) {
            Ok(len) => assert_ne!(len, 0, "the connection was closed"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_watch_in_progress_is_not_idle() {
    let served = served_to(&options().connections(2).idle(SHORT), &client().retries(0));
    served.store.keep_changes(10, 1 << 20).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    for key in [b"a", b"b", b"c"] {
        // Each takes the slot of the previous one.
        let other = another_calls(&served);
        served.wait(other.put(TABLE, key, b"1")).expect("written");
        let changes = served.wait(watch.next()).expect("no end").expect("changes");
        assert_eq!(changes.len(), 1);
    }
}

/// Regression: connections that had sent nothing delayed a stop until the drain time had passed.
#[test]
fn draining_does_not_wait_for_connections_that_send_nothing() {
    let served = served_with(&options().handshake(HOURS).drain(HOURS));
    let stream = silent(served.server.addresses()[0], b"");
    another_calls(&served);
    let Served { server, client, .. } = served;
    drop(client);
    server.stopper().stop();
    server.wait().expect("it stops");
    is_closed(stream);
}
