//! Items that survive a restart of the server.

use crate::folder::Folder;
use crate::server::{Running, wait_until, wait_until_closed};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

const WARM: &[&str] = &["--data-dir=data", "--warm-restart=true"];

fn start(folder: &Folder, more: &[&str]) -> Running {
    folder.serve(&[WARM, more].concat(), &[])
}

fn stop(mut server: Running) {
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert_eq!(server.messages(), "");
}

/// Returns a number of INFO.
fn info(server: &Running, name: &str) -> u64 {
    let text = server.ask("INFO");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a line of INFO").trim_end().parse().expect("a number")
}

/// Starts a server and waits until it has restored the items of the last one.
fn restart(folder: &Folder, more: &[&str]) -> Running {
    let server = start(folder, more);
    wait_until("all items are restored", || info(&server, "restore_in_progress") == 0);
    server
}

/// Stores this many items of 100 bytes, and reads the first of them.
fn fill(server: &Running, items: usize, read: usize) {
    let mut commands = String::new();
    for number in 0..items {
        // Writing to a string cannot fail.
        let _ = write!(commands, "SET key:{number} {number:0100}\r\n");
    }
    for number in 0..read {
        let _ = write!(commands, "STRLEN key:{number}\r\nGET key:{number}\r\n");
    }
    server.ask(commands.trim_end());
}

/// Returns the item files of the dump.
fn item_files(folder: &Folder) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder.path("data/items")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_items = |path: &PathBuf| path.to_string_lossy().ends_with(".log");
    let mut files: Vec<_> = paths.filter(is_items).collect();
    files.sort();
    files
}

#[test]
fn items_survive_a_restart_with_all_that_belongs_to_them() {
    let folder = Folder::new();
    let memcache = ["--memcache=127.0.0.1:0"];
    let server = start(&folder, &memcache);
    server.ask("SET plain value\r\nSET expires soon PX 600000\r\nSET gone soon PX 1");
    let ask = |server: &Running, commands: &str| {
        let mut stream = TcpStream::connect(&server.addresses[1]).expect("a connection");
        write!(stream, "{commands}quit\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    assert_eq!(ask(&server, "set flags 77 0 5\r\nhello\r\n"), "STORED\r\n");
    let before = ask(&server, "gets flags\r\n");
    let expires = server.ask("PEXPIRETIME expires");
    stop(server);

    let server = restart(&folder, &memcache);
    assert_eq!(server.ask("GET plain"), "$5\r\nvalue\r\n");
    assert_eq!(server.ask("PEXPIRETIME expires"), expires);
    assert_eq!(server.ask("GET gone"), "$-1\r\n");
    let after = ask(&server, "gets flags\r\n");
    assert_eq!(after, before, "with its flags and its number for cas");
    assert!(after.starts_with("VALUE flags 77 5 "), "{after}");
    // Another item never gets a number that a client may remember from before.
    assert_eq!(ask(&server, "set other 0 0 1\r\nx\r\n"), "STORED\r\n");
    let cas = |answer: &str| -> u64 {
        let number = answer.lines().next().and_then(|line| line.split(' ').nth(4));
        number.expect("a number").parse().expect("a number")
    };
    assert!(cas(&ask(&server, "gets other\r\n")) > cas(&before));
    assert_eq!(info(&server, "restored_items"), 3);
    assert_eq!(info(&server, "restore_skipped_items"), info(&server, "restore_items") - 3);
    assert_eq!(item_files(&folder), Vec::<PathBuf>::new(), "a dump is used once");
    stop(server);
    let server = restart(&folder, &memcache);
    assert_eq!(server.ask("DBSIZE"), ":4\r\n", "with a second dump");
}

#[test]
fn a_large_value_and_many_short_ones_survive() {
    let folder = Folder::new();
    let server = start(&folder, &["--memory=256MiB"]);
    fill(&server, 100_000, 0);
    let large = "x".repeat(80 << 20);
    let mut stream = server.connect();
    write!(stream, "*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n${}\r\n{large}\r\n", large.len())
        .expect("sent");
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"+OK\r\n");
    drop(stream);
    stop(server);
    let server = restart(&folder, &["--memory=256MiB"]);
    assert_eq!(server.ask("DBSIZE"), ":100001\r\n");
    assert_eq!(server.ask("STRLEN large"), format!(":{}\r\n", large.len()));
    assert_eq!(server.ask("GET key:99999"), format!("$100\r\n{:0100}\r\n", 99_999));
}

/// Only this user can read the items.
#[test]
fn a_dump_is_private() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    fill(&server, 10, 0);
    stop(server);
    let mode = |path: PathBuf| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(folder.path("data/items")), 0o700);
    assert!(!item_files(&folder).is_empty());
    for file in item_files(&folder) {
        assert_eq!(mode(file), 0o600);
    }
}

