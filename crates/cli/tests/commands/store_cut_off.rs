//! Commands whose server is killed while they are in progress.

use crate::folder::{Folder, row};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Number of rows of the store, more than all buffers between server and client hold.
const ROWS: usize = 4_000;
const VALUE_LEN: usize = 4_096;
/// Number of bytes that the relay passes before the server is killed.
const PASSED: usize = 1 << 20;
/// The timeout after which a test fails instead of waiting for ever.
const PATIENCE: Duration = Duration::from_mins(2);

/// The direction in which the relay limits the number of bytes.
#[derive(Clone, Copy)]
enum Way {
    ToClient,
    ToServer,
}

/// A relay between one client and a server. It passes `PASSED` bytes in one direction, then no
/// more.
struct Relay {
    address: String,
    /// Receives once when the limit is reached.
    full: Receiver<()>,
    /// Ends the connection when it is dropped.
    hold: Sender<()>,
}

fn relay(server: &str, way: Way) -> Relay {
    let server = server.strip_prefix("grpc://").expect("an address").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("grpc://{}", listener.local_addr().expect("an address"));
    let ((reached, full), (hold, released)) = (channel(), channel::<()>());
    thread::spawn(move || {
        let (client, _) = listener.accept().expect("a client");
        // Later attempts to connect are refused, as those to the killed server are.
        drop(listener);
        let server = TcpStream::connect(server).expect("the server");
        let (from, to) = match way {
            Way::ToClient => (&server, &client),
            Way::ToServer => (&client, &server),
        };
        let (back_from, back_to) = (clone(to), clone(from));
        thread::spawn(move || copy(back_from, back_to, usize::MAX));
        copy(clone(from), clone(to), PASSED);
        reached.send(()).expect("the test");
        // An error: nothing is sent, the sender is dropped.
        let _ = released.recv();
        for end in [client, server] {
            // It may be closed already.
            let _ = end.shutdown(Shutdown::Both);
        }
    });
    Relay { address, full, hold }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a descriptor")
}

/// Passes bytes until the limit is reached or one side ends.
fn copy(mut from: TcpStream, mut to: TcpStream, limit: usize) {
    let (mut bytes, mut passed) = (vec![0; 64 << 10], 0);
    while passed < limit {
        match from.read(&mut bytes) {
            Ok(len) if len > 0 && to.write_all(&bytes[..len]).is_ok() => passed += len,
            _ => return,
        }
    }
}

/// Creates a folder with a store of many rows, and with the same rows in a file.
fn filled() -> Folder {
    let folder = Folder::new();
    let value = format!("\"{}\"", "v".repeat(VALUE_LEN));
    let rows: String = (0..ROWS).map(|n| row(&format!("{n:06}"), &value) + "\n").collect();
    folder.file("rows.jsonl", rows);
    let loaded = folder.run(&["store", "load", "db", "rows.jsonl", "--quiet"]);
    assert_eq!(loaded.status, Some(0), "{loaded:?}");
    folder
}

fn serve(folder: &Folder) -> (Child, String) {
    let mut server = folder
        .command(&["store", "serve", "db", "--listen", "127.0.0.1:0", "--threads", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command to start");
    let mut line = String::new();
    let mut lines = BufReader::new(server.stdout.take().expect("its output"));
    lines.read_line(&mut line).expect("a line");
    let address = line.trim_end().strip_prefix("listening at ").expect("an address");
    (server, address.to_owned())
}

/// Runs a command and kills the server while the command is in progress. Checks that the message is
/// one line and the status 3, and returns the output.
#[track_caller]
fn cut_off(folder: &Folder, command: &str, arguments: &[&str], way: Way) -> String {
    let (mut server, address) = serve(folder);
    let relay = relay(&address, way);
    let client = folder
        .command(&[&["store", command, &relay.address], arguments].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command to start");
    relay.full.recv_timeout(PATIENCE).expect("bytes of the command");
    server.kill().expect("killed");
    server.wait().expect("it ends");
    drop(relay.hold);
    let ended = client.wait_with_output().expect("it ends");
    let message = String::from_utf8(ended.stderr).expect("text");
    assert_eq!((ended.status.code(), message.lines().count()), (Some(3), 1), "{message}");
    let lost = "the connection was lost; was the server stopped?";
    let expected = format!("nuthatch: {}: {lost}", relay.address);
    assert!(message.starts_with(&expected), "{command}: {message}");
    String::from_utf8(ended.stdout).expect("text")
}

#[test]
fn an_interrupted_scan_is_reported_in_one_line_after_whole_rows() {
    let folder = filled();
    let printed = cut_off(&folder, "scan", &[], Way::ToClient);
    let value = "v".repeat(VALUE_LEN);
    let lines: Vec<_> = (0..ROWS).map(|n| format!("{n:06}\t{value}\n")).collect();
    let whole = lines.concat();
    assert!(whole.starts_with(&printed) && printed.len() < whole.len());
    assert!(printed.is_empty() || printed.ends_with('\n'), "the last row is cut");
}

#[test]
fn an_interrupted_dump_is_reported_in_one_line_after_whole_rows() {
    let folder = filled();
    let printed = cut_off(&folder, "dump", &[], Way::ToClient);
    let whole = String::from_utf8(folder.bytes("rows.jsonl")).expect("text");
    assert!(whole.starts_with(&printed) && printed.len() < whole.len());
    assert!(printed.is_empty() || printed.ends_with('\n'), "the last row is cut");
}

#[test]
fn an_interrupted_load_is_reported_in_one_line_and_leaves_a_valid_store() {
    let folder = filled();
    let arguments = ["rows.jsonl", "--table", "new", "--reconnect-ms", "0"];
    assert_eq!(cut_off(&folder, "load", &arguments, Way::ToServer), "");
    let verified = folder.run(&["store", "verify", "db", "--quiet"]);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    let count = folder.run(&["store", "count", "db", "--table", "new"]);
    let rows: usize = count.stdout.trim_end().parse().expect("a number");
    assert!(rows < ROWS, "{count:?}");
    let again = folder.run(&["store", "load", "db", "rows.jsonl", "--table", "new", "--quiet"]);
    assert_eq!(again.status, Some(0), "{again:?}");
    let count = folder.run(&["store", "count", "db", "--table", "new"]);
    assert_eq!(count.stdout, format!("{ROWS}\n"));
}

#[test]
fn an_interrupted_backup_is_reported_in_one_line_and_leaves_no_copy() {
    let folder = filled();
    assert_eq!(cut_off(&folder, "backup", &["copy"], Way::ToClient), "");
    assert!(!folder.path("copy").exists(), "a part of a copy is left");
    // A folder that was there stays, without a file that looks like a store.
    std::fs::create_dir(folder.path("copy")).expect("a folder");
    assert_eq!(cut_off(&folder, "backup", &["copy"], Way::ToClient), "");
    let left = std::fs::read_dir(folder.path("copy")).expect("the folder").count();
    assert_eq!(left, 0, "a part of a copy is left");
}
