//! Behaviour of all servers: `serve`, `store serve` and `chunks serve`.

use crate::folder::{Folder, Run};
use crate::server::{Running, wait_until, wait_until_closed};
use crate::store_remote::certificates;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

const CACHE: &[&str] =
    &["serve", "--memory=16MiB", "--memcache=off", "--resp=127.0.0.1:0", "--admin=off"];
const STORE: &[&str] = &["store", "serve", "db", "--create", "--listen", "127.0.0.1:0"];

/// Starts a chunk server for the folder `objects`, which this creates.
fn chunks(folder: &Folder) -> Vec<String> {
    std::fs::create_dir(folder.path("objects")).expect("a folder");
    folder.file("objects/a", "bytes");
    let origin = format!("file://{}/", folder.text("objects"));
    let serve = ["chunks", "serve", "--origin", &origin, "--cache", "cache"];
    let bounds = ["--limit", "64MiB", "--listen", "127.0.0.1:0"];
    serve.into_iter().chain(bounds).map(str::to_owned).collect()
}

fn as_texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Returns the number of connections in the first warning of the server.
#[track_caller]
fn announced(server: &Running, usual: &str) -> usize {
    let messages = server.messages();
    let rest = messages.strip_prefix("nuthatch: warning: connections is ");
    let (count, rest) = rest.and_then(|rest| rest.split_once(' ')).expect(&messages);
    let reason = format!("instead of {usual}: the process may open too few files for more");
    assert!(rest.starts_with(&reason), "{messages}");
    count.parse().expect(&messages)
}

/// Opens connections that send nothing.
fn idle(address: &str, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(address).expect("a connection")).collect()
}

/// Returns the address of a chunk server.
fn http(server: &Running) -> &str {
    server.addresses[0].trim_start_matches("http://").trim_end_matches('/')
}

/// Requests the object `a` from a chunk server.
#[track_caller]
fn assert_is_served(address: &str) {
    let mut client = TcpStream::connect(address).expect("a connection");
    client.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("bytes"), "{answer}");
}

/// Makes a server drain, which lasts until the client of the caller reads, and ends it by a second
/// signal.
#[track_caller]
fn ends_at_second_signal(mut server: Running, address: &str) {
    server.signal(Signal::TERM);
    wait_until_closed(address);
    assert!(!server.has_ended(), "an answer is in progress");
    server.signal(Signal::INT);
    assert_eq!(server.wait_until_ended(), Some(0));
}

/// It waited for the rest of --drain-ms.
#[test]
fn a_second_signal_ends_the_server_of_a_store_at_once() {
    let folder = Folder::new();
    let row =
        |key: u32| format!("{{\"key\":\"{key:02}\",\"value\":\"{}\"}}\n", "v".repeat(1 << 20));
    folder.file("rows.jsonl", (0..64).map(row).collect::<String>());
    let load = folder.run(&["store", "load", "db", "rows.jsonl", "--quiet"]);
    assert_eq!(load.status, Some(0), "{load:?}");
    let server = folder.start(folder.command(&[STORE, &["--drain-ms=3600000"]].concat()));
    let address = server.addresses[0].clone();
    let mut scan = folder.command(&["store", "scan", &address]);
    let mut scan = scan.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a command");
    let mut output = scan.stdout.take().expect("its output");
    output.read_exact(&mut [0]).expect("a row");
    ends_at_second_signal(server, address.trim_start_matches("grpc://"));
    drop(output);
    scan.wait().expect("its end");
}

#[test]
fn a_second_signal_ends_the_cache_of_objects_at_once() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    folder.file("objects/long", vec![b'x'; 64 << 20]);
    let arguments = [&as_texts(&chunks)[..], &["--drain-ms=3600000", "--idle-ms=3600000"]].concat();
    let server = folder.start(folder.command(&arguments));
    let address = http(&server).to_owned();
    let mut client = TcpStream::connect(&address).expect("a connection");
    client.write_all(b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    client.read_exact(&mut [0]).expect("an answer");
    ends_at_second_signal(server, &address);
}

