//! Checks `docs/migrating-from-mrcache.md`: the tables are complete, and a server accepts what the
//! page says instead of each flag, and answers each request as the page says.

use super::old_server::{Page, code, code_spans, names, sorted};
use crate::folder::Folder;
use crate::server::{Running, wait_until};
use nuthatch_testing::page::table_under;
use std::io::{Read, Write};
use std::net::TcpStream;

/// All flags of mrcache.
const FLAGS: &[&str] = &[
    "-d",
    "--max-disk",
    "-h",
    "--help",
    "-i",
    "--index-size",
    "-m",
    "--max-memory",
    "-p",
    "--port",
    "-z",
    "--zstd",
];

/// All operations of mrcache.
const OPERATIONS: [&str; 5] = ["GET", "GETZ", "SET", "SETZ", "STAT"];

/// All values that `STAT` of mrcache prints.
const STATISTICS: &[&str] = &[
    "Avg shift",
    "Max shift",
    "Total misses",
    "Total reads",
    "Total writes",
    "disk",
    "lru",
    "mem",
    "tot",
    "zero",
];

fn page() -> Page {
    Page::read("migrating-from-mrcache.md", FLAGS)
}

/// Starts a server with mrcache as its first address.
fn serve(folder: &Folder, more: &[&str]) -> Running {
    folder.serve(&[&["--resp=off", "--mrcache=127.0.0.1:0"], more].concat(), &[])
}

/// Returns the bytes of a cell with hexadecimal numbers, or `None` for a cell without them.
fn bytes(cell: &str) -> Option<Vec<u8>> {
    let numbers = code(cell)?;
    let byte = |number| u8::from_str_radix(number, 16).expect("a hexadecimal number");
    Some(numbers.split(' ').map(byte).collect())
}

/// Returns a request to get or set a key.
fn request(operation: u8, key: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = vec![0, operation];
    bytes.extend(u16::try_from(key.len()).expect("a length").to_le_bytes());
    if let Some(value) = value {
        bytes.extend(u32::try_from(value.len()).expect("a length").to_le_bytes());
    }
    [&bytes, key, value.unwrap_or_default()].concat()
}

/// Reads a reply with a length of four bytes.
#[track_caller]
fn reply(stream: &mut TcpStream) -> Vec<u8> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).expect("a reply");
    let mut value = vec![0; u32::from_le_bytes(len) as usize];
    stream.read_exact(&mut value).expect("a value");
    value
}

#[test]
fn the_page_has_each_flag_and_operation_of_mrcache() {
    let page = page();
    let flags = table_under(&page.text, "Flags");
    assert_eq!(names(&flags), sorted(FLAGS));
    let requests = table_under(&page.text, "Requests");
    assert_eq!(names(&requests), OPERATIONS);
    assert_eq!(names(&table_under(&page.text, "Statistics")), STATISTICS);
}

#[test]
fn the_server_accepts_the_flags_of_the_page() {
    page().check_flags();
}

#[test]
fn the_server_accepts_the_command_lines_of_the_page() {
    page().check_command_lines(&["mrcache"]);
}

#[test]
fn a_double_read_copies_what_only_the_old_server_has() {
    let before = "
import asyncio
class Client:
    def __init__(self): self.items = {}
    async def get(self, key): return self.items.get(key)
    async def set(self, key, value): self.items[key] = value
old, new = Client(), Client()
";
    let after = "
async def main():
    await old.set(b'a', b'1')
    assert await get(b'a') == b'1' and new.items == {b'a': b'1'}
    await set(b'b', b'2')
    assert old.items[b'b'] == new.items[b'b'] == b'2'
    assert await get(b'c') is None and b'c' not in new.items
asyncio.run(main())
";
    page().run_python(before, after);
}

/// Sends the requests of the page on one connection, and compares the replies.
#[track_caller]
fn check_requests(framing: &str, prefix: &[u8]) {
    let folder = Folder::new();
    let server = serve(&folder, &[framing]);
    let mut stream = server.connect();
    let rows = table_under(&page().text, "Requests");
    for row in &rows {
        let [name, sent, expected, _] = &row[..] else { panic!("{row:?}") };
        stream.write_all(&bytes(sent).expect(name)).expect("sent");
        match (bytes(expected), expected.as_str()) {
            (Some(expected), _) => {
                let expected = [prefix, &expected].concat();
                let mut found = vec![0; expected.len()];
                stream.read_exact(&mut found).expect("a reply");
                assert_eq!(found, expected, "{name}");
            }
            // A reply that should not be there would be read in place of the next one.
            (None, "none") => {}
            (None, "the connection is closed") => {
                assert_eq!(stream.read(&mut [0]).expect("the end"), 0, "{name}");
                assert_eq!(Some(row), rows.last());
            }
            (None, text) => panic!("{name}: {text}"),
        }
    }
}

#[test]
fn the_server_answers_each_request_as_the_page_says() {
    check_requests("--mrcache-reply=len4", &[]);
}

#[test]
fn the_older_framing_has_two_more_bytes() {
    check_requests("--mrcache-reply=ver6", &[0, 1]);
    let framings = table_under(&page().text, "The framing of replies");
    let settings: Vec<_> = framings.iter().filter_map(|row| code(&row[0])).collect();
    assert_eq!(settings, ["--mrcache-reply len4", "--mrcache-reply ver6"]);
    assert_eq!(code_spans(&framings[1][1]), ["00 01"]);
}

