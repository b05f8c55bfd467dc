//! Many that ask for much at the same moment, and never read.

use crate::{Server, ask, status};
use std::io::Write;

/// Bytes of a small server that is not a cache: its program, stacks, and what the allocator keeps.
const BESIDE: u64 = 64 << 20;

const MEMORY: u64 = 64 << 20;

#[test]
fn long_answers_take_no_more_memory_than_there_is() {
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
    ask(&mut control, set.as_bytes(), b"+OK\r\n");
    // 15 MB, about what one of them may have; the last one is more.
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
        ask(&mut control, b"PING\r\n", b"+PONG\r\n");
    }
    let most = status(&server, "VmHWM:");
    assert!(most <= MEMORY + BESIDE, "{} MB of memory", most >> 20);
}