/// Runs a command that must fail with this status. Returns the message.
#[track_caller]
fn refused(folder: &Folder, arguments: &[&str], status: i32) -> String {
    let run = folder.run(arguments);
    assert_eq!((run.status, &run.stdout[..]), (Some(status), ""), "{run:?}");
    run.stderr
}

/// Checks the status after SIGUSR2, which makes servers panic in builds with debug assertions.
#[cfg(debug_assertions)]
#[track_caller]
fn ends_on_panic(arguments: &[&str], folder: &Folder) {
    let mut server = folder.start(folder.command(arguments));
    server.signal(Signal::USR2);
    assert_eq!(server.wait(), Some(101), "{arguments:?}");
    let messages = server.messages();
    let last = "nuthatch: a thread panicked, which is a bug: the server ends; restart it\n";
    assert!(messages.ends_with(last), "{messages}");
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_in_a_thread_ends_a_cache_with_a_store() {
    let store = ["--store=db", "--store-create", "--grpc=127.0.0.1:0"];
    ends_on_panic(&[CACHE, &store].concat(), &Folder::new());
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_in_a_thread_ends_the_server_of_a_store() {
    ends_on_panic(STORE, &Folder::new());
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_in_a_thread_ends_the_cache_of_objects() {
    let folder = Folder::new();
    ends_on_panic(&as_texts(&chunks(&folder)), &folder);
}

/// Connections beyond the limit of open files took the descriptors that the store needs.
#[test]
fn with_few_open_files_a_store_accepts_fewer_connections() {
    let folder = Folder::new();
    let server = folder.start(folder.with_files("-n 64", &folder.command(STORE)));
    let count = announced(&server, "1024");
    assert!((4..60).contains(&count), "{count}");
    let address = server.addresses[0].clone();
    let connections = idle(address.trim_start_matches("grpc://"), count - 1);
    let put = folder.run(&["store", "put", &address, "a", "1"]);
    assert_eq!((put.status, &put.stderr[..]), (Some(0), ""));
    drop(connections);
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn with_few_open_files_a_cache_of_objects_accepts_fewer_connections() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    let command = folder.command(&as_texts(&chunks));
    let server = folder.start(folder.with_files("-n 64", &command));
    let count = announced(&server, "256");
    assert!((4..60).contains(&count), "{count}");
    let address = http(&server);
    let connections = idle(address, count - 1);
    assert_is_served(address);
    drop(connections);
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn a_cache_with_a_store_shares_few_open_files_between_their_clients() {
    let folder = Folder::new();
    let store = ["--store=db", "--store-create", "--grpc=127.0.0.1:0", "--threads=1"];
    let command = folder.command(&[CACHE, &store].concat());
    let server = folder.start(folder.with_files("-n 100", &command));
    let messages = server.messages();
    let lines: Vec<_> = messages.lines().collect();
    let starts = ["max-clients is ", "the number of connections to the store is "];
    assert_eq!(lines.len(), starts.len(), "{messages}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(&format!("nuthatch: warning: {start}")), "{messages}");
    }
}

/// Connections beyond the soft limit of open files were not accepted.
#[test]
fn the_limit_of_open_files_of_a_store_is_raised() {
    let folder = Folder::new();
    let server = folder.start(folder.with_files("-S -n 64", &folder.command(STORE)));
    assert_eq!(server.messages(), "");
    let address = server.addresses[0].clone();
    let _connections = idle(address.trim_start_matches("grpc://"), 100);
    let put = folder.run(&["store", "put", &address, "a", "1"]);
    assert_eq!((put.status, &put.stderr[..]), (Some(0), ""));
}

#[test]
fn the_limit_of_open_files_of_a_cache_of_objects_is_raised() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    let command = folder.command(&as_texts(&chunks));
    let server = folder.start(folder.with_files("-S -n 64", &command));
    assert_eq!(server.messages(), "");
    let address = http(&server);
    let _connections = idle(address, 100);
    assert_is_served(address);
}

/// Regression test: with 20 files, the server started and sent status 502 for each request.
#[test]
fn a_chunk_server_with_a_low_limit_of_open_files_serves() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    let command = folder.command(&as_texts(&chunks));
    let limited = |files: u32| folder.with_files(&format!("-n {files}"), &command);
    let run = crate::folder::Run::of(limited(20), b"");
    assert_eq!(run.status, Some(3), "{run:?}");
    let (_, rest) = run.stderr.split_once("expected a limit of at least ").expect("an error");
    let needed = rest.split(' ').next().and_then(|number| number.parse::<u32>().ok());
    let server = folder.start(limited(needed.expect("a number")));
    assert_is_served(http(&server));
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn too_few_open_files_for_any_connection_are_an_error() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    for arguments in [STORE, &as_texts(&chunks)] {
        let run = Run::of(folder.with_files("-n 8", &folder.command(arguments)), b"");
        assert_eq!(run.status, Some(3), "{run:?}");
        let start = "nuthatch: expected a limit of at least ";
        assert!(run.stderr.starts_with(start) && run.stderr.contains("ulimit -n"), "{run:?}");
    }
    assert!(!folder.path("db").exists(), "nothing was created before the check");
}

/// Regression test: with 0, each connection was closed at once, or each request got status 504.
#[test]
fn times_with_which_no_request_succeeds_are_refused_by_the_cache_of_objects() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    for flag in ["--idle-ms", "--origin-ms"] {
        let message = refused(&folder, &[&as_texts(&chunks)[..], &[flag, "0"]].concat(), 2);
        assert!(message.contains(flag) && message.contains("100.."), "{message}");
    }
}

#[test]
fn the_default_of_the_memory_of_a_store_is_three_quarters_of_a_low_limit_of_the_control_group() {
    let folder = Folder::new();
    let server = folder.start(folder.limited(STORE, 64 << 20));
    assert_eq!(server.greeting, "db: 48.0 MiB of memory\n");
    let group = folder.text("group/memory.max");
    let warning = format!(
        "nuthatch: warning: memory is 48.0 MiB instead of 256.0 MiB: only 64.0 MiB are available \
         (the limit of its control group, {group})\n"
    );
    assert_eq!(server.messages(), warning);
    // A budget that was given is refused, not lowered.
    let given = [STORE, &["--memory", "65MiB"]].concat();
    let run = Run::of(folder.limited(&given, 64 << 20), b"");
    let expected = "nuthatch: --memory: expected at most 64.0 MiB";
    assert!(run.status == Some(2) && run.stderr.starts_with(expected), "{run:?}");
}

#[test]
fn a_cache_of_objects_accepts_as_many_connections_as_its_control_group_allows() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    let bounds = ["--connections", "200", "--read-ahead", "1MiB"];
    let arguments = [&as_texts(&chunks)[..], &bounds].concat();
    let server = folder.start(folder.limited(&arguments, 64 << 20));
    let messages = server.messages();
    let rest = messages.strip_prefix("nuthatch: warning: connections is ").expect(&messages);
    let (count, rest) = rest.split_once(" instead of 200: each may take ").expect(&messages);
    assert!((1..=64).contains(&count.parse().expect(&messages)), "{messages}");
    let all = "and only 64.0 MiB are available (the limit of its control group, ";
    assert!(rest.contains(all), "{messages}");
    assert_is_served(http(&server));
}