/// Regression test of the advice for clients that send operation 3 for `stat()`.
#[test]
fn operation_3_alone_is_an_incomplete_getz() {
    let folder = Folder::new();
    let server = serve(&folder, &["--mrcache-reply=ver6"]);
    let mut stream = server.connect();
    // The next request, `GET` of a key of 256 bytes, counts as the rest of it: a key of 256 bytes
    // that begins with the length, and the first bytes of the key.
    let get = request(1, &[b'k'; 256], None);
    stream.write_all(&[&[0, 3], &get[..]].concat()).expect("sent");
    let mut found = [1; 6];
    stream.read_exact(&mut found).expect("a reply");
    assert_eq!(found, [0, 1, 0, 0, 0, 0]);
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0, "the rest is no request");
}

/// Sends the header of a request to set a value of this length, which the server must refuse: it
/// closes the connection before the value.
#[track_caller]
fn refuses(server: &Running, len: u32) {
    let mut stream = server.connect();
    let header = [&[0, 2, 1, 0][..], &len.to_le_bytes()].concat();
    stream.write_all(&header).expect("sent");
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn lengths_have_the_limits_of_the_page() {
    let folder = Folder::new();
    let server = serve(&folder, &["--memory=64MiB"]);
    let value = vec![b'v'; 17 << 20];
    let key = vec![b'k'; 65_535];
    let mut stream = server.connect();
    stream.write_all(&request(2, &key, Some(&value))).expect("sent");
    stream.write_all(&request(1, &key, None)).expect("sent");
    assert!(reply(&mut stream) == value);
    refuses(&server, 25 << 20);
    wait_until("a warning", || server.messages().contains("3/8 of maxmemory"));
    let folder = Folder::new();
    let server = serve(&folder, &["--max-value=1MiB", "--log=off"]);
    refuses(&server, 2 << 20);
}

#[test]
fn all_addresses_are_one_cache_and_requests_can_be_pipelined() {
    let folder = Folder::new();
    let more = ["--mrcache=127.0.0.1:0", "--resp=127.0.0.1:0"];
    let server = folder.serve(&[&["--mrcache=127.0.0.1:0"], &more[..]].concat(), &[]);
    // The first address is that of RESP.
    let [mut first, mut second] = [1, 2].map(|number| server.connect_to(number));
    let requests: Vec<u8> = (0..2_000_u32)
        .flat_map(|number| {
            let key = number.to_le_bytes();
            [request(2, &key, Some(&key)), request(1, &key, None)].concat()
        })
        .collect();
    first.write_all(&requests).expect("sent");
    for number in 0..2_000_u32 {
        assert_eq!(reply(&mut first), number.to_le_bytes());
    }
    second.write_all(&request(1, &7_u32.to_le_bytes(), None)).expect("sent");
    assert_eq!(reply(&mut second), 7_u32.to_le_bytes());
    second.write_all(&request(2, b"k", Some(b"v"))).expect("sent");
    second.write_all(&request(1, b"k", None)).expect("sent");
    assert_eq!(reply(&mut second), b"v");
    // What the protocol of mrcache cannot do.
    assert_eq!(server.ask("GET k\r\nDEL k"), "$1\r\nv\r\n:1\r\n");
    second.write_all(&request(1, b"k", None)).expect("sent");
    assert_eq!(reply(&mut second), b"");
}

#[test]
fn with_a_full_memory_a_set_removes_the_old_value() {
    let folder = Folder::new();
    let server = serve(&folder, &["--eviction=none"]);
    let mut stream = server.connect();
    let value = vec![b'v'; 1 << 20];
    stream.write_all(&request(2, b"k", Some(b"old"))).expect("sent");
    // More than fit: on a busy machine, memory of values that are being received is full for a
    // moment, and the first of them are refused, too.
    for number in 0..96_u8 {
        stream.write_all(&request(2, &[number], Some(&value))).expect("sent");
    }
    stream.write_all(&request(2, b"k", Some(&value))).expect("sent");
    stream.write_all(&request(1, b"k", None)).expect("sent");
    assert_eq!(reply(&mut stream).len(), 0);
}

#[test]
fn the_metrics_of_the_page_exist() {
    let folder = Folder::new();
    let server = serve(&folder, &["--admin=127.0.0.1:0", "--disk=16MiB", "--data-dir=data"]);
    let mut stream = server.connect();
    stream.write_all(&request(2, b"k", Some(b"v"))).expect("sent");
    stream.write_all(&[0, 5]).expect("sent");
    stream.write_all(&request(1, b"k", None)).expect("sent");
    assert_eq!(reply(&mut stream), b"v");
    let (status, metrics) = server.http("/metrics");
    assert_eq!(status, 200);
    let rows = table_under(&page().text, "Statistics");
    for name in rows.iter().flat_map(|row| code_spans(&row[1])) {
        assert!(metrics.lines().any(|line| line.starts_with(&name)), "{name}");
    }
    for operation in ["get", "set", "stat"] {
        let expected = format!("nuthatch_commands_total{{command=\"mrcache|{operation}\"}} 1\n");
        assert!(metrics.contains(&expected), "{expected}");
    }
}
