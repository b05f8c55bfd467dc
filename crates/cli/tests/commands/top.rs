//! `nuthatch top`, once and on a terminal.

use crate::folder::Folder;
use crate::server::Running;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::Child;

/// Starts a server with an admin endpoint.
fn watched(folder: &Folder) -> Running {
    folder.serve(&["--admin=127.0.0.1:0", "--memory=64MiB"], &[])
}

#[test]
fn one_sample_is_printed_where_there_is_no_terminal() {
    let folder = Folder::new();
    let server = watched(&folder);
    for words in ["SET k v", "GET k", "GET k", "GET nothing"] {
        server.ask(words);
    }
    for arguments in [&["top", &server.admin][..], &["top", &server.admin, "--once"]] {
        let run = folder.run(arguments);
        assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{run:?}");
        let title = format!("nuthatch {} at {}, up ", env!("CARGO_PKG_VERSION"), server.admin);
        assert!(run.stdout.starts_with(&title), "{run:?}");
        for expected in ["hits      66.7 %, ", "misses: absent ", " of 64.0 MiB", "p99.9"] {
            assert!(run.stdout.contains(expected), "{expected}: {}", run.stdout);
        }
        let get = run.stdout.lines().find(|line| line.starts_with("get ")).expect("a command");
        assert_eq!(get.split_ascii_whitespace().nth(3), Some("3"), "{get}");
        assert!(run.stdout.lines().all(|line| line.chars().count() <= 110), "{}", run.stdout);
    }
}

#[test]
fn a_sample_is_an_object_for_programs() {
    let folder = Folder::new();
    let server = watched(&folder);
    server.ask("GET nothing");
    let run = folder.run(&["top", &server.admin, "--json", "--interval", "100ms"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{run:?}");
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(value["commands"]["get"]["calls"], 1.0);
    assert_eq!(value["memory_limit_bytes"], f64::from(64 << 20));
    // Nothing happened between the two samples.
    assert_eq!((&value["requests_per_second"], &value["hit_ratio"]), (&0.0.into(), &().into()));
    assert!(value["over_seconds"].as_f64() < value["uptime_seconds"].as_f64(), "{value}");
}

#[test]
fn who_is_not_there_is_named_and_how_to_start_it() {
    let folder = Folder::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let free = free.expect("a free port").to_string();
    for address in [&free[..], "unix:nothing.sock"] {
        let run = folder.run(&["top", address, "--once"]);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
        let expected = format!("nuthatch: nothing listens at {address}: ");
        assert!(run.stderr.starts_with(&expected), "{run:?}");
        assert!(run.stderr.contains("nuthatch serve --admin"), "{run:?}");
    }
    assert_eq!(folder.run(&["top", "nowhere"]).status, Some(2));
    assert_eq!(folder.run(&["top", "--interval", "1ms"]).status, Some(2));
}

#[test]
fn another_server_is_an_error() {
    let folder = Folder::new();
    let server = watched(&folder);
    let run = folder.run(&["top", &server.addresses[0]]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.starts_with(&another(&server.addresses[0])), "{run:?}");
}

/// Returns the message about a server that is not the admin endpoint of a cache server.
fn another(address: &str) -> String {
    let expected = "expected the admin endpoint of nuthatch serve, found another server: ";
    format!("nuthatch: {address}: {expected}")
}

/// Starts a server that sends this response to each request.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            // One piece of the request is enough.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn another_server_is_reported_with_advice() {
    let folder = Folder::new();
    let metric = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nother_total 1\n";
    for (answer, found) in [
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "expected status 200, found 404"),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>", "found \"<html>\""),
        (metric, "expected nuthatch_uptime_seconds of a cache server, found none"),
        ("SSH-2.0-OpenSSH_9.6\r\n", ""),
        ("", ""),
    ] {
        let address = answering(answer);
        let run = folder.run(&["top", &address, "--once"]);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
        assert!(
            run.stderr.starts_with(&another(&address)) && run.stderr.contains(found),
            "{run:?}"
        );
        let advice = "; use the address of --admin of the cache server";
        assert!(run.stderr.contains(advice), "{run:?}");
    }
}

/// A pseudo-terminal. This process has the side of the user.
struct Terminal {
    person: File,
    program: OwnedFd,
    seen: String,
}

impl Terminal {
    fn new() -> Self {
        Self::sized(100, 24)
    }

    fn sized(ws_col: u16, ws_row: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let person = openpt(flags).expect("a terminal");
        grantpt(&person).expect("a terminal");
        unlockpt(&person).expect("a terminal");
        let name = ptsname(&person, Vec::new()).expect("a terminal");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let program = open(name, flags, Mode::empty()).expect("a terminal");
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&program, size).expect("a size");
        Self { person: person.into(), program, seen: String::new() }
    }

    /// Starts a command in the terminal.
    fn start(&self, folder: &Folder, arguments: &[&str]) -> Child {
        let file = || self.program.try_clone().expect("a terminal");
        let mut command = folder.command(arguments);
        command.stdin(file()).stdout(file()).stderr(file()).spawn().expect("the command to start")
    }

    /// Returns whether the terminal passes input by line, which is the default mode.
    fn is_ordinary(&self) -> bool {
        let modes = tcgetattr(&self.program).expect("its state").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Reads the screen until it has this text.
    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let mut piece = [0; 4096];
            let len = self.person.read(&mut piece).expect("something to see");
            assert_ne!(len, 0, "{:?}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&piece[..len]));
        }
    }
}

