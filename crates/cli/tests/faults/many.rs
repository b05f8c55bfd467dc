//! The maximum number of connections, opened and closed repeatedly.

use crate::{Server, request, status};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

const CONNECTIONS: usize = 10_000;
const ROUNDS: usize = 3;

/// Number of descriptors that a process needs besides connections.
const BESIDE: u64 = 100;

/// Maximum growth of memory from the first round to a later one, in bytes.
const MAX_LEAKED_BYTES: u64 = 8 << 20;

/// Number of requests after which closed connections must be removed.
const TRIES: usize = 100_000;

/// Raises the limit of descriptors of this process and its children. Returns the number of
/// connections that it allows.
fn raise_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).expect("the limit");
    let most = limit.maximum.unwrap_or(u64::MAX).saturating_sub(BESIDE);
    CONNECTIONS.min(usize::try_from(most).unwrap_or(usize::MAX))
}

/// A TCP stream or a unix stream.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The request for each listener.
const EXCHANGES: [(&[u8], &[u8]); 4] = [
    (b"SET r 1\r\nGET r\r\n", b"+OK\r\n$1\r\n1\r\n"),
    (b"set m 0 0 1\r\n1\r\nmg m v\r\n", b"STORED\r\nVA 1\r\n1\r\n"),
    (b"SET p 1\x1fGET p\x1f", b"OK\x1f1\x1f"),
    (b"\0\x02\x01\0\x01\0\0\0c1\0\x01\x01\0c", b"\x01\0\0\x001"),
];

/// Returns a field of `INFO`.
fn info(control: &mut TcpStream, section: &str, field: &str) -> u64 {
    control.write_all(format!("INFO {section}\r\n").as_bytes()).expect("sent");
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    let end = |text: &[u8]| {
        let line = text.split(|byte| *byte == b'\n').next()?;
        let len = std::str::from_utf8(line).ok()?.trim_end().strip_prefix('$')?;
        Some(line.len() + 1 + len.parse::<usize>().ok()? + 2)
    };
    while end(&text).is_none_or(|end| text.len() < end) {
        let len = control.read(&mut piece).expect("an answer");
        assert!(len > 0, "the connection ended");
        text.extend_from_slice(&piece[..len]);
    }
    let text = String::from_utf8(text).expect("text");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    lines.next().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{field}: {text}"))
}

/// Waits until only the control connection is open.
fn wait_until_alone(control: &mut TcpStream) {
    let alone = (0..TRIES).any(|_| info(control, "clients", "connected_clients") == 1);
    assert!(alone, "connections stay");
}

/// Returns the number of open descriptors of the server and its memory in bytes.
fn held(server: &Server) -> (usize, u64) {
    let process = Path::new("/proc").join(server.child.id().to_string());
    let descriptors = std::fs::read_dir(process.join("fd")).expect("descriptors").count();
    (descriptors, status(server, "VmRSS:"))
}

#[test]
fn ten_thousand_connections_leave_no_memory_or_descriptors() {
    let count = raise_limit();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [memcache, pmc, mrcache] = ["m", "p", "c"].map(|name| format!("unix:{}", path(name)));
    let server = Server::start(&[
        "--resp",
        "127.0.0.1:0",
        "--memcache",
        &memcache,
        "--pmc",
        &pmc,
        "--mrcache",
        &mrcache,
        "--threads",
        "2",
        "--memory",
        "256MiB",
    ]);
    let connect = |listener: usize| -> Box<dyn Stream> {
        match server.addresses[listener].strip_prefix("unix:") {
            Some(path) => Box::new(UnixStream::connect(path).expect("a connection")),
            None => Box::new(server.connect(listener)),
        }
    };
    let mut control = server.connect(0);
    // The control connection counts as well.
    let more = format!("CONFIG SET maxclients {}\r\n", count + 1);
    request(&mut control, more.as_bytes(), b"+OK\r\n");
    let (descriptors, _) = held(&server);
    let mut first = None;
    for round in 0..ROUNDS {
        let mut streams: Vec<_> = (0..count).map(|number| connect(number % 4)).collect();
        for (stream, (request, _)) in streams.iter_mut().zip(EXCHANGES.iter().cycle()) {
            stream.write_all(request).expect("sent");
        }
        for (stream, (_, answer)) in streams.iter_mut().zip(EXCHANGES.iter().cycle()) {
            request(stream, b"", answer);
        }
        assert_eq!(info(&mut control, "clients", "connected_clients"), count as u64 + 1);
        // Some go in the middle of a request.
        for (stream, (request, _)) in streams.iter_mut().zip(EXCHANGES.iter().cycle()).step_by(3) {
            stream.write_all(&request[..request.len() - 1]).expect("sent");
        }
        drop(streams);
        wait_until_alone(&mut control);
        let (now, memory) = held(&server);
        let used = info(&mut control, "memory", "used_memory");
        assert_eq!(now, descriptors, "descriptors after round {round}");
        let (memory_first, used_first) = *first.get_or_insert((memory, used));
        let message = format!("{memory_first} and {used_first} grew to {memory} and {used}");
        assert!(
            memory <= memory_first + MAX_LEAKED_BYTES && used <= used_first + MAX_LEAKED_BYTES,
            "{message}"
        );
    }
}

/// Connections are opened and closed one after the other, without a request or with half of one.
#[test]
fn connections_without_requests_are_closed_and_leave_no_memory() {
    let server = Server::start(&[
        "--resp",
        "127.0.0.1:0",
        "--memcache",
        "127.0.0.1:0",
        "--threads",
        "2",
        "--memory",
        "64MiB",
    ]);
    let mut control = server.connect(0);
    // From here on its own descriptor counts.
    request(&mut control, b"PING\r\n", b"+PONG\r\n");
    let (descriptors, _) = held(&server);
    for number in 0..5000 {
        let mut stream = server.connect(number % 2);
        if number % 3 == 0 {
            stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nv").expect("sent");
        }
    }
    wait_until_alone(&mut control);
    request(&mut control, b"PING\r\n", b"+PONG\r\n");
    // A thread can close its connections shortly after it reports that.
    let closed = (0..TRIES).any(|_| {
        request(&mut control, b"PING\r\n", b"+PONG\r\n");
        held(&server).0 == descriptors
    });
    assert!(closed, "descriptors stay open");
}
