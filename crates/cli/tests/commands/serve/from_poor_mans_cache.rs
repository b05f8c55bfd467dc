//! Checks `docs/migrating-from-poor-mans-cache.md`: the tables are complete, and a server accepts
//! what the page says instead of each variable and flag, and answers each request as the page says.

use super::old_server::{Page, code, code_spans, names, sorted};
use crate::folder::Folder;
use crate::server::Running;
use nuthatch_testing::page::table_under;
use std::io::{Read, Write};
use std::net::TcpStream;

/// All flags of the server of poor-man's-cache.
const FLAGS: &[&str] =
    &["--drain-max-conn-close-per-tick", "--drain-timeout-ms", "--listen", "--metrics-listen"];

/// All environment variables that it reads.
const VARIABLES: &[&str] = &[
    "CACHE_PORT",
    "CONN_QUEUE_LIMIT",
    "DRAIN_MAX_CONN_CLOSE_PER_TICK",
    "DRAIN_TIMEOUT_MS",
    "ENABLE_COMPRESSION",
    "METRICS_ENABLED",
    "METRICS_HOST",
    "METRICS_PORT",
    "METRICS_PORT_OFFSET",
    "NUM_SHARDS",
    "PMC_CPU",
    "PMC_DEBUG_HOT_KEYS",
    "PMC_HOTKEY_TOP_N",
    "PMC_NIC_QUEUE_ID",
    "PMC_NODE",
    "PMC_NUMA",
    "PMC_SHARD",
    "RESP_INLINE_CAPACITY",
    "SERVER_PORT",
    "SOCK_BUF_SIZE",
];

/// All environment variables of its controller.
const CONTROLLER_VARIABLES: &[&str] = &[
    "CLUSTER_WORKERS",
    "METRICS_PORT",
    "PMC_DISCOVERY_ADDR",
    "PMC_DISCOVERY_ENDPOINT",
    "PMC_RT_PRIO",
    "PMC_SCRAPE_HOST",
];

/// All paths of its HTTP server.
const PATHS: &[&str] = &["/healthz", "/metrics", "/readyz", "/shard"];

/// All metrics of its present and older versions.
const METRICS: &[&str] = &[
    "pmc_batch_size_bucket",
    "pmc_batch_size_count",
    "pmc_batch_size_sum",
    "pmc_batches_total",
    "pmc_bytes_rx_total",
    "pmc_bytes_tx_total",
    "pmc_connections_accepted_total",
    "pmc_connections_closed_total",
    "pmc_connections_current",
    "pmc_drain_timeout_total",
    "pmc_epoll_events_total",
    "pmc_epoll_wait_total",
    "pmc_hotkey_hash_hits_total",
    "pmc_hotkey_samples_dropped_total",
    "pmc_in_flight_requests",
    "pmc_kvs_bytes_used",
    "pmc_kvs_items",
    "pmc_read_buffer_usage_bytes",
    "pmc_requests_per_batch_count",
    "pmc_requests_per_batch_sum",
    "pmc_requests_total",
    "pmc_responses_total",
    "pmc_shutdowns_total",
    "pmc_syscall_accept_total",
    "pmc_syscall_recv_total",
    "pmc_syscall_send_total",
    "pmc_worker_state",
    "pmc_write_queue_depth",
    "server_events_per_batch",
    "server_num_active_connections",
    "server_num_errors_total",
    "server_num_requests_total",
    "storage_num_entries",
    "storage_num_resizes_total",
];

/// All commands of its own messages.
const MESSAGES: [&str; 3] = ["DEL", "GET", "SET"];

/// All commands that it accepts in RESP.
const RESP: [&str; 6] = ["DEL", "DISCARD", "EXEC", "GET", "MULTI", "SET"];

fn page() -> Page {
    Page::read("migrating-from-poor-mans-cache.md", FLAGS)
}

/// Starts a server with poor-man's-cache as its first address.
fn serve(folder: &Folder, more: &[&str]) -> Running {
    folder.serve(&[&["--resp=off", "--pmc=127.0.0.1:0"], more].concat(), &[])
}

/// Sends a message and returns its reply.
#[track_caller]
fn ask(stream: &mut TcpStream, message: impl AsRef<[u8]>) -> String {
    stream.write_all(message.as_ref()).expect("sent");
    stream.write_all(b"\x1f").expect("sent");
    let mut found = Vec::new();
    let mut byte = [0];
    loop {
        stream.read_exact(&mut byte).expect("a reply");
        if byte == *b"\x1f" {
            return String::from_utf8(found).expect("text");
        }
        found.push(byte[0]);
    }
}