/// The dump of an earlier run must not return after a crash: its items are outdated.
#[test]
fn a_killed_server_leaves_nothing() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    server.ask("SET key old");
    stop(server);
    let mut server = restart(&folder, &[]);
    server.ask("SET key new");
    server.signal(Signal::KILL);
    server.wait();
    let server = restart(&folder, &[]);
    assert_eq!(server.ask("DBSIZE"), ":0\r\n");
    assert_eq!(info(&server, "restore_items"), 0);
}

#[test]
fn a_second_signal_ends_the_server_without_a_dump() {
    let folder = Folder::new();
    let mut server = start(&folder, &["--drain-ms=60000", "--log=info"]);
    server.ask("SET key value");
    // A request in progress keeps the server draining.
    let mut stream = server.connect();
    stream.write_all(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\n").expect("sent");
    wait_until("two connections", || info(&server, "connected_clients") == 2);
    server.signal(Signal::TERM);
    wait_until_closed(&server.addresses[0]);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert!(server.messages().contains("no dump was written"), "{}", server.messages());
    let server = restart(&folder, &[]);
    assert_eq!(server.ask("DBSIZE"), ":0\r\n");
}

/// The items that were read most are written first.
#[test]
fn a_lower_memory_keeps_what_was_read_most() {
    let folder = Folder::new();
    let server = start(&folder, &["--memory=64MiB"]);
    fill(&server, 300_000, 20_000);
    assert_eq!(server.ask("DBSIZE"), ":300000\r\n");
    stop(server);
    let server = restart(&folder, &["--memory=16MiB"]);
    let restored = info(&server, "restored_items");
    assert!((60_000..150_000).contains(&restored), "{restored}");
    assert_eq!(info(&server, "restore_skipped_items"), 300_000 - restored);
    assert_eq!(info(&server, "evicted_keys"), 0);
    let exist: Vec<_> = (0..20_000).map(|number| format!("EXISTS key:{number}")).collect();
    assert_eq!(server.ask(&exist.join("\r\n")), ":1\r\n".repeat(20_000));
}

#[test]
fn what_clients_change_while_items_are_restored_stays() {
    let folder = Folder::new();
    let server = start(&folder, &["--memory=256MiB"]);
    fill(&server, 400_000, 0);
    stop(server);
    let server = start(&folder, &["--memory=256MiB"]);
    server.ask("SET key:399999 new\r\nDEL key:399998 key:0\r\nSET key:1 new\r\nDEL key:1");
    // Regression test: a removal that found nothing did not count, and the item came back.
    server.ask("GETDEL key:399997\r\nEXPIRE key:399996 -1\r\nGETEX key:399995 PXAT 1");
    wait_until("all items are restored", || info(&server, "restore_in_progress") == 0);
    assert_eq!(server.ask("GET key:399999"), "$3\r\nnew\r\n");
    assert_eq!(server.ask("EXISTS key:399998 key:0 key:1"), ":0\r\n");
    assert_eq!(server.ask("EXISTS key:399997 key:399996 key:399995"), ":0\r\n");
    assert!(info(&server, "restored_items") > 399_000);
    stop(server);
    let server = start(&folder, &["--memory=256MiB"]);
    server.ask("FLUSHALL");
    wait_until("nothing is restored any more", || info(&server, "restore_in_progress") == 0);
    assert_eq!(server.ask("DBSIZE"), ":0\r\n");
}

/// A server that is stopped before all items are restored restores the rest first.
#[test]
fn a_stop_while_items_are_restored_loses_none() {
    let folder = Folder::new();
    let server = start(&folder, &["--memory=256MiB"]);
    fill(&server, 400_000, 0);
    stop(server);
    stop(start(&folder, &["--memory=256MiB"]));
    let server = restart(&folder, &["--memory=256MiB"]);
    assert_eq!(server.ask("DBSIZE"), ":400000\r\n");
}

#[test]
fn damage_costs_only_what_is_damaged() {
    let folder = Folder::new();
    let server = start(&folder, &["--memory=64MiB"]);
    fill(&server, 50_000, 0);
    stop(server);
    let file = item_files(&folder).into_iter().next().expect("an item file");
    let file = fs::OpenOptions::new().write(true).open(file).expect("a file");
    file.write_all_at(b"damage", 1 << 19).expect("written");
    let mut server = restart(&folder, &["--memory=64MiB"]);
    let restored = info(&server, "restored_items");
    assert!((20_000..50_000).contains(&restored), "{restored}");
    assert_eq!(info(&server, "restore_skipped_items"), 50_000 - restored);
    let message = server.messages();
    assert!(message.contains("a part of the dump is not used"), "{message}");
    assert!(message.contains("items-") && message.contains(".log"), "{message}");
    server.signal(Signal::KILL);
    server.wait();
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    let arguments = ["--warm-restart=true", "--memory=16MiB", "--memcache=off"];
    let message = "--warm-restart: expected a folder for the items, found none; name one with \
                   --data-dir";
    folder.fails(&arguments, 2, message);
    fs::create_dir(folder.path("data")).expect("a folder");
    folder.file("data/items", "a file");
    let arguments = [&arguments[..], &["--data-dir=data", "--resp=127.0.0.1:0"]].concat();
    let run = folder.run_serve(&arguments, &[]);
    assert!(run.stderr.starts_with("nuthatch: --warm-restart: data/items: "), "{}", run.stderr);
    assert_eq!((run.status, run.stderr.lines().count()), (Some(3), 1), "{}", run.stderr);
}

/// The items of a server without a warm restart differ from those of an older dump.
#[test]
fn a_server_without_a_warm_restart_removes_the_dump() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    server.ask("SET key old");
    stop(server);
    let mut server = folder.serve(&["--data-dir=data"], &[]);
    server.ask("SET key new");
    let message = server.messages();
    assert!(
        message.contains(
            "the items in data-dir were removed, as neither disk nor warm-restart is set"
        ),
        "{message}"
    );
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let server = restart(&folder, &[]);
    assert_eq!(server.ask("DBSIZE"), ":0\r\n");
}

