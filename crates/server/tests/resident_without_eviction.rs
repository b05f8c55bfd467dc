//! Tests that the memory of the process stays within the budget although clients send values that
//! do not fit. The test is alone in its program, since all tests of a process share its memory.

use nuthatch_cache::{Cache, Eviction, Options as CacheOptions};
use nuthatch_server::{Address, IoBackend, Listener, Options, Protocol, Running};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

const MEMORY: u64 = 128 * MIB;

/// What the process uses in addition to the budget: pages of the program that are used for the
/// first time, stacks of threads, and what this test itself allocates.
const MAX_OVERHEAD: u64 = 12 * MIB;

/// Returns the maximum of the resident memory of this process, or the memory now, in bytes.
fn resident(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("this process");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    let kib = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    kib.parse::<u64>().expect("a number") * 1024
}

/// Returns whether the process runs under the address sanitizer, which keeps freed memory. It
/// reserves terabytes of address space.
fn is_sanitized() -> bool {
    resident("VmSize") > 1 << 40
}

/// Stores a value of this many bytes without allocating it as a whole. Returns whether it was
/// stored.
fn set(client: &mut TcpStream, key: u64, len: u64) -> bool {
    let part = vec![key as u8; 64 << 10];
    write!(client, "*3\r\n$3\r\nSET\r\n$1\r\n{key}\r\n${len}\r\n").expect("sent");
    for _ in 0..len / part.len() as u64 {
        client.write_all(&part).expect("sent");
    }
    client.write_all(b"\r\n").expect("sent");
    let mut reply = Vec::new();
    while !reply.ends_with(b"\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("a reply");
        reply.extend(byte);
    }
    let is_stored = reply == b"+OK\r\n";
    assert!(is_stored || reply.starts_with(b"-OOM"), "{}", reply.escape_ascii());
    is_stored
}

fn start(io_backend: IoBackend) -> (Running, SocketAddr) {
    let options = CacheOptions::new().memory(MEMORY).eviction(Eviction::None);
    let cache = Cache::new(options).expect("a cache");
    let any: Address = "127.0.0.1:0".parse().expect("an address");
    let options = Options::new(vec![Listener::new(Protocol::Resp, any)]).threads(2);
    let server =
        Running::start(Arc::new(cache), &options.io_backend(io_backend)).expect("a server");
    let Address::Tcp(address) = server.listeners()[0].address else {
        unreachable!("it is of the network")
    };
    (server, address)
}

/// Regression test: values that did not fit were gathered in buffers in addition to the budget, and
/// glibc kept the memory of those buffers for later ones: 176 MiB were resident of 128.
#[test]
fn long_values_that_do_not_fit_do_not_take_memory_beyond_the_budget() {
    let before = resident("VmRSS");
    for io_backend in [IoBackend::Uring, IoBackend::Epoll] {
        let (_server, address) = start(io_backend);
        let mut client = TcpStream::connect(address).expect("a connection");
        let (mut stored, mut refused) = (0, 0);
        for number in 0..60 {
            let len = [20, 4, 30, 8, 12][number as usize * 7 % 5] * MIB;
            let is_stored = set(&mut client, number * 4 % 9, len);
            *(if is_stored { &mut stored } else { &mut refused }) += 1;
        }
        assert!(stored > 10 && refused > 10, "{stored} were stored, {refused} refused");
    }
    let peak = resident("VmHWM") - before;
    assert!(peak <= MEMORY + MAX_OVERHEAD || is_sanitized(), "{} MiB were resident", peak / MIB);
}
