//! Compression of the values of the cache server.

use crate::folder::Folder;
use crate::server::{Running, wait_until};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;

const COMPRESSED: &[&str] = &["--memory=64MiB", "--compress=zstd:3", "--compress-min=64"];

/// Returns a JSON document of about 200 bytes, with some repetition of its own.
pub(super) fn document(number: usize) -> String {
    let word = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(
        "{{\"id\":{number},\"name\":\"user {word:x}\",\"is_active\":true,\"plan\":\"free\",\
         \"email\":\"{number}@example.org\",\"roles\":[\"reader of pages\",\"writer of pages\",\
         \"owner of pages\",\"owner of users\"]}}"
    )
}

/// Starts a server with compression.
fn start(folder: &Folder, more: &[&str]) -> Running {
    folder.serve(&[COMPRESSED, more].concat(), &[])
}

/// Returns the replies to requests whose arguments may contain any bytes.
pub(super) fn send(server: &Running, requests: &[&[&str]]) -> String {
    let mut text = String::new();
    for request in requests {
        let _ = write!(text, "*{}\r\n", request.len());
        for argument in *request {
            let _ = write!(text, "${}\r\n{argument}\r\n", argument.len());
        }
    }
    server.ask(text.trim_end())
}

/// Stores this many documents.
pub(super) fn fill(server: &Running, documents: usize) {
    for start in (0..documents).step_by(1000) {
        let numbers = start..documents.min(start + 1000);
        let pairs: Vec<_> =
            numbers.map(|number| (format!("user:{number}"), document(number))).collect();
        let requests: Vec<[&str; 3]> =
            pairs.iter().map(|(key, value)| ["SET", key.as_str(), value.as_str()]).collect();
        let requests: Vec<&[&str]> = requests.iter().map(<[&str; 3]>::as_slice).collect();
        assert_eq!(send(server, &requests), "+OK\r\n".repeat(requests.len()));
    }
}

/// Returns a field of INFO.
pub(super) fn info(server: &Running, name: &str) -> Option<String> {
    let text = server.ask("INFO compression");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(|line| line.trim_end().to_owned())
}

/// Returns a number of the fields of a dictionary in INFO.
#[track_caller]
pub(super) fn number(fields: &str, name: &str) -> f64 {
    let field = fields.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    field.unwrap_or_else(|| panic!("{name}: {fields}")).parse().expect("a number")
}

pub(super) fn bulk(value: &str) -> String {
    format!("${}\r\n{value}\r\n", value.len())
}

