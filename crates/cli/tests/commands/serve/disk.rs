//! A server whose evicted items go to disk.

use crate::folder::Folder;
use crate::server::{Running, wait_until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// The number of items, of which most leave the memory.
const ITEMS: usize = 15_000;

const DISK: &[&str] = &["--data-dir=data", "--memory=16MiB", "--disk=128MiB", "--disk-full=wait"];

fn start(folder: &Folder, more: &[&str]) -> Running {
    folder.serve(&[DISK, more].concat(), &[])
}

/// Starts a server and waits until it has recovered the items of the last one.
fn restart(folder: &Folder) -> Running {
    let server = start(folder, &["--log=info"]);
    let is_recovered = || server.messages().contains("the items on disk are recovered");
    wait_until("all items are recovered", is_recovered);
    server
}

fn value(number: usize) -> String {
    format!("{number:02000}")
}

fn bulk(value: &str) -> String {
    format!("${}\r\n{value}\r\n", value.len())
}

/// Returns a command as an array, without the end of the last line.
fn array(arguments: &[String]) -> String {
    let mut command = format!("*{}\r\n", arguments.len());
    command.extend(arguments.iter().map(|argument| bulk(argument)));
    command.trim_end().to_owned()
}

/// Stores short numbers, and then so many long items that all of the former go to disk.
fn fill(server: &Running, folder: &Folder) {
    let mut commands = String::new();
    for number in 0..200 {
        // Writing to a string cannot fail.
        let _ = write!(commands, "SET n:{number} {number}\r\n");
    }
    for number in 0..ITEMS {
        // `NX` reads an item on disk whose hash resembles that of the key, and keeps it.
        let _ = write!(commands, "SET key:{number} {} NX\r\n", value(number));
    }
    assert!(server.ask(commands.trim_end()) == "+OK\r\n".repeat(ITEMS + 200));
    let files = fs::read_dir(folder.path("data/items")).expect("a folder").map(|entry| {
        let path = entry.expect("an entry").path();
        path.to_string_lossy().contains("items-")
    });
    // Each has 2 MiB of items.
    let sealed = files.filter(|is_items| *is_items).count().saturating_sub(1);
    assert!(sealed >= 4, "most items are on disk, found {sealed} item files");
}

/// Runs a command for items on disk and compares the answer.
#[track_caller]
fn check(server: &Running, commands: &str, expected: &str) {
    assert_eq!(server.ask(commands), expected, "{commands}");
}

fn check_commands(server: &Running) {
    check(server, "GET n:0", "$1\r\n0\r\n");
    check(server, "MGET n:1 n:2 absent n:3", "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n$1\r\n3\r\n");
    check(server, "STRLEN n:100", ":3\r\n");
    check(server, "GETRANGE n:101 1 2", "$2\r\n01\r\n");
    check(server, "APPEND n:4 x\r\nGET n:4", ":2\r\n$2\r\n4x\r\n");
    check(server, "SETRANGE n:5 1 yz\r\nGET n:5", ":3\r\n$3\r\n5yz\r\n");
    check(server, "INCR n:6\r\nDECRBY n:7 10", ":7\r\n:-3\r\n");
    check(server, "GETDEL n:8\r\nGET n:8", "$1\r\n8\r\n$-1\r\n");
    check(server, "GETSET n:9 new\r\nGET n:9", "$1\r\n9\r\n$3\r\nnew\r\n");
    check(server, "SET n:10 a NX\r\nSET n:11 a XX\r\nGET n:11", "$-1\r\n+OK\r\n$1\r\na\r\n");
    check(server, "SET n:12 a GET\r\nGET n:12", "$2\r\n12\r\n$1\r\na\r\n");
    check(server, "EXPIRE n:13 1000\r\nTTL n:13", ":1\r\n:1000\r\n");
    check(server, "SET n:13 a KEEPTTL\r\nTTL n:13\r\nPERSIST n:13", "+OK\r\n:1000\r\n:1\r\n");
    check(server, "EXISTS n:14 n:15 absent n:14", ":3\r\n");
    check(server, "DEL n:16 n:17 absent\r\nEXISTS n:16 n:17", ":2\r\n:0\r\n");
    check(server, "RENAME n:18 other\r\nGET other\r\nEXISTS n:18", "+OK\r\n$2\r\n18\r\n:0\r\n");
    check(server, "COPY n:19 copy\r\nMGET copy n:19", ":1\r\n*2\r\n$2\r\n19\r\n$2\r\n19\r\n");
    check(server, "RENAME n:20 n:21\r\nGET n:21", "+OK\r\n$2\r\n20\r\n");
    check(server, "TOUCH n:22 n:23 absent", ":2\r\n");
    check(server, "MSETNX absent 1 n:24 2\r\nGET absent\r\nGET n:24", ":0\r\n$-1\r\n$2\r\n24\r\n");
    check(server, "MSET n:25 a n:26 b\r\nMGET n:25 n:26", "+OK\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    check(server, "BITCOUNT n:27", ":8\r\n");
    let transaction = "WATCH n:28\r\nMULTI\r\nINCR n:28\r\nGET n:29\r\nEXEC";
    let expected = "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:29\r\n$2\r\n29\r\n";
    check(server, transaction, expected);
    let conflict = "WATCH n:30\r\nSET n:30 x\r\nMULTI\r\nGET n:31\r\nEXEC\r\nGET n:31";
    check(server, conflict, "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n$2\r\n31\r\n");
    assert!(server.ask("RANDOMKEY").starts_with('$'));
}

/// Sends a pipeline of items on disk, in memory and missing ones. The replies are in order.
fn check_order(server: &Running) {
    let (mut commands, mut expected) = (String::new(), String::new());
    for at in 0..600 {
        let number = at * 7919 % ITEMS;
        let _ = write!(commands, "GET key:{number}\r\nGET absent:{number}\r\nPING\r\n");
        let _ = write!(expected, "{}$-1\r\n+PONG\r\n", bulk(&value(number)));
    }
    assert!(server.ask(commands.trim_end()) == expected);
}

/// Asks over the protocol of memcached.
fn ask_memcached(server: &Running, commands: &str) -> String {
    let mut stream = TcpStream::connect(&server.addresses[1]).expect("a connection");
    write!(stream, "{commands}quit\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn check_memcached(server: &Running) {
    let check = |commands: &str, expected: &str| {
        assert_eq!(ask_memcached(server, commands), expected, "{commands}");
    };
    check("get n:50 absent n:51\r\n", "VALUE n:50 0 2\r\n50\r\nVALUE n:51 0 2\r\n51\r\nEND\r\n");
    check("add n:52 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    check("append n:53 0 0 1\r\nx\r\nget n:53\r\n", "STORED\r\nVALUE n:53 0 3\r\n53x\r\nEND\r\n");
    check("incr n:54 5\r\n", "59\r\n");
    check("touch n:55 100\r\ndelete n:55\r\nget n:55\r\n", "TOUCHED\r\nDELETED\r\nEND\r\n");
    check("mg n:56 v\r\n", "VA 2\r\n56\r\n");
    let gets = ask_memcached(server, "gets n:57\r\n");
    let cas = gets.lines().next().and_then(|line| line.split(' ').nth(4)).expect("a number");
    check(&format!("cas n:57 0 0 1 {cas}\r\na\r\n"), "STORED\r\n");
    check(&format!("cas n:57 0 0 1 {cas}\r\nb\r\n"), "EXISTS\r\n");
}

#[test]
fn commands_find_items_on_disk() {
    for event_loop in ["epoll", "auto"] {
        for threads in ["--threads=1", "--threads=2"] {
            let folder = Folder::new();
            let event_loop = format!("--event-loop={event_loop}");
            let server = start(&folder, &[&event_loop, threads, "--memcache=127.0.0.1:0"]);
            fill(&server, &folder);
            check_commands(&server);
            check_memcached(&server);
            check_order(&server);
            // A client that leaves while its reads are under way.
            for number in 0..50 {
                let mut stream = server.connect();
                write!(stream, "MGET key:{number} key:{}\r\n", number + 100).expect("sent");
            }
            check_order(&server);
            check(&server, "FLUSHALL\r\nDBSIZE\r\nGET key:1", "+OK\r\n:0\r\n$-1\r\n");
        }
    }
}

/// SIGTERM keeps all items, and those of the memory.
#[test]
fn a_stop_keeps_all_items() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    fill(&server, &folder);
    check(&server, "DEL key:7 key:14999\r\nSET key:8 new", ":2\r\n+OK\r\n");
    let (status, messages) = server.stop();
    assert_eq!((status, messages.as_str()), (Some(0), ""));
    let server = restart(&folder);
    let found = server.ask("DBSIZE");
    let found: usize = found.trim_start_matches(':').trim_end().parse().expect("a number");
    assert!((ITEMS + 190..=ITEMS + 198).contains(&found), "{found}");
    check(&server, "EXISTS key:7 key:14999\r\nGET key:8", ":0\r\n$3\r\nnew\r\n");
    assert!(server.ask("GET key:14998") == bulk(&value(14_998)));
}

/// What was acknowledged holds after kill -9: nothing that was removed or replaced comes back.
#[test]
fn nothing_comes_back_after_kill() {
    let folder = Folder::new();
    for round in 0..4 {
        let mut server = if round > 0 { restart(&folder) } else { start(&folder, &[]) };
        if round > 0 {
            let mut exist = String::from("MGET");
            (0..2000).step_by(2).for_each(|number| {
                let _ = write!(exist, " key:{number}");
            });
            assert!(server.ask(&exist) == format!("*1000\r\n{}", "$-1\r\n".repeat(1000)));
            for number in (1..2000).step_by(20) {
                let found = server.ask(&format!("GET key:{number}"));
                let expected = format!("$5\r\nnew:{}\r\n", round - 1);
                assert!(found == "$-1\r\n" || found == expected, "{number}: {found}");
            }
        }
        check(&server, "FLUSHALL", "+OK\r\n");
        fill(&server, &folder);
        let mut commands = String::new();
        for number in 0..2000 {
            let _ = match number % 2 {
                0 => write!(commands, "DEL key:{number}\r\n"),
                _ => write!(commands, "SET key:{number} new:{round}\r\n"),
            };
        }
        // A `SET` may remove another item on disk whose hash resembles that of its key.
        let answer = server.ask(commands.trim_end()).replace(":0", ":1");
        assert_eq!(answer, ":1\r\n+OK\r\n".repeat(1000));
        // The server is killed while it writes.
        let mut stream = server.connect();
        for number in 0..500 {
            write!(stream, "SET load:{number} {}\r\n", value(number)).expect("sent");
        }
        server.signal(Signal::KILL);
        server.wait();
    }
}

/// A request that needs more items than memory has room for fails, and harms no other.
#[test]
fn a_request_for_more_items_than_fit_in_memory_fails() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    fill(&server, &folder);
    let keys: Vec<_> = (0..ITEMS).map(|number| format!("key:{number}")).collect();
    let before = server.ask("DBSIZE");
    for command in ["MGET", "UNLINK"] {
        let answer = server.ask(&array(&[&[command.to_owned()], &keys[..]].concat()));
        let errors = ["-OOM ", "-ERR the reply is longer than the free memory"];
        let is_error = errors.iter().any(|error| answer.starts_with(error));
        assert!(is_error, "{command}: {}", &answer[..answer.len().min(200)]);
        assert_eq!(server.ask("DBSIZE"), before, "a part of {command} was executed");
    }
    assert!(server.ask("GET key:3") == bulk(&value(3)));
    let expected: String = (0..2000).map(|number| bulk(&value(number))).collect();
    let some = array(&[&["MGET".to_owned()], &keys[..2000]].concat());
    assert!(server.ask(&some) == format!("*2000\r\n{expected}"));
}

#[test]
fn a_scan_finds_items_on_disk() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    fill(&server, &folder);
    let (mut cursor, mut found) = ("0".to_owned(), BTreeSet::new());
    loop {
        let answer = server.ask(&format!("SCAN {cursor} COUNT 500"));
        let mut lines = answer.split("\r\n");
        cursor = lines.nth(2).expect("a cursor").to_owned();
        found.extend(lines.skip(2).step_by(2).filter(|key| !key.is_empty()).map(str::to_owned));
        if cursor == "0" {
            break;
        }
    }
    let expected = (0..200).map(|number| format!("n:{number}"));
    let expected = expected.chain((0..ITEMS).map(|number| format!("key:{number}")));
    let missing: Vec<_> = expected.filter(|key| !found.contains(key)).collect();
    // A short value that was stored without `NX` may have removed another one.
    assert!(missing.len() < 5, "{missing:?}");
}

/// With a smaller disk than before, the oldest items are removed, and the others are found.
#[test]
fn a_smaller_disk_keeps_the_newest_items() {
    let folder = Folder::new();
    let server = start(&folder, &[]);
    fill(&server, &folder);
    server.stop();
    let smaller = ["--data-dir=data", "--memory=16MiB", "--disk=20MiB"];
    let server = folder.serve(&smaller, &[]);
    wait_until("all items are recovered", || server.ask("INFO").contains("disk_recovering:0"));
    let files = fs::read_dir(folder.path("data/items")).expect("a folder");
    let bytes: u64 = files.map(|file| file.expect("a file").metadata().expect("one").len()).sum();
    assert!(bytes <= 20 << 20, "{bytes}");
    let newest = (ITEMS - 2000..ITEMS).filter(|number| {
        let found = server.ask(&format!("GET key:{number}"));
        assert!(found == "$-1\r\n" || found == bulk(&value(*number)), "{number}");
        found != "$-1\r\n"
    });
    let newest = newest.count();
    assert!(newest > 1000, "{newest} of the newest 2000");
}

#[test]
fn a_client_of_mrcache_finds_items_on_disk() {
    let folder = Folder::new();
    let server = start(&folder, &["--mrcache=127.0.0.1:0"]);
    fill(&server, &folder);
    let mut stream = TcpStream::connect(&server.addresses[1]).expect("a connection");
    for number in 100..150 {
        let (key, expected) = (format!("n:{number}"), number.to_string());
        stream
            .write_all(&[0, 1, 5, 0])
            .and_then(|()| stream.write_all(key.as_bytes()))
            .expect("sent");
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!((&answer[..4], &answer[4..]), (&[3, 0, 0, 0][..], expected.as_bytes()));
    }
}

/// Long values make room for each other: nothing is refused or lost, although only a few fit in
/// memory together.
#[test]
fn long_values_wait_for_the_disk() {
    for len in [300_000, 3_000_000, 9_000_000] {
        let folder = Folder::new();
        let server = start(&folder, &["--threads=1"]);
        let count = (60_000_000 / len).min(12);
        let value = |number: usize| format!("{number:09}").repeat(len / 9);
        for number in 0..count {
            let set = array(&["SET".to_owned(), format!("long:{number}"), value(number)]);
            assert_eq!(server.ask(&set), "+OK\r\n", "{number} of {len} bytes");
        }
        for number in 0..count {
            let found = server.ask(&format!("GET long:{number}"));
            assert!(found == bulk(&value(number)), "{number} of {len} bytes: {}", found.len());
        }
    }
}

/// A client that has the reply to its write must not find the old value after a crash. Long replies
/// are sent while the server still executes the requests after them.
#[test]
fn no_reply_is_sent_before_the_old_value_is_removed() {
    let folder = Folder::new();
    for round in 0..3 {
        let mut server = if round > 0 { restart(&folder) } else { start(&folder, &[]) };
        if round == 0 {
            fill(&server, &folder);
        }
        check(&server, &format!("SET long {:060000}", 0), "+OK\r\n");
        let mut stream = server.connect();
        let pipeline = [
            format!("SET key:{round} new\r\n"),
            "GET long\r\n".repeat(4),
            "BITCOUNT long\r\n".repeat(1000),
        ];
        stream.write_all(pipeline.concat().as_bytes()).expect("sent");
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).expect("a reply");
        server.signal(Signal::KILL);
        server.wait();
        assert_eq!(&reply, b"+OK\r\n");
        let server = restart(&folder);
        let found = server.ask(&format!("GET key:{round}"));
        assert!(["$-1\r\n", "$3\r\nnew\r\n"].contains(&&*found), "round {round}: {found}");
        server.stop();
    }
}