/// Warnings about files were plain lines between the objects, and so was the end of a reload.
#[test]
fn with_json_lines_every_line_of_a_server_is_an_object() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    folder.file("tokens", "token a read >b\n").mode("tokens", 0o644);
    for arguments in [STORE, &as_texts(&chunks)] {
        let more = ["--tokens", "tokens", "--log-json", "--log", "info"];
        let server = folder.start(folder.command(&[arguments, &more].concat()));
        server.signal(Signal::HUP);
        wait_until("a reload", || server.messages().contains("reloaded"));
        let (status, logged) = server.stop();
        assert_eq!(status, Some(0), "{logged}");
        let lines: Vec<serde_json::Value> =
            logged.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let warnings = lines.iter().filter(|line| line["target"] == "nuthatch::server");
        let messages = warnings.filter_map(|line| line["message"].as_str());
        let expected = "tokens: all users of this machine can read it";
        // At the start, and at the reload.
        assert_eq!(messages.filter(|message| message.starts_with(expected)).count(), 2, "{logged}");
    }
}

#[test]
fn help_says_that_a_reload_keeps_the_flags() {
    let folder = Folder::new();
    for command in ["store", "chunks"] {
        let page = folder.run(&[command, "serve", "--help"]).stdout;
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "The flags keep their values, --log included: a change needs a restart.";
        assert!(words.contains("SIGHUP reloads") && words.contains(expected), "{page}");
    }
}