#[test]
fn a_dictionary_is_trained_from_values_and_all_protocols_read_them() {
    const DOCUMENTS: usize = 20_000;
    let folder = Folder::new();
    let memcache = ["--memcache=127.0.0.1:0", "--admin=127.0.0.1:0"];
    let server = start(&folder, &memcache);
    fill(&server, DOCUMENTS);
    wait_until("a dictionary", || info(&server, "compression_dict_1").is_some());
    fill(&server, DOCUMENTS / 2);
    let fields = info(&server, "compression_dict_1").expect("a dictionary");
    assert!(number(&fields, "ratio") > 1.8, "{fields}");
    assert!(number(&fields, "values") >= (DOCUMENTS / 2) as f64, "{fields}");
    assert!(fields.ends_with(",groups=user:"), "{fields}");
    assert!(
        info(&server, "compression_dict_0").is_some_and(|fields| number(&fields, "values") > 0.0)
    );
    for first in [0, DOCUMENTS / 2, DOCUMENTS - 100] {
        let requests: Vec<_> = (first..first + 100).map(|at| format!("user:{at}")).collect();
        let requests: Vec<_> = requests.iter().map(|key| ["GET", key.as_str()]).collect();
        let requests: Vec<&[&str]> = requests.iter().map(<[&str; 2]>::as_slice).collect();
        let expected: String = (first..first + 100).map(|at| bulk(&document(at))).collect();
        assert_eq!(send(&server, &requests), expected);
    }
    let mut stream = TcpStream::connect(&server.addresses[1]).expect("a connection");
    write!(stream, "get user:7\r\nquit\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let document = document(7);
    assert_eq!(answer, format!("VALUE user:7 0 {}\r\n{document}\r\nEND\r\n", document.len()));
    let top = folder.run(&["top", &server.admin, "--once"]);
    assert!(top.stdout.contains(" shorter; by dictionary: "), "{top:?}");
}

#[test]
fn a_dictionary_can_come_from_a_file() {
    let folder = Folder::new();
    let samples: String = (0..4000).map(|number| document(number) + "\n").collect();
    folder.file("users.jsonl", samples);
    let trained = folder.run(&["dict", "train", "--from", "users.jsonl", "--out", "users.zdict"]);
    assert_eq!(trained.status, Some(0), "{trained:?}");
    let server = start(&folder, &["--compress-dict=users.zdict"]);
    fill(&server, 100);
    assert_eq!(info(&server, "compression_dictionaries").as_deref(), Some("file"));
    let raw = "x9q7Zk2LwPf4VtB8sN1mCjR5hYgD3aEu6KoTiQzXcWvJbHpMnSlUyGrFdIeOA0-_";
    assert_eq!(
        send(&server, &[&["SET", "raw", raw], &["GET", "raw"]]),
        "+OK\r\n".to_owned() + &bulk(raw)
    );
    assert_eq!(info(&server, "compression_incompressible_values").as_deref(), Some("1"));
    assert!(send(&server, &[&["NUTHATCH.GETZ", "raw"]]).starts_with("*2\r\n:-1\r\n"));
    let text = server.ask("INFO compression");
    let fields = text.lines().find(|line| line.contains("values=100,")).expect("a dictionary");
    assert!(number(fields, "ratio") > 1.8, "{fields}");
}

#[test]
fn values_survive_a_restart_with_compression_and_without() {
    let folder = Folder::new();
    let warm = ["--data-dir=data", "--warm-restart=true"];
    let check = |server: &Running| {
        wait_until("all items are restored", || {
            server.ask("INFO persistence").contains("restore_in_progress:0")
        });
        assert_eq!(send(server, &[&["GET", "user:999"]]), bulk(&document(999)));
        assert_eq!(server.ask("DBSIZE"), ":1000\r\n");
    };
    let server = start(&folder, &warm);
    fill(&server, 1000);
    assert_eq!(server.stop(), (Some(0), String::new()));
    let server = start(&folder, &warm);
    check(&server);
    let fields = info(&server, "compression_dict_0").expect("no dictionary");
    assert!(number(&fields, "values") > 0.0, "restored values are compressed: {fields}");
    assert_eq!(server.stop(), (Some(0), String::new()));
    check(&folder.serve(&warm, &[]));
}

#[test]
fn setz_of_mrcache_compresses_even_if_compression_is_off() {
    let folder = Folder::new();
    let server = folder.serve(&["--mrcache=127.0.0.1:0"], &[]);
    let value = document(1).repeat(5);
    let mut stream = TcpStream::connect(&server.addresses[1]).expect("a connection");
    let mut request = vec![0, 4, 1, 0];
    request.extend((value.len() as u32).to_le_bytes());
    request.extend(b"k");
    request.extend(value.as_bytes());
    for get in [3, 1] {
        request.extend([0, get, 1, 0, b'k']);
    }
    stream.write_all(&request).expect("sent");
    for _ in 0..2 {
        let mut answer = vec![0; 4 + value.len()];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[..4], (value.len() as u32).to_le_bytes());
        assert_eq!(&answer[4..], value.as_bytes());
    }
    assert_eq!(info(&server, "compression").as_deref(), Some("off"));
    let fields = info(&server, "compression_dict_0").expect("no dictionary");
    assert!((number(&fields, "values") - 1.0).abs() < 0.1, "{fields}");
    assert_eq!(send(&server, &[&["GET", "k"]]), bulk(&value));
    assert_eq!(
        send(&server, &[&["SET", "k", &value], &["NUTHATCH.GETZ", "k"]]).find(":-1"),
        Some(9)
    );
}

#[test]
fn invalid_settings_are_errors_that_say_what_to_do() {
    let folder = Folder::new();
    folder.file("text", "no dictionary");
    let codec = "--compress: expected off, zstd or zstd:LEVEL with a level from 1 to 19, found \
                 \"lz4\"; try zstd:3";
    folder.fails(&["--compress=lz4"], 2, codec);
    let run = folder.run_serve(&["--compress=zstd", "--memory=16MiB"], &[]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(run.stderr.contains("expected a memory budget of at least 64"), "{run:?}");
    assert!(run.stderr.ends_with("; set memory, or compress-dict to off\n"), "{run:?}");
    for (file, expected) in [("missing", "missing"), ("text", "the magic number")] {
        let file = format!("--compress-dict={file}");
        let run = folder.run_serve(&["--compress=zstd", &file], &[]);
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.starts_with("nuthatch: --compress-dict"), "{run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
    // A dictionary is not read if nothing is compressed.
    let server = folder.serve(&["--compress-dict=missing"], &[]);
    assert_eq!(info(&server, "compression").as_deref(), Some("off"));
}