/// Returns a request in RESP.
fn resp(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(*word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Sends a request in RESP, and reads as many bytes as the expected reply has.
#[track_caller]
fn ask_resp(stream: &mut TcpStream, words: &[&[u8]], expected: &str) {
    stream.write_all(&resp(words)).expect("sent");
    let mut found = vec![0; expected.len()];
    stream.read_exact(&mut found).expect("a reply");
    assert_eq!(String::from_utf8_lossy(&found), expected, "{words:?}");
}

#[test]
fn the_page_has_each_flag_variable_path_and_metric() {
    let page = page();
    let rows = |heading| names(&table_under(&page.text, heading));
    assert_eq!(rows("Variables and flags"), sorted(&[VARIABLES, FLAGS].concat()));
    assert_eq!(rows("The cluster of one machine"), CONTROLLER_VARIABLES);
    assert_eq!(rows("Paths"), PATHS);
    assert_eq!(rows("Metrics"), METRICS);
}

#[test]
fn the_page_has_each_command() {
    let page = page();
    for (heading, commands) in [("Messages", &MESSAGES[..]), ("RESP", &RESP)] {
        let requests = names(&table_under(&page.text, heading));
        for command in commands {
            let is_it = |request: &String| request.split(' ').next() == Some(command);
            assert!(requests.iter().any(is_it), "{heading}: {command}");
        }
    }
}

#[test]
fn the_server_accepts_the_flags_of_the_page() {
    page().check_flags();
}

#[test]
fn the_server_accepts_the_command_lines_of_the_page() {
    page().check_command_lines(&["poor-man-s-cache", "pmc-cluster-controller"]);
}

#[test]
fn a_double_read_copies_what_only_the_old_server_has() {
    let before = "
class Client:
    def __init__(self): self.items = {}
    def get(self, key): return self.items.get(key)
    def set(self, key, value, nx=False):
        if not (nx and key in self.items): self.items[key] = value
    def delete(self, key): self.items.pop(key, None)
old, new = Client(), Client()
";
    let after = "
old.set('a', '1')
assert get('a') == '1' and new.items == {'a': '1'}
set('b', '2')
assert old.items['b'] == new.items['b'] == '2'
delete('b')
assert get('b') is None and 'b' not in old.items and 'b' not in new.items
class Slow(Client):
    def get(self, key):
        new.set(key, 'newer')  # another client, meanwhile
        return 'older'
old = Slow()
get('c')
assert new.items['c'] == 'newer'
";
    page().run_python(before, after);
}

#[test]
fn the_server_answers_each_message_as_the_page_says() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let mut stream = server.connect();
    for row in table_under(&page().text, "Messages") {
        let message = code(&row[0]).expect("a message");
        assert_eq!(Some(ask(&mut stream, &message)), code(&row[1]), "{message}");
    }
    assert_eq!(ask(&mut stream, "GET empty"), "", "a value may be empty");
}

#[test]
fn the_server_answers_each_request_in_resp_as_the_page_says() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let mut stream = server.connect();
    for row in table_under(&page().text, "RESP") {
        let request = code(&row[0]).expect("a request");
        let expected = match row[2].as_str() {
            "the same" => code(&row[1]),
            different => code(different),
        };
        let expected = expected.expect("a reply").replace("\\r\\n", "\r\n");
        let words: Vec<_> = request.split(' ').map(str::as_bytes).collect();
        ask_resp(&mut stream, &words, &expected);
    }
    // There were no more bytes.
    assert_eq!(ask(&mut stream, "GET missing"), "(nil)");
}

/// Returns a server with a value that only RESP can store, and with all memory in use.
fn full(folder: &Folder) -> (Running, TcpStream) {
    let server = serve(folder, &["--eviction=none", "--log=off"]);
    let mut stream = server.connect();
    ask_resp(&mut stream, &[b"SET", b"separated", b"a\x1fb"], "+OK\r\n");
    assert_eq!(ask(&mut stream, "SET k old"), "OK");
    let value = "v".repeat(1 << 20);
    let is_full = (0..64).any(|key| ask(&mut stream, format!("SET {key} {value}")) != "OK");
    assert!(is_full);
    (server, stream)
}

