//! Tests clients that disconnect as soon as they have sent a request.

use crate::{RESP, Subject, TRIES, ask, clients};
use nuthatch_server::{Address, Listener, Options, Protocol, Running};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The number of connections, one after the other.
const CONNECTIONS: usize = 500;

/// Sends a request in many pieces and disconnects with an unread reply: the kernel may report the
/// last piece and the end of input to the server at the same time.
fn leave<S: Read + Write>(connect: impl Fn() -> S) {
    let mut control = connect();
    for _ in 0..CONNECTIONS {
        let mut stream = connect();
        ask(&mut stream, b"PING\r\nPING\r\n", b"+PONG\r\n");
        stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n").expect("sent");
        for len in [[6; 630], [33; 630]].concat() {
            stream.write_all(&[b'v'; 33][..len]).expect("sent");
        }
    }
    let alone = (0..TRIES).any(|_| clients(&mut control) == 1);
    assert!(alone, "{} connections stay", clients(&mut control) - 1);
}

/// Some kernels report the input, but not the end that arrived with it.
#[test]
fn clients_that_disconnect_after_a_request_are_removed() {
    let subject = Subject::new();
    leave(|| subject.connect(RESP));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("resp");
    let listener = Listener::new(Protocol::Resp, Address::Unix(path.clone()));
    let options = Options::new(vec![listener]);
    let server = Running::start(Arc::clone(&subject.cache), &options).expect("a server");
    leave(|| UnixStream::connect(&path).expect("a connection"));
    drop(server);
}
