//! Tests that memory of the process that buffers of clients used is returned to the system. The
//! test is alone in its program, since all tests of a process share its memory.

use nuthatch_cache::{Cache, Options as CacheOptions};
use nuthatch_server::{Address, IoBackend, Listener, Options, Protocol, Running};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// Minimum memory that the clients must use.
const MIN_GROWTH: u64 = 40 * MIB;
/// Maximum of it that may stay with the process. The server returns memory when connections have
/// freed a 32nd of the budget, 8 MiB; if they disconnect slowly, up to that much is freed after the
/// last time.
const MAX_KEPT: u64 = 24 * MIB;

/// The time that a test waits before it fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// Returns a field of `/proc/self/statm`, in bytes.
fn memory(field: usize) -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("this process");
    let pages = text.split(' ').nth(field).expect("a field");
    pages.parse::<u64>().expect("a number") * rustix::param::page_size() as u64
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    memory(1)
}

/// Returns whether the process runs under the address sanitizer, which keeps freed memory. It
/// reserves terabytes of address space.
fn is_sanitized() -> bool {
    memory(0) > 1 << 40
}

#[track_caller]
fn wait_until(expected: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{expected}: {} MiB are resident", resident() / MIB);
        std::thread::yield_now();
    }
}

/// Allows as many descriptors as both sides of all connections need.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(8192, |max| max.min(8192));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).expect("a limit");
}

fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).expect("a connection")
}

/// Connects clients that have each sent a part of a request of this length.
fn incomplete_requests(address: SocketAddr, len: usize) -> Vec<TcpStream> {
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}\r\n");
    let request = [head.as_bytes(), &vec![b'v'; len]].concat();
    let clients = (0..MIN_GROWTH as usize * 5 / 4 / len).map(|_| {
        let mut client = connect(address);
        client.write_all(&request).expect("sent");
        client
    });
    clients.collect()
}

/// Connects clients that request a value again and again, and read nothing.
fn unread_replies(address: SocketAddr) -> Vec<TcpStream> {
    let value = vec![b'v'; 60_000];
    let mut clients: Vec<_> = (0..MIN_GROWTH / MIB * 5 / 4).map(|_| connect(address)).collect();
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    let set = [head.as_bytes(), &value, b"\r\n"].concat();
    clients[0].write_all(&set).expect("sent");
    clients[0].read_exact(&mut [0; 5]).expect("an answer");
    for client in &mut clients {
        client.write_all(&b"GET k\r\n".repeat(300)).expect("sent");
    }
    clients
}

#[test]
fn memory_of_large_requests_and_replies_is_returned_after_clients_disconnect() {
    allow_descriptors();
    for io_backend in [IoBackend::Uring, IoBackend::Epoll] {
        let cache = Cache::new(CacheOptions::new().memory(256 * MIB)).expect("a cache");
        let any: Address = "127.0.0.1:0".parse().expect("an address");
        let options = Options::new(vec![Listener::new(Protocol::Resp, any)]).threads(2);
        let server = Running::start(Arc::new(cache), &options.io_backend(io_backend));
        let server = server.expect("a server");
        let Address::Tcp(address) = server.listeners()[0].address else {
            unreachable!("it is of the network")
        };
        let before = resident();
        for _ in 0..2 {
            for flood in [
                &|| incomplete_requests(address, 60_000) as Vec<TcpStream>,
                &|| incomplete_requests(address, 200_000),
                &|| unread_replies(address),
            ] as [&dyn Fn() -> Vec<TcpStream>; 3]
            {
                let clients = flood();
                wait_until("more memory", || resident() >= before + MIN_GROWTH);
                drop(clients);
                wait_until("less memory", || resident() <= before + MAX_KEPT || is_sanitized());
            }
        }
    }
}