#[test]
fn the_other_errors_are_those_of_the_page() {
    let folder = Folder::new();
    let page = page();
    let (_, after) = page.text.split_once("There are four more errors").expect("a sentence");
    let lines = after.lines().filter(|line| line.starts_with("| `"));
    let mut errors = lines.take(4).map(|line| code_spans(line).swap_remove(0));
    let mut next = || errors.next().expect("an error");

    let (_server, mut stream) = full(&folder);
    let value = "v".repeat(1 << 20);
    assert_eq!(ask(&mut stream, format!("SET k {value}")), format!("ERROR: {}", next()));
    assert_eq!(ask(&mut stream, "GET k"), "(nil)", "the old value is removed");
    assert_eq!(ask(&mut stream, "GET separated"), format!("ERROR: {}", next()));
    let long = vec![b'v'; 7 << 20];
    let error = ask(&mut stream, [b"SET k ", &long[..]].concat());
    let too_long = next();
    let (start, end) = too_long.split_once(" N ").expect("a limit");
    let rest = error.strip_prefix(&format!("ERROR: {start} ")).expect(&error);
    let (limit, rest) = rest.split_once(' ').expect(&error);
    assert!(limit.parse::<u32>().is_ok() && rest.starts_with(end), "{error}");
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);

    let closed = Folder::new();
    closed.file("password", "sesame\n");
    let server = serve(&closed, &["--password-file=password"]);
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, "GET k"), format!("ERROR: {}", next()));
    ask_resp(&mut stream, &[b"AUTH", b"sesame"], "+OK\r\n");
    assert_eq!(ask(&mut stream, "GET k"), "(nil)");
}

#[test]
fn messages_are_not_queued_and_values_contain_any_byte() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let mut stream = server.connect();
    ask_resp(&mut stream, &[b"MULTI"], "+OK\r\n");
    assert_eq!(ask(&mut stream, "SET k a\0b"), "OK");
    ask_resp(&mut stream, &[b"GET", b"k"], "+QUEUED\r\n");
    assert_eq!(ask(&mut stream, "GET k"), "a\0b");
    ask_resp(&mut stream, &[b"EXEC"], "*1\r\n$3\r\na\0b\r\n");
    stream.write_all(b"*1\r\n$-1\r\n").expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    let mut found = String::new();
    stream.read_to_string(&mut found).expect("an error, and the end");
    assert!(found.starts_with("-ERR Protocol error"), "{found}");
}

/// Clients of a cluster choose a port by the hash of the key.
#[test]
fn all_addresses_are_one_cache() {
    let folder = Folder::new();
    let server = serve(&folder, &["--pmc=127.0.0.1:0"]);
    let [mut first, mut second] = [0, 1].map(|number| server.connect_to(number));
    assert_eq!(ask(&mut first, "SET k v"), "OK");
    assert_eq!(ask(&mut second, "GET k"), "v");
    assert_eq!(ask(&mut second, "DEL k"), "OK");
    assert_eq!(ask(&mut first, "GET k"), "(nil)");
}

#[test]
fn requests_can_be_pipelined_beyond_512() {
    let folder = Folder::new();
    let server = serve(&folder, &[]);
    let mut stream = server.connect();
    let requests = (0..2_000)
        .map(|number| format!("SET k {number}\x1fGET k\x1f"))
        .collect::<Vec<_>>()
        .concat();
    stream.write_all(requests.as_bytes()).expect("sent");
    let expected =
        (0..2_000).map(|number| format!("OK\x1f{number}\x1f")).collect::<Vec<_>>().concat();
    let mut found = vec![0; expected.len()];
    stream.read_exact(&mut found).expect("the replies");
    assert!(found == expected.as_bytes());
}

#[test]
fn paths_are_served_as_the_page_says() {
    let folder = Folder::new();
    let server = serve(&folder, &["--admin=127.0.0.1:0"]);
    for row in table_under(&page().text, "Paths") {
        let old = code(&row[0]).expect("a path");
        let here = code(&row[1]);
        assert_eq!(server.http(&old).0, if here.as_ref() == Some(&old) { 200 } else { 404 });
        if let Some(here) = here {
            assert_eq!(server.http(&here).0, 200, "{here}");
        }
    }
}

#[test]
fn the_metrics_of_the_page_exist() {
    let folder = Folder::new();
    let server = serve(&folder, &["--admin=127.0.0.1:0"]);
    let mut stream = server.connect();
    for message in ["SET k v", "GET k", "GET missing", "DEL k", "PING"] {
        ask(&mut stream, message);
    }
    let (_, metrics) = server.http("/metrics");
    let page = page();
    let rows = table_under(&page.text, "Metrics");
    let spans = rows.iter().flat_map(|row| code_spans(&row[1]));
    for name in spans.filter(|name| name.starts_with("nuthatch_")) {
        assert!(metrics.lines().any(|line| line.starts_with(&name)), "{name}");
    }
    for request in ["get", "set", "del", "fault"] {
        let expected = format!("nuthatch_commands_total{{command=\"pmc|{request}\"}} ");
        assert!(metrics.contains(&expected), "{expected}");
    }
}