/// A start that fails, for example because of an address in use, loses nothing.
#[test]
fn a_start_that_fails_keeps_the_dump() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    server.ask("SET key value");
    stop(server);
    let other = folder.serve(&[], &[]);
    let taken = format!("--resp={}", other.addresses[0]);
    let arguments = [WARM, &[&taken, "--memory=16MiB", "--memcache=off"]].concat();
    assert_eq!(folder.run_serve(&arguments, &[]).status, Some(3));
    let server = restart(&folder, &[]);
    assert_eq!(server.ask("GET key"), "$5\r\nvalue\r\n");
}

/// On a busy machine, a short time can be over before the first items are written, so the time
/// grows until some are. It is always too short for all of them.
#[test]
fn items_that_do_not_fit_in_the_time_are_left_out_with_a_warning() {
    let mut restored = [100, 200, 400, 800].into_iter().map(restored_after_a_dump_of);
    let restored = restored.find(|&restored| restored > 0);
    assert!((1..800_000).contains(&restored.unwrap_or(0)), "{restored:?}");
}

/// Returns how many of 800,000 items a server has after one with this time for its dump.
fn restored_after_a_dump_of(ms: u32) -> u64 {
    let folder = Folder::new();
    let mut server = start(&folder, &["--memory=256MiB", &format!("--dump-ms={ms}")]);
    fill(&server, 800_000, 1000);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let message = server.messages();
    assert!(message.contains("the time for the dump is over: it lacks some items"), "{message}");
    let server = restart(&folder, &["--memory=256MiB"]);
    info(&server, "restored_items")
}

/// One record can have keys of up to 65,535 bytes. A longer one ended the dump.
#[test]
fn the_longest_key_costs_no_other_items() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    fill(&server, 1000, 0);
    let key = "k".repeat(65_536);
    let mut stream = server.connect();
    write!(stream, "*3\r\n$3\r\nSET\r\n$65536\r\n{key}\r\n$1\r\nv\r\n").expect("sent");
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"+OK\r\n");
    drop(stream);
    stop(server);
    let server = restart(&folder, &[]);
    assert_eq!(server.ask("DBSIZE"), ":1000\r\n");
}

/// A value that is being renewed is valid; one that is stale, or not computed yet, is not.
#[test]
fn only_valid_values_of_memcached_are_restored() {
    let folder = Folder::new();
    let memcache = ["--memcache=127.0.0.1:0"];
    let server = start(&folder, &memcache);
    let ask = |server: &Running, commands: &str| {
        let mut stream = TcpStream::connect(&server.addresses[1]).expect("a connection");
        write!(stream, "{commands}quit\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let answer = ask(&server, "ms renewed 1 T1000\r\n1\r\nmg renewed v R2000\r\n");
    assert_eq!(answer, "HD\r\nVA 1 W\r\n1\r\n");
    assert_eq!(ask(&server, "ms stale 1\r\n1\r\nmd stale I T1000\r\n"), "HD\r\nHD\r\n");
    assert_eq!(ask(&server, "mg computed v N1000\r\n"), "VA 0 W\r\n\r\n");
    stop(server);
    let server = restart(&folder, &memcache);
    assert_eq!(
        ask(&server, "mg renewed v\r\nmg stale v\r\nmg computed v\r\n"),
        "VA 1\r\n1\r\nEN\r\nEN\r\n"
    );
}

#[test]
fn a_file_with_a_damaged_header_is_left_out() {
    let folder = Folder::new();
    let server = start(&folder, &["--memory=64MiB"]);
    fill(&server, 50_000, 0);
    stop(server);
    let files = item_files(&folder);
    assert!(files.len() > 3, "{files:?}");
    let file = fs::OpenOptions::new().write(true).open(&files[1]).expect("a file");
    file.write_all_at(b"damage", 20).expect("written");
    let mut server = restart(&folder, &["--memory=64MiB"]);
    let restored = info(&server, "restored_items");
    assert!((30_000..50_000).contains(&restored), "{restored}");
    assert_eq!(info(&server, "restore_items"), restored, "those of the other files");
    let message = server.messages();
    assert!(message.contains("a part of the dump is not used"), "{message}");
    server.signal(Signal::KILL);
    server.wait();
}
