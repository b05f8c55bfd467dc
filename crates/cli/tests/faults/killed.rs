//! A server that is killed at any moment leaves nothing that prevents the next one from starting.

use crate::{PATIENCE, Server, connect, request};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The numbers of replies before the server is killed.
const ANSWERS: [usize; 7] = [0, 1, 10, 100, 1000, 5000, 20_000];

/// Sends requests until the connection ends, and counts replies.
fn load(
    stream: &mut (impl Read + Write),
    (request, answer): (&[u8], &[u8]),
    answers: &AtomicUsize,
) {
    let mut found = vec![0; answer.len()];
    while stream.write_all(request).is_ok() && stream.read_exact(&mut found).is_ok() {
        assert!(found == answer, "{}", found.escape_ascii());
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

/// Starts a server at these addresses and kills it after a number of replies. Returns its
/// addresses.
fn serve_and_kill<S: Read + Write + Send>(
    addresses: &[String],
    answers_before: usize,
    connect: impl Fn(&str) -> S,
) -> Vec<String> {
    let mut args = vec!["--threads=2".to_owned(), "--memory=64MiB".to_owned()];
    let flags = ["resp", "memcache", "pmc", "mrcache"].iter().zip(addresses);
    args.extend(flags.map(|(flag, address)| format!("--{flag}={address}")));
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut server = Server::start(&args);
    // The cache is empty: nothing of the killed server remains.
    let mut stream = connect(&server.addresses[0]);
    request(&mut stream, b"DBSIZE\r\nPING\r\n", b":0\r\n+PONG\r\n");
    let value = "v".repeat(3000);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nr\r\n$3000\r\n{value}\r\n");
    let get = format!("VALUE r 0 3000\r\n{value}\r\nEND\r\n");
    request(&mut stream, set.as_bytes(), b"+OK\r\n");
    let loads: [(usize, &[u8], &[u8]); 4] = [
        (0, set.as_bytes(), b"+OK\r\n"),
        (1, b"get r\r\n", get.as_bytes()),
        (2, b"SET p value\x1fGET p\x1f", b"OK\x1fvalue\x1f"),
        (3, b"\0\x02\x01\0\x01\0\0\0m1\0\x01\x01\0m", b"\x01\0\0\x001"),
    ];
    let answers = AtomicUsize::new(0);
    thread::scope(|scope| {
        for (listener, request, answer) in loads {
            let mut stream = connect(&server.addresses[listener]);
            let answers = &answers;
            scope.spawn(move || load(&mut stream, (request, answer), answers));
        }
        while answers.load(Ordering::Relaxed) < answers_before {
            thread::yield_now();
        }
        server.kill();
        // Whoever was connected sees the end of it.
    });
    server.addresses.clone()
}

#[test]
fn the_next_server_starts_at_the_addresses_of_one_that_was_killed() {
    let mut addresses = vec!["127.0.0.1:0".to_owned(); 4];
    for answers_before in ANSWERS {
        addresses = serve_and_kill(&addresses, answers_before, connect);
    }
}

#[test]
fn the_next_server_replaces_the_sockets_of_one_that_was_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a text").to_owned();
    let addresses =
        ["resp", "memcache", "pmc", "mrcache"].map(|name| format!("unix:{}", path(name)));
    let connect = |address: &str| {
        let path = address.strip_prefix("unix:").expect("a path");
        let stream = UnixStream::connect(path).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    };
    for answers_before in ANSWERS {
        let listened = serve_and_kill(&addresses, answers_before, connect);
        assert_eq!(listened, addresses);
        for address in listened {
            let path = address.strip_prefix("unix:").expect("a path");
            assert!(Path::new(path).exists(), "it was killed: {path} is left");
        }
    }
}
