//! Tests invalid input, clients that misbehave, and resources that are used up: in every protocol
//! the reply is an error or the connection ends, and the server serves other clients.

mod clock;
mod disconnects;
mod http;
mod incomplete;
mod interleaved;
mod memory;
mod oversized;
mod reply_memory;
mod too_long;
mod truncated;
mod unread_replies;
mod value_bytes;

use nuthatch_cache::{Cache, Eviction, ManualClock, Options as CacheOptions};
use nuthatch_server::mrcache::Framing;
use nuthatch_server::{Address, Listener, Options, Protocol, Running};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// The listeners of every server here, by number.
const RESP: usize = 0;
const MEMCACHE: usize = 1;
const PMC: usize = 2;
const MRCACHE: usize = 3;

const PROTOCOLS: [Protocol; 4] =
    [Protocol::Resp, Protocol::Memcache, Protocol::Pmc, Protocol::Mrcache(Framing::Len4)];

/// The time after which a test fails that waits for something.
const PATIENCE: Duration = Duration::from_mins(1);

/// The number of requests after which closed connections must be removed.
const TRIES: usize = 1_000_000;

/// A server for all protocols, and its cache.
struct Subject {
    cache: Arc<Cache>,
    clock: Arc<ManualClock>,
    server: Running,
}

impl Subject {
    fn new() -> Self {
        Self::with(64 << 20, Eviction::S3Fifo, 1)
    }

    fn with(memory: u64, eviction: Eviction, threads: usize) -> Self {
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        let options = CacheOptions::new().memory(memory).eviction(eviction);
        let cache = Cache::new(options.clock(Arc::<ManualClock>::clone(&clock))).expect("a cache");
        let cache = Arc::new(cache);
        let any: Address = "127.0.0.1:0".parse().expect("an address");
        let listeners = PROTOCOLS.map(|protocol| Listener::new(protocol, any.clone()));
        let options = Options::new(listeners.into()).threads(threads);
        let server = Running::start(Arc::clone(&cache), &options).expect("a server");
        Self { cache, clock, server }
    }

    /// Connects to one of the listeners.
    fn connect(&self, listener: usize) -> TcpStream {
        let Address::Tcp(address) = self.server.listeners()[listener].address else {
            unreachable!("all are of the network")
        };
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Checks that the server answers another client, and uses no more memory than it may. What
    /// one iteration of each worker received may exceed the limit until the clients that are closed
    /// for it are gone.
    #[track_caller]
    fn is_well(&self) {
        for _ in 0..TRIES {
            self.answers();
            let stats = self.cache.stats();
            assert!(stats.memory <= stats.memory_limit / 8 * 9, "{stats:?}");
            if stats.memory <= stats.memory_limit {
                return;
            }
        }
        panic!("the memory stays above the limit: {:?}", self.cache.stats());
    }

    /// Checks that the server answers another client.
    #[track_caller]
    fn answers(&self) {
        ask(&mut self.connect(RESP), b"PING\r\n", b"+PONG\r\n");
    }

    /// Waits until no other client is connected.
    #[track_caller]
    fn wait_until_alone(&self) {
        let mut control = self.connect(RESP);
        let alone = (0..TRIES).any(|_| clients(&mut control) == 1);
        assert!(alone, "connections stay");
    }
}

/// Returns the number of connections of the server.
fn clients(control: &mut (impl Read + Write)) -> usize {
    control.write_all(b"CLIENT LIST\r\n").expect("sent");
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        control.read_exact(&mut byte).expect("an answer");
        line.push(byte[0]);
    }
    let text = String::from_utf8(line).expect("text");
    let len: usize = text.trim_end()[1..].parse().expect("a length");
    let mut list = vec![0; len + 2];
    control.read_exact(&mut list).expect("a list");
    list.split(|byte| *byte == b'\n').count() - 2
}

/// Sends bytes, then reads the expected reply.
#[track_caller]
fn ask(stream: &mut (impl Read + Write), request: &[u8], expected: &[u8]) {
    stream.write_all(request).expect("sent");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(printable(&answer), printable(expected), "to {}", printable(request));
}

/// Sends bytes, and reads until the server closes the connection, which may be before all bytes are
/// sent.
#[track_caller]
fn ask_last(stream: &mut TcpStream, request: &[u8], expected: &[u8]) {
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    // A connection that is closed with unread input is reset after the reply.
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(printable(&answer), printable(expected), "to {}", printable(request));
}

/// Formats the first bytes for messages.
fn printable(bytes: &[u8]) -> String {
    format!("{} ({})", bytes[..bytes.len().min(200)].escape_ascii(), bytes.len())
}

/// Returns a request in RESP.
fn framed(args: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend(format!("${}\r\n", arg.len()).bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Returns a request of mrcache that stores a value.
fn mrcache_set(key: &[u8], value: &[u8]) -> Vec<u8> {
    let key_len = (key.len() as u16).to_le_bytes();
    let value_len = (value.len() as u32).to_le_bytes();
    [&[0, 2], &key_len[..], &value_len, key, value].concat()
}

/// Returns a request of mrcache for a value.
fn mrcache_get(key: &[u8]) -> Vec<u8> {
    [&[0, 1], &(key.len() as u16).to_le_bytes()[..], key].concat()
}

/// Returns a request that stores a value, in the protocol of a listener, and its reply.
fn set(listener: usize, key: &str, value: &[u8]) -> (Vec<u8>, &'static [u8]) {
    match listener {
        RESP => (framed(&[b"SET", key.as_bytes(), value]), b"+OK\r\n"),
        MEMCACHE => {
            let line = format!("set {key} 0 0 {}\r\n", value.len());
            ([line.as_bytes(), value, b"\r\n"].concat(), b"STORED\r\n")
        }
        PMC => ([b"SET ", key.as_bytes(), b" ", value, b"\x1f"].concat(), b"OK\x1f"),
        _ => (mrcache_set(key.as_bytes(), value), b""),
    }
}

/// Returns a request for a value, in the protocol of a listener, and its reply with this value.
fn get(listener: usize, key: &str, value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let len = value.len();
    match listener {
        RESP => (
            framed(&[b"GET", key.as_bytes()]),
            [format!("${len}\r\n").as_bytes(), value, b"\r\n"].concat(),
        ),
        MEMCACHE => {
            let line = format!("VALUE {key} 0 {len}\r\n");
            let answer = [line.as_bytes(), value, b"\r\nEND\r\n"].concat();
            (format!("get {key}\r\n").into_bytes(), answer)
        }
        PMC => (format!("GET {key}\x1f").into_bytes(), [value, b"\x1f"].concat()),
        _ => (mrcache_get(key.as_bytes()), [&(len as u32).to_le_bytes()[..], value].concat()),
    }
}

/// Returns the reply for a missing key.
fn miss(listener: usize) -> &'static [u8] {
    [&b"$-1\r\n"[..], b"END\r\n", b"(nil)\x1f", b"\0\0\0\0"][listener]
}