/// A server without a disk tier restores the items, and does not record which it changes.
#[test]
fn items_do_not_come_back_after_a_warm_restart_without_a_disk() {
    // Restoring these takes longer than a client needs to change one of them.
    const ITEMS: usize = 300_000;
    let folder = Folder::new();
    let with_disk = ["--data-dir=data", "--memory=64MiB", "--disk=128MiB"];
    let without_disk = ["--data-dir=data", "--memory=64MiB", "--warm-restart=true"];
    let server = folder.serve(&with_disk, &[]);
    let mut commands = String::new();
    for number in 0..ITEMS {
        let _ = write!(commands, "SET n:{number} old\r\n");
    }
    assert!(server.ask(commands.trim_end()) == "+OK\r\n".repeat(ITEMS));
    server.stop();
    let mut server = folder.serve(&without_disk, &[]);
    server.ask("DEL n:0\r\nSET n:1 new");
    server.signal(Signal::KILL);
    server.wait();
    let server = folder.serve(&with_disk, &[]);
    wait_until("no item is recovered", || server.ask("INFO").contains("disk_recovering:0"));
    check(&server, "EXISTS n:0 n:1 n:2", ":0\r\n");
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    let data = "--data-dir=data";
    folder.fails(&["--disk=1MiB", data], 2, "--disk: expected 0 or at least 16MiB");
    folder.fails(
        &["--disk=64MiB"],
        2,
        "--disk: expected a folder for the items, found none; name one with --data-dir",
    );
    folder.fails(
        &["--disk=64MiB", data, "--eviction=none"],
        2,
        "--disk: expected --eviction s3fifo, found none: items go to disk when they are evicted",
    );
}

/// Regression test: the server waited for a write that the disk did not complete, and `timeout`
/// closed clients that waited for the disk.
#[test]
fn a_stalled_disk_closes_no_waiting_client_and_delays_no_second_signal() {
    let folder = Folder::new();
    let own = ["serve", "--resp=127.0.0.1:0", "--memcache=off", "--admin=off", "--timeout=1s"];
    let arguments = [&own[..], DISK].concat();
    folder.file("stall", "");
    let mut server = folder.start(folder.preloaded(&arguments, &[("PRELOAD_STALL", "stall")]));
    let mut client = server.connect();
    let start = Instant::now();
    let writer = thread::spawn(move || {
        let sets = (0..ITEMS).map(|number| format!("SET key:{number} {}\r\n", value(number)));
        client.write_all(sets.collect::<String>().as_bytes())
    });
    wait_until("more than the timeout", || start.elapsed() >= Duration::from_secs(3));
    assert!(!writer.is_finished(), "{:?}", writer.join());
    // Two of one kind could be taken for one.
    server.signal(Signal::TERM);
    server.signal(Signal::INT);
    assert_eq!(server.wait_until_ended(), Some(0));
    assert!(writer.join().expect("no panic").is_err());
}