#[test]
fn more_memory_than_there_is_is_refused_by_all_servers() {
    let folder = Folder::new();
    let message = refused(&folder, &[STORE, &["--memory", "999999GiB"]].concat(), 2);
    assert!(message.starts_with("nuthatch: --memory: expected at most "), "{message}");
    let chunks = chunks(&folder);
    let chunks = as_texts(&chunks);
    let message = refused(&folder, &[&chunks[..], &["--read-ahead", "999999GiB"]].concat(), 2);
    assert!(message.starts_with("nuthatch: --read-ahead: expected at most "), "{message}");
}

#[test]
fn a_cache_of_objects_accepts_as_many_connections_as_its_memory_allows() {
    let folder = Folder::new();
    let chunks = chunks(&folder);
    let machine = std::fs::read_to_string("/proc/meminfo").expect("a machine with memory");
    let total = machine.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("a line");
    let kib: u64 = total.trim().trim_end_matches("kB").trim().parse().expect("a number");
    // A hundredth of the machine's memory for each of 200 connections; a control group has less.
    let each = format!("{}KiB", kib / 100);
    let bounds = ["--connections", "200", "--read-ahead", &each];
    let server = folder.start(folder.command(&[&as_texts(&chunks)[..], &bounds].concat()));
    let messages = server.messages();
    assert!(messages.starts_with("nuthatch: warning: connections is "), "{messages}");
    assert!(messages.contains(" of memory, and "), "{messages}");
}

