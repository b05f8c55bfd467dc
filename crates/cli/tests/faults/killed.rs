//! Killed at any moment, a server leaves nothing that keeps the next one from starting.

use crate::{Server, ask};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many answers are taken before the server is killed.
const ANSWERS: [usize; 7] = [0, 1, 10, 100, 1000, 5000, 20_000];

/// Asks until the connection ends, and counts answers.
fn load(stream: &mut TcpStream, (request, answer): (&[u8], &[u8]), answers: &AtomicUsize) {
    let mut found = vec![0; answer.len()];
    while stream.write_all(request).is_ok() && stream.read_exact(&mut found).is_ok() {
        assert!(found == answer, "{}", found.escape_ascii());
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_next_server_starts_at_the_addresses_of_one_that_was_killed() {
    let mut addresses = vec!["127.0.0.1:0".to_owned(); 4];
    for answers_before in ANSWERS {
        let [resp, memcache, pmc, mrcache] = &addresses[..] else { unreachable!("four") };
        let mut server = Server::start(&[
            "--resp",
            resp,
            "--memcache",
            memcache,
            "--pmc",
            pmc,
            "--mrcache",
            mrcache,
            "--threads",
            "2",
            "--memory",
            "64MiB",
        ]);
        addresses.clone_from(&server.addresses);
        // Nothing is left of what the one before held.
        let mut stream = server.connect(0);
        ask(&mut stream, b"DBSIZE\r\nPING\r\n", b":0\r\n+PONG\r\n");
        let value = "v".repeat(3000);
        let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nr\r\n$3000\r\n{value}\r\n");
        let get = format!("VALUE r 0 3000\r\n{value}\r\nEND\r\n");
        ask(&mut stream, set.as_bytes(), b"+OK\r\n");
        let loads: [(usize, &[u8], &[u8]); 4] = [
            (0, set.as_bytes(), b"+OK\r\n"),
            (1, b"get r\r\n", get.as_bytes()),
            (2, b"SET p value\x1fGET p\x1f", b"OK\x1fvalue\x1f"),
            (3, b"\0\x02\x01\0\x01\0\0\0m1\0\x01\x01\0m", b"\x01\0\0\x001"),
        ];
        let answers = AtomicUsize::new(0);
        thread::scope(|scope| {
            for (listener, request, answer) in loads {
                let mut stream = server.connect(listener);
                let answers = &answers;
                scope.spawn(move || load(&mut stream, (request, answer), answers));
            }
            while answers.load(Ordering::Relaxed) < answers_before {
                thread::yield_now();
            }
            server.kill();
            // Whoever was connected sees the end of it.
        });
    }
}