const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";

#[test]
fn a_terminal_is_restored() {
    let folder = Folder::new();
    let server = watched(&folder);
    // Two keys, and two signals.
    let ends = [Ok("q"), Ok("\u{3}"), Err(Signal::TERM), Err(Signal::INT)];
    for end in ends {
        let mut terminal = Terminal::new();
        let mut child = terminal.start(&folder, &["top", &server.admin, "--interval", "100ms"]);
        // Live: a second sample, and with it a second title.
        terminal.wait_for(ENTERED);
        terminal.wait_for("rates since its start");
        terminal.wait_for(", over ");
        assert!(!terminal.is_ordinary());
        match end {
            Ok(keys) => terminal.person.write_all(keys.as_bytes()).expect("typed"),
            Err(signal) => kill_process(Pid::from_child(&child), signal).expect("a signal"),
        }
        terminal.wait_for(LEFT);
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{end:?}");
        assert!(terminal.is_ordinary(), "{end:?}");
        assert!(terminal.seen.contains("\u{1b}[?25h"), "the cursor is there again");
    }
}

#[test]
fn a_server_that_stops_is_reported_on_the_screen() {
    let folder = Folder::new();
    let server = watched(&folder);
    let mut terminal = Terminal::new();
    let mut child = terminal.start(&folder, &["top", &server.admin, "--interval", "100ms"]);
    terminal.wait_for("rates since its start");
    drop(server);
    terminal.wait_for("these values are old: nothing listens at");
    terminal.person.write_all(b"q").expect("typed");
    terminal.wait_for(LEFT);
    assert!(child.wait().expect("it ends").success());
}

/// The command used a whole core for ever, and no signal but KILL ended it.
#[test]
fn the_end_of_the_terminal_ends_the_command() {
    let folder = Folder::new();
    let server = watched(&folder);
    let mut terminal = Terminal::new();
    let mut child = terminal.start(&folder, &["top", &server.admin, "--interval", "1h"]);
    terminal.wait_for("rates since its start");
    drop(terminal);
    child.wait().expect("it ends");
}

/// It presented the old token once a second, and so kept the new one out for good.
#[test]
fn a_token_that_was_replaced_is_presented_once_more_and_then_dropped() {
    let folder = Folder::new();
    let (old, new) = ("the-old-token-of-the-tests", "the-new-token-of-the-tests");
    folder.file("token", old).file("old", old).file("new", new);
    let server = folder.serve(&["--admin=127.0.0.1:0", "--admin-token-file=token"], &[]);
    let arguments = ["top", &server.admin, "--interval", "100ms", "--token-file", "old"];
    let mut terminal = Terminal::new();
    let mut child = terminal.start(&folder, &arguments);
    terminal.wait_for(", over ");
    folder.file("token", new);
    server.signal(Signal::HUP);
    terminal.wait_for("private values are hidden because the server refused the token: wrong");
    // Further samples, without the token.
    terminal.seen.clear();
    for _ in 0..8 {
        terminal.wait_for(", over ");
        terminal.seen.clear();
    }
    let shown = folder.run(&["top", &server.admin, "--json", "--token-file", "new"]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    terminal.person.write_all(b"q").expect("typed");
    child.wait().expect("it ends");
}

#[test]
fn a_token_that_is_refused_at_the_start_is_an_error() {
    let folder = Folder::new();
    folder.file("token", "the-new-token-of-the-tests").file("old", "the-old-token-of-the-tests");
    let server = folder.serve(&["--admin=127.0.0.1:0", "--admin-token-file=token"], &[]);
    let top = |mode, file| folder.run(&["top", &server.admin, mode, "--token-file", file]);
    for mode in ["--once", "--json", "--once", "--json", "--once"] {
        let run = top(mode, "old");
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
        let expected = format!("nuthatch: {}: wrong token: expected the one of ", server.admin);
        assert!(run.stderr.starts_with(&expected), "{run:?}");
    }
    let run = top("--once", "token");
    let expected = ": too many wrong tokens: try again in 10 seconds\n";
    assert!(run.status == Some(3) && run.stderr.ends_with(expected), "{run:?}");
}

/// The rest of the screen could not be seen.
#[test]
fn a_small_terminal_is_scrolled() {
    let folder = Folder::new();
    let server = watched(&folder);
    let mut terminal = Terminal::sized(40, 10);
    let mut child = terminal.start(&folder, &["top", &server.admin, "--interval", "1h"]);
    terminal.wait_for("; PgDn, arrows: more");
    for (keys, expected) in
        [("\t", "hot keys"), ("\u{1b}[F", "private values are hidden: --token-file\u{2026}")]
    {
        terminal.person.write_all(keys.as_bytes()).expect("typed");
        terminal.wait_for(expected);
    }
    terminal.person.write_all(b"q").expect("typed");
    assert!(child.wait().expect("it ends").success());
}
