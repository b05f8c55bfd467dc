//! Many clients that request large values at once and never read them.

use crate::tls::{self, Certificate};
use crate::{Server, connect, request, status};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

/// Memory of a small server besides its cache in bytes: program, stacks, and memory that the
/// allocator keeps.
const BESIDE: u64 = 64 << 20;

const MEMORY: u64 = 64 << 20;

#[test]
fn long_responses_stay_within_the_memory_limit() {
    let server = Server::start(&[
        "--resp",
        "127.0.0.1:0",
        "--memcache",
        "127.0.0.1:0",
        "--threads",
        "1",
        "--memory",
        "64MiB",
    ]);
    let mut control = server.connect(0);
    let value = "v".repeat(60_000);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n{value}\r\n");
    request(&mut control, set.as_bytes(), b"+OK\r\n");
    // Responses of 15 MB, about the maximum of one client; the last response is longer.
    let requests = [
        (0, format!("*261\r\n$4\r\nMGET\r\n{}", "$1\r\nk\r\n".repeat(260))),
        (0, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(260)),
        (1, format!("get{}\r\n", " k".repeat(260))),
        (1, "mg k v\r\n".repeat(260)),
        (0, format!("*1001\r\n$4\r\nMGET\r\n{}", "$1\r\nk\r\n".repeat(1000))),
    ];
    let mut streams = Vec::new();
    for _ in 0..40 {
        for (listener, request) in &requests {
            let mut stream = server.connect(*listener);
            stream.write_all(request.as_bytes()).expect("sent");
            streams.push(stream);
        }
    }
    for _ in 0..100 {
        request(&mut control, b"PING\r\n", b"+PONG\r\n");
    }
    let most = status(&server, "VmHWM:");
    assert!(most <= MEMORY + BESIDE, "{} MB of memory", most >> 20);
}

/// Regression test: a long response was encrypted in one piece, which took 268 MB with `--memory`
/// 192 MiB.
#[test]
fn a_long_response_over_tls_needs_little_more_memory_than_its_value() {
    const LEN: usize = 64 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let Certificate { cert, key, issuer } = Certificate::new();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let mode = Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, mode).expect("a mode");
        path.display().to_string()
    };
    let (cert, key) = (file("cert", &cert), file("key", &key));
    let server = Server::start(&[
        "--resp=127.0.0.1:0",
        "--resp=tls:127.0.0.1:0",
        "--memcache=off",
        "--threads=1",
        "--memory=192MiB",
        &format!("--tls-cert={cert}"),
        &format!("--tls-key={key}"),
    ]);
    let mut control = server.connect(0);
    let value = vec![b'v'; LEN];
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${LEN}\r\n");
    request(&mut control, &[set.as_bytes(), &value, b"\r\n"].concat(), b"+OK\r\n");
    let before = status(&server, "VmHWM:");
    let stream = connect(server.addresses[1].trim_start_matches("tls:"));
    let mut stream = tls::client(stream, issuer.as_bytes());
    request(&mut stream, b"GET k\r\n", format!("${LEN}\r\n").as_bytes());
    // The client has read the beginning and pauses: the server has the rest of the response.
    for _ in 0..100 {
        request(&mut control, b"PING\r\n", b"+PONG\r\n");
    }
    let mut answer = vec![0; LEN];
    stream.read_exact(&mut answer).expect("the value");
    assert!(answer == value);
    request(&mut stream, b"PING\r\n", b"\r\n+PONG\r\n");
    let peak = status(&server, "VmHWM:");
    println!("{} MiB before, {} MiB after", before >> 20, peak >> 20);
    assert!(peak <= before + (16 << 20), "{} MiB, then {} MiB", before >> 20, peak >> 20);
    assert!(peak <= LEN as u64 + BESIDE, "{} MiB", peak >> 20);
}
