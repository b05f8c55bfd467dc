//! A server, and raw bytes over its sockets.

mod log_in;
mod protocols;
mod sockets;
mod tls;

use nuthatch_cache::{Cache, Options as CacheOptions};
use nuthatch_server::{Address, Listener, Options, Protocol, Running};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

fn serve(addresses: &[&str], threads: usize) -> Running {
    let all: Vec<_> = addresses.iter().map(|address| (Protocol::Resp, *address)).collect();
    serve_all(&all, threads)
}

fn serve_all(listeners: &[(Protocol, &str)], threads: usize) -> Running {
    start(&Options::new(listeners.iter().map(at).collect()).threads(threads))
}

fn at((protocol, address): &(Protocol, &str)) -> Listener {
    Listener::new(*protocol, address.parse().expect("an address"))
}

/// A server of a small cache.
fn start(options: &Options) -> Running {
    let cache = Cache::new(CacheOptions::new().memory(64 << 20)).expect("a cache");
    Running::start(Arc::new(cache), options).expect("a server")
}

fn connect(server: &Running) -> TcpStream {
    connect_to(server, 0)
}

/// A connection to the listener of this number.
fn connect_to(server: &Running, listener: usize) -> TcpStream {
    let Address::Tcp(address) = server.listeners()[listener].address else {
        panic!("an address of the network")
    };
    TcpStream::connect(address).expect("a connection")
}

/// Sends bytes, then reads as many as are expected.
#[track_caller]
fn ask(stream: &mut (impl Read + Write), request: &[u8], expected: &[u8]) {
    stream.write_all(request).expect("sent");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

/// Sends bytes, and reads until the server ends the connection.
fn ask_last(stream: &mut (impl Read + Write), request: &[u8]) -> String {
    stream.write_all(request).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer, then the end");
    answer.escape_ascii().to_string()
}

/// Any free port.
const LOCAL: &str = "127.0.0.1:0";
