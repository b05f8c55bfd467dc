//! A store server beside the cache server.

use crate::folder::Folder;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Returns the metrics of an admin endpoint in OpenMetrics.
pub(crate) fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = "GET /metrics HTTP/1.1\r\nhost: x\r\naccept: application/openmetrics-text\r\n";
    write!(stream, "{head}connection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn one_server_has_a_cache_and_a_store() {
    let folder = Folder::new();
    let arguments = ["--store=db", "--store-create", "--grpc=127.0.0.1:0", "--admin=127.0.0.1:0"];
    let mut server = folder.serve(&arguments, &[]);
    assert_eq!(server.ask("SET in cache"), "+OK\r\n");
    let address = server.addresses.iter().find(|address| address.starts_with("grpc://"));
    let address = address.expect("where the store is").clone();
    let put = folder.run(&["store", "put", &address, "in", "store"]);
    assert_eq!(put.status, Some(0), "{}", put.stderr);
    assert_eq!(folder.run(&["store", "scan", &address]).stdout, "in\tstore\n");
    let exported = metrics(&server.admin);
    for line in [
        "nuthatch_commands_total{command=\"set\"} 1\n",
        "# TYPE nuthatch_rpc_calls counter\nnuthatch_rpc_calls_total{method=\"Get\"} 0\n",
        "nuthatch_rpc_calls_total{method=\"Scan\"} 1\n",
    ] {
        assert!(exported.contains(line), "{exported}");
    }
    assert!(exported.ends_with("# EOF\n"), "{exported}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert_eq!(folder.run(&["store", "get", "db", "in"]).stdout, "store\n");
}

#[test]
fn tokens_of_the_store_are_reloaded() {
    let folder = Folder::new();
    folder.file("tokens", "token app write >robin\n").file("old", "robin").file("new", "wren");
    let arguments = ["--store=db", "--store-create", "--grpc=127.0.0.1:0", "--store-tokens=tokens"];
    let mut server = folder.serve(&arguments, &[]);
    let address = server.addresses.iter().find(|address| address.starts_with("grpc://"));
    let address = address.expect("where the store is").clone();
    let put = |token: &str| {
        folder.run(&["store", "put", &address, "a", "1", "--token-file", token]).status
    };
    assert_eq!((put("old"), put("new")), (Some(0), Some(3)));
    folder.file("tokens", "token app write >wren\n");
    server.signal(Signal::HUP);
    // The signal is handled by a thread of the server.
    while put("new") != Some(0) {}
    assert_eq!(put("old"), Some(3));
    assert_eq!(server.ask("SET in cache"), "+OK\r\n");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_store_server_exports_metrics() {
    let folder = Folder::new();
    let arguments = ["store", "serve", "db", "--create", "--listen", "127.0.0.1:0"];
    let mut command = folder.command(&[&arguments[..], &["--admin", "127.0.0.1:0"]].concat());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the command");
    let mut lines = std::io::BufReader::new(child.stdout.take().expect("its output"));
    let mut line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).expect("a line");
        line
    };
    assert!(line().starts_with("listening at grpc://127.0.0.1:"));
    let at = line();
    let at = at.strip_prefix("metrics at http://").and_then(|at| at.strip_suffix("/metrics\n"));
    let exported = metrics(at.expect("where metrics are"));
    child.kill().expect("it runs");
    child.wait().expect("its end");
    assert!(exported.contains("nuthatch_rpc_calls_total{method=\"Scan\"} 0\n"), "{exported}");
    assert!(
        exported.contains("\nnuthatch_rpc_held_bytes 0\n") && exported.ends_with("# EOF\n"),
        "{exported}"
    );
}

#[test]
fn contradicting_store_settings_are_refused() {
    let folder = Folder::new();
    let fails = |arguments: &[&str], status, message: &str| {
        let quiet = ["--memory=16MiB", "--memcache=off", "--resp=127.0.0.1:0", "--admin=off"];
        folder.fails(&[&quiet, arguments].concat(), status, message);
    };
    fails(&["--grpc=127.0.0.1:0"], 2, "--grpc: expected a store as well (--store), found none");
    fails(&["--store-create"], 2, "--store-create: expected a store as well (--store), found none");
    fails(
        &["--store=db", "--grpc=unix:a.sock"],
        2,
        "--grpc unix:a.sock: expected host:port, found a socket in the file system",
    );
    fails(
        &["--store=db", "--grpc=tls:127.0.0.1:0"],
        2,
        "--grpc: expected tls-cert and tls-key, too",
    );
    fails(
        &["--store=db", "--grpc=0.0.0.0:0"],
        2,
        "--grpc 0.0.0.0:0: this address is reachable by other machines, and connections to it are \
         not encrypted; expected TLS, found none; --insecure allows it",
    );
    fails(&["--store=db", "--grpc=off"], 2, "--grpc: expected an address to listen on, found none");
    let run = folder.run_serve(&["--store=none", "--resp=127.0.0.1:0", "--memory=16MiB"], &[]);
    assert_eq!(run.status, Some(3), "{}", run.stderr);
    assert!(run.stderr.contains("none: expected the folder of a store"), "{}", run.stderr);
}

#[test]
fn the_store_may_be_allowed_on_a_network_filesystem() {
    let folder = Folder::new();
    let store = ["--store=db", "--store-create", "--grpc=127.0.0.1:0"];
    // On a local filesystem it changes nothing.
    let server = folder.serve(&[&store[..], &["--store-allow-network-filesystem"]].concat(), &[]);
    assert_eq!(server.ask("PING"), "+PONG\r\n");
    let message = "--store-allow-network-filesystem: expected a store as well (--store), found \
                   none";
    let alone = ["--store-allow-network-filesystem", "--memory=16MiB", "--resp=127.0.0.1:0"];
    folder.fails(&[&alone[..], &["--memcache=off", "--admin=off"]].concat(), 2, message);
}
