//! `nuthatch serve` as a process: with the maximum number of connections, and killed.

mod killed;
mod many;
mod responses;
#[path = "../tls/mod.rs"]
mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The timeout after which a test fails instead of waiting for ever.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that is killed when this is dropped.
struct Server {
    child: Child,
    /// Its addresses, in the order of its output.
    addresses: Vec<String>,
}

impl Server {
    /// Starts a server with these arguments and waits until it listens.
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nuthatch"))
            .args(["serve", "--admin", "off"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut addresses = Vec::new();
        for line in stdout.lines() {
            let line = line.expect("text");
            match line.strip_prefix("listening at ").and_then(|rest| rest.split(' ').next()) {
                Some(address) => addresses.push(address.to_owned()),
                None => break,
            }
        }
        assert!(!addresses.is_empty(), "it listens nowhere: {:?}", child.wait());
        Self { child, addresses }
    }

    /// Kills the server, as by `kill -9`.
    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("its end");
    }

    fn connect(&self, listener: usize) -> TcpStream {
        connect(&self.addresses[listener])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Connects to a TCP address.
fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Returns a number of bytes from the status of a process.
fn status(server: &Server, name: &str) -> u64 {
    let status = format!("/proc/{}/status", server.child.id());
    let status = std::fs::read_to_string(status).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Sends bytes, and reads the expected number of bytes.
#[track_caller]
fn request(stream: &mut (impl Read + Write), request: &[u8], expected: &[u8]) {
    stream.write_all(request).expect("sent");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer.escape_ascii().to_string(), expected.escape_ascii().to_string());
}