/// Returns the first line of the response of an admin endpoint to a request with this token.
fn status_with_token(admin: &str, token: &str) -> String {
    let mut client = TcpStream::connect(admin).expect("a connection");
    let request = format!(
        "GET /live.json HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    client.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    answer.lines().next().unwrap_or_default().to_owned()
}

/// Only `serve` did so: the others kept the token until a restart. Wrong tokens before the reload
/// do not block the right one.
#[test]
fn every_server_reads_its_admin_token_again() {
    let (old, new) = ("the-old-token-of-the-tests", "the-new-token-of-the-tests");
    let folder = Folder::new();
    let chunks = chunks(&folder);
    for command in [STORE, &as_texts(&chunks), &["follow", "source", "there"]] {
        folder.file("token", old);
        let more = ["--admin=127.0.0.1:0", "--admin-token-file=token", "--log=info"];
        let server = folder.start(folder.command(&[command, &more].concat()));
        assert_eq!(status_with_token(&server.admin, old), "HTTP/1.1 200 OK", "{command:?}");
        folder.file("token", new);
        server.signal(Signal::HUP);
        wait_until("the new token", || status_with_token(&server.admin, new).contains("200"));
        wait_until("a line", || server.messages().contains("reload"));
        folder.file("token", "short");
        server.signal(Signal::HUP);
        wait_until("an error", || server.messages().contains("at least 16 visible ASCII"));
        let messages = server.messages();
        let line = messages.lines().find(|line| line.contains("at least 16")).expect("a line");
        assert!(line.contains("ERROR nuthatch::"), "{line}");
        assert_eq!(status_with_token(&server.admin, new), "HTTP/1.1 200 OK", "{command:?}");
        assert!(!messages.contains(new), "{messages}");
    }
}

#[test]
fn every_server_counts_and_logs_refused_requests_at_the_admin_endpoint() {
    let (right, wrong) = ("the-right-token-of-the-tests", "a-wrong-token-of-the-tests");
    let folder = Folder::new();
    let chunks = chunks(&folder);
    folder.file("token", right);
    let cache = &["serve", "--memory=16MiB", "--memcache=off", "--resp=127.0.0.1:0"];
    for command in [STORE, &as_texts(&chunks), &["follow", "source", "there"], cache] {
        let more = ["--admin=127.0.0.1:0", "--admin-token-file=token"];
        let server = folder.start(folder.command(&[command, &more].concat()));
        assert!(status_with_token(&server.admin, wrong).contains("401"), "{command:?}");
        let counted = samples(&server.admin, "nuthatch_admin_refused_total");
        let expected = "nuthatch_admin_refused_total{cause=\"wrong-token\"} 1".to_owned();
        assert!(counted.len() == 4 && counted.contains(&expected), "{command:?}: {counted:?}");
        let text = "a request to the admin endpoint was refused";
        wait_until("a line", || server.messages().contains(text));
        let messages = server.messages();
        let has_values = [wrong, "Bearer", "live.json", "localhost"];
        assert!(!has_values.iter().any(|value| messages.contains(value)), "{messages}");
    }
}

/// Returns the samples with this name of an admin endpoint.
fn samples(admin: &str, name: &str) -> Vec<String> {
    let mut client = TcpStream::connect(admin).expect("a connection");
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    client.write_all(request).expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    answer.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

/// Returns the positions and times of the certificates of a server.
fn expiry(server: &Running) -> Vec<String> {
    let name = "nuthatch_certificate_expiry_timestamp_seconds{position=";
    let samples = samples(&server.admin, name);
    samples.iter().map(|sample| sample.trim_start_matches(name).to_owned()).collect()
}

/// A reload replaces all or nothing. An unreadable certificate changed the positions of others.
#[test]
fn every_server_exports_when_its_certificates_expire_also_after_a_reload() {
    let folder = Folder::new();
    certificates(&folder, "one");
    let chunks = chunks(&folder);
    let tls = ["--tls-cert=cert.pem", "--tls-key=key.pem", "--admin=127.0.0.1:0"];
    let tls = [&tls[..], &["--admin-token-file=token"]].concat();
    let cache = &["serve", "--memory=16MiB", "--memcache=off", "--resp=tls:127.0.0.1:0"];
    let with_store = ["--store=other", "--store-create", "--grpc=tls:127.0.0.1:0"];
    let store_only = ["serve", "--memory=16MiB", "--memcache=off", "--resp=127.0.0.1:0"];
    // The default of the program that made the certificates: the year 4096.
    let [first, third] = [0, 2].map(|position| format!("\"{position}\"}} 67090118400"));
    let own = folder.bytes("cert.pem");
    let other = b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let chain = [&own[..], other, &folder.bytes("one.ca")].concat();
    for command in [
        STORE,
        &as_texts(&chunks),
        cache,
        &[cache, &with_store[..]].concat(),
        &[&store_only[..], &with_store].concat(),
    ] {
        folder.file("cert.pem", &own).file("token", "the-token-of-the-tests");
        let server = folder.start(folder.command(&[command, &tls].concat()));
        assert_eq!(expiry(&server), [&first[..]], "{command:?}");
        let has_store = command.iter().any(|word| word.contains("grpc") || *word == "store");
        assert_eq!(samples(&server.admin, "nuthatch_store_").len(), if has_store { 4 } else { 0 });
        folder.file("cert.pem", &chain).file("token", "short");
        server.signal(Signal::HUP);
        wait_until("an error", || server.messages().contains("at least 16 visible ASCII"));
        assert_eq!(expiry(&server), [&first[..]], "{command:?}");
        folder.file("token", "the-token-of-the-tests");
        server.signal(Signal::HUP);
        wait_until("the chain", || expiry(&server) == [&first[..], &third]);
    }
}
