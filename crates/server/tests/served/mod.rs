//! A server to connect to, with either I/O backend.

use nuthatch_cache::{Cache, Options as CacheOptions};
use nuthatch_server::{Address, IoBackend, Listener, Options, Protocol, Running};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Once};

/// Creates a module for each I/O backend, with a test of each name.
macro_rules! with_every_io_backend {
    ($($test:ident)*) => {
        mod io_uring {
            $(#[test] fn $test() { super::$test(nuthatch_server::IoBackend::Uring); })*
        }
        mod epoll {
            $(#[test] fn $test() { super::$test(nuthatch_server::IoBackend::Epoll); })*
        }
    };
}
pub(crate) use with_every_io_backend;

pub(crate) fn cache() -> Arc<Cache> {
    Arc::new(Cache::new(CacheOptions::new().memory(64 << 20)).expect("a cache"))
}

/// The number of descriptors for tests that run at once, as far as it is allowed.
const DESCRIPTORS: u64 = 16 << 10;

/// Raises the limit for all tests of this process, once.
pub(crate) fn allow_descriptors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let limit = getrlimit(Resource::Nofile);
        let max = limit.maximum.map_or(DESCRIPTORS, |max| max.min(DESCRIPTORS));
        if limit.current.is_some_and(|current| current < max) {
            let raised = Rlimit { current: Some(max), ..limit };
            setrlimit(Resource::Nofile, raised).expect("a limit");
        }
    });
}

/// Any free port.
pub(crate) const LOCAL: &str = "127.0.0.1:0";

pub(crate) fn at((protocol, address): &(Protocol, &str)) -> Listener {
    Listener::new(*protocol, address.parse().expect("an address"))
}

/// Returns options with listeners for clients of Redis.
pub(crate) fn options(addresses: &[&str], threads: usize, io_backend: IoBackend) -> Options {
    let listeners = addresses.iter().map(|address| at(&(Protocol::Resp, *address)));
    Options::new(listeners.collect()).threads(threads).io_backend(io_backend)
}

/// Starts a server with a small cache.
pub(crate) fn start(options: &Options) -> Running {
    allow_descriptors();
    Running::start(cache(), options).expect("a server")
}

/// Starts a server with one thread, for clients of Redis.
pub(crate) fn serve(io_backend: IoBackend) -> Running {
    start(&options(&[LOCAL], 1, io_backend))
}

/// Returns the address of the listener with this number.
pub(crate) fn address(server: &Running, listener: usize) -> std::net::SocketAddr {
    let Address::Tcp(address) = server.listeners()[listener].address else {
        panic!("an address of the network")
    };
    address
}

pub(crate) fn connect(server: &Running) -> TcpStream {
    connect_to(server, 0)
}

/// Connects to the listener with this number.
pub(crate) fn connect_to(server: &Running, listener: usize) -> TcpStream {
    TcpStream::connect(address(server, listener)).expect("a connection")
}

/// Sends bytes, then reads the expected reply.
#[track_caller]
pub(crate) fn ask(stream: &mut (impl Read + Write), request: &[u8], expected: &[u8]) {
    stream.write_all(request).expect("sent");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

/// Returns the value of this field of `INFO`.
#[track_caller]
pub(crate) fn info(stream: &mut TcpStream, name: &str) -> String {
    stream.write_all(b"INFO\r\n").expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let len: usize = head.trim_end()[1..].parse().expect("a length");
    let mut text = vec![0; len + 2];
    stream.read_exact(&mut text).expect("an answer");
    let text = String::from_utf8(text).expect("text");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

/// Returns the number of iterations of the event loop.
#[track_caller]
pub(crate) fn iterations(stream: &mut TcpStream) -> u64 {
    info(stream, "eventloop_cycles").parse().expect("a number")
}

/// Waits for as long as this many round trips take.
pub(crate) fn pass_time(clock: &mut TcpStream, round_trips: usize) {
    for _ in 0..round_trips {
        ask(clock, b"PING\r\n", b"+PONG\r\n");
    }
}
