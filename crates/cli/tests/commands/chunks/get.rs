//! `nuthatch chunks get`, from an origin that misbehaves.

use super::origin::{Server, noise};
use crate::folder::{Folder, Run};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

const LEN: usize = 3_500_000;

fn arguments<'a>(address: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["chunks", "get", address, "--cache", "cache", "--limit", "64MiB"], more].concat()
}

fn get(folder: &Folder, address: &str, more: &[&str]) -> Run {
    folder.run(&arguments(address, more))
}

#[track_caller]
fn gets(folder: &Folder, address: &str, more: &[&str], expected: &[u8]) -> String {
    let run = get(folder, address, more);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(run.stdout_bytes == expected, "{} bytes", run.stdout_bytes.len());
    run.stderr
}

#[track_caller]
fn fails(folder: &Folder, address: &str, more: &[&str], status: i32) -> String {
    let run = get(folder, address, &[&["--retries", "0", "-o", "out"], more].concat());
    assert_eq!((run.status, &run.stdout[..]), (Some(status), ""), "{}", run.stderr);
    assert_eq!(names(folder), [""; 0], "no half file is left behind");
    run.stderr
}

/// Returns the names of files outside the cache.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path(".")).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    names.map(|name| name.expect("UTF-8")).filter(|name| name != "cache").collect()
}

#[test]
fn the_second_time_nothing_is_fetched() {
    let (folder, body) = (Folder::new(), noise(LEN, 1));
    let server = Server::new(body.clone());
    let message = gets(&folder, &server.url("/a"), &["-o", "out"], b"");
    assert!(folder.bytes("out") == body);
    let head = format!("nuthatch: {}: 3.3 MiB, 0 B from the cache, ", server.url("/a"));
    assert!(message.contains(&head), "{message}");
    server.clear_requests();
    let message = gets(&folder, &server.url("/a"), &[], &body);
    assert!(server.ranges().is_empty());
    assert!(
        message.contains("3.3 MiB from the cache, 0 B from the origin in 0 requests"),
        "{message}"
    );
    assert_eq!(gets(&folder, &server.url("/a"), &["--quiet"], &body), "");
    assert_eq!(names(&folder), ["out"]);
}

#[test]
fn parts_are_read() {
    let (folder, body) = (Folder::new(), noise(LEN, 2));
    let server = Server::new(body.clone());
    for (range, expected) in [
        ("10-20", &body[10..20]),
        ("1MiB-1MiB", &[]),
        ("1500000-99999999", &body[1_500_000..]),
        ("3499990-", &body[3_499_990..]),
        ("-7", &body[LEN - 7..]),
        ("-1GiB", &body),
    ] {
        gets(&folder, &server.url("/a"), &["--range", range], expected);
        gets(&folder, &server.url("/a"), &[&format!("--range={range}")], expected);
    }
    let message = fails(&folder, &server.url("/a"), &["--range", "4MiB-"], 3);
    assert!(
        message.contains("--range: expected a range that begins within 0-3500000"),
        "{message}"
    );
    fails(&folder, &server.url("/a"), &["--range", "7-3"], 2);
}

#[test]
fn a_summary_is_json_if_wanted() {
    let folder = Folder::new();
    let server = Server::new(noise(LEN, 3));
    let address = server.url("/a?token=s3cret");
    let part = ["--range", "0-100", "--json"];
    let message = get(&folder, &address, &part).stderr;
    let json: Value = serde_json::from_str(&message).expect("a JSON object");
    assert_eq!((&json["bytes"], &json["object_bytes"]), (&100.into(), &LEN.into()));
    assert_eq!((&json["from_origin_bytes"], &json["requests"]), (&100.into(), &1.into()));
    let run = get(&folder, &address, &[&part[..], &["-o", "out"]].concat());
    let json: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&json["from_cache_bytes"], &json["requests"]), (&100.into(), &0.into()));
    assert!(json["hit_share"] == 1.0 && !run.stdout.contains("s3cret"), "{json}");
    assert_eq!(run.stderr, "");
    // The address is known without its secrets, and with them.
    assert_eq!(folder.run(&["chunks", "pin", &address, "--cache", "cache"]).status, Some(0));
}

#[test]
fn damaged_blocks_are_fetched_again_and_a_new_version_is_read() {
    let (folder, body) = (Folder::new(), noise(LEN, 4));
    let server = Server::new(body.clone());
    gets(&folder, &server.url("/a"), &[], &body);
    let segment = "cache/0000000000000001.seg";
    let mut bytes = folder.bytes(segment);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.file(segment, bytes);
    server.clear_requests();
    gets(&folder, &server.url("/a"), &[], &body);
    assert_eq!(server.ranges().len(), 1, "one block was fetched again");
    let verified = folder.run(&["chunks", "verify", "--cache", "cache"]);
    assert_eq!(verified.status, Some(0), "{}", verified.stderr);
    let newer = noise(LEN, 5);
    server.configure(|behaviour| {
        behaviour.body = Arc::new(newer.clone());
        behaviour.etag = Some("\"two\"".to_owned());
    });
    gets(&folder, &server.url("/a"), &[], &newer);
}

#[test]
fn a_change_in_the_midst_is_an_error() {
    let folder = Folder::new();
    let server = Server::new(noise(40 << 20, 6));
    let newer = (1, Arc::new(noise(40 << 20, 7)), "\"two\"".to_owned());
    server.configure(|behaviour| behaviour.changes_after = Some(newer));
    let message = fails(&folder, &server.url("/a"), &[], 3);
    assert!(message.contains("changed since it was opened: it was \"one\""), "{message}");
}

/// Regression test: the help claimed 1 MiB for each limit, and omitted the chunks of metadata.
#[test]
fn a_small_folder_has_blocks_of_an_eighth_of_its_limit() {
    let (folder, body) = (Folder::new(), noise(LEN, 1));
    let server = Server::new(body.clone());
    let url = server.url("/a");
    let range = ["--cache", "cache", "--limit", "4MiB", "--range", "0-1KiB", "--json", "-o", "out"];
    let run = folder.run(&[&["chunks", "get", &url], &range[..]].concat());
    assert_eq!(run.status, Some(0), "{run:?}");
    let summary: Value = serde_json::from_str(&run.stdout).expect("a JSON object");
    assert_eq!((&summary["bytes"], &summary["fetched_bytes"]), (&1024.into(), &(512 << 10).into()));
    assert_eq!((&summary["hit_share"], &summary["not_kept_by_cause"]), (&0.0.into(), &json!({})));
    let json = |command| -> Value {
        let run = folder.run(&["chunks", command, "--cache", "cache", "--json"]);
        serde_json::from_str(&run.stdout).expect("a JSON object")
    };
    let (stat, listed) = (json("stat"), json("list"));
    let metadata = stat["chunks"].as_u64().zip(listed["chunks"].as_u64()).map(|(all, of)| all - of);
    assert!(matches!(metadata, Some(1..=2)), "{stat} {listed}");
    assert!(stat["max_chunks"].as_u64() > Some(100), "{stat}");
}

#[test]
fn a_failed_get_leaves_no_file() {
    let folder = Folder::new();
    let server = Server::new(noise(LEN, 8));
    server.configure(|behaviour| behaviour.statuses = [404].into());
    let message = fails(&folder, &server.url("/a"), &[], 1);
    assert_eq!(message, format!("nuthatch: {}: there is no such object\n", server.url("/a")));
    server.configure(|behaviour| behaviour.cuts = vec![1000; 50].into());
    fails(&folder, &server.url("/a"), &[], 3);
    let message = fails(&folder, "http://127.0.0.1:1/a", &[], 3);
    assert!(message.contains("http://127.0.0.1:1/a: no response from the origin: "), "{message}");
    fails(&folder, "gopher://host/a", &[], 3);
    folder.file("cache/a-file", "");
    let run = get(&folder, &server.url("/a"), &["-o", "cache"]);
    assert_eq!(run.status, Some(2), "{}", run.stderr);
}

#[test]
fn objects_that_do_not_fit_into_the_cache_are_read() {
    let (folder, body) = (Folder::new(), noise(12 << 20, 9));
    let server = Server::new(body.clone());
    let small = ["chunks", "get", &server.url("/a"), "--cache", "cache", "--limit", "4MiB"];
    for _ in 0..2 {
        let run = folder.run(&small);
        assert_eq!(run.status, Some(0), "{}", run.stderr);
        assert!(run.stdout_bytes == body);
    }
    let size = |entry: fs::DirEntry| entry.metadata().expect("a file").len();
    let sizes = fs::read_dir(folder.path("cache")).expect("a folder").map(|e| e.map(size));
    assert!(sizes.sum::<Result<u64, _>>().expect("sizes") <= 4 << 20);
}

#[test]
fn links_are_followed_and_devices_written_to() {
    let (folder, body) = (Folder::new(), noise(LEN, 10));
    let server = Server::new(body.clone());
    folder.file("target", "old");
    std::os::unix::fs::symlink("target", folder.path("link")).expect("a link");
    gets(&folder, &server.url("/a"), &["-o", "link"], b"");
    assert!(folder.path("link").is_symlink() && folder.bytes("target") == body);
    gets(&folder, &server.url("/a"), &["-o", "/dev/null"], b"");
    assert!(!Path::new("/dev/null").is_file());
    gets(&folder, &server.url("/a"), &["-o", "-"], &body);
}

#[test]
fn secrets_are_never_printed_or_stored() {
    let folder = Folder::new();
    let server = Server::new(noise(LEN, 11));
    let address = server.url("/a?X-Amz-Signature=s3cret&X-Amz-Date=1&key=s3cret");
    let address = address.replace("http://", "http://me:s3cret@");
    gets(&folder, &address, &["-o", "out"], b"");
    server.configure(|behaviour| behaviour.statuses = vec![500; 9].into());
    let message = get(&folder, &address, &["--retries", "0"]).stderr;
    assert!(
        message.contains("the origin responded with 500") && !message.contains("s3cret"),
        "{message}"
    );
    let message = folder.run(&["chunks", "list", "--cache", "cache"]).stdout;
    assert!(message.contains("http://127.0.0.1:") && !message.contains("s3cret"), "{message}");
    for entry in fs::read_dir(folder.path("cache")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).expect("a file");
        assert!(!bytes.windows(6).any(|window| window == b"s3cret"), "{}", path.display());
    }
}

#[test]
fn headers_and_passwords_come_from_files() {
    let folder = Folder::new();
    let body = noise(LEN, 12);
    let server = Server::new(body.clone());
    let basic = "Basic bWU6czNjcmV0".to_owned();
    server.configure(|behaviour| {
        behaviour.required_header = Some(("authorization".into(), basic.clone()));
    });
    let (address, nothing) = (server.url("/a"), "empty");
    folder.file(nothing, "");
    let run = |netrc: &str, more: &[&str]| {
        let mut command = folder.command(&arguments(&address, more));
        command.env("NETRC", folder.path(netrc));
        Run::of(command, b"")
    };
    folder.file("netrc", "machine 127.0.0.1 login me password s3cret");
    assert!(run("netrc", &[]).stdout_bytes == body);
    assert_eq!(run(nothing, &[]).status, Some(3));
    folder.file("shown", format!("\nAuthorization: {basic}\n"));
    for (mode, warned) in [(0o644, true), (0o600, false)] {
        folder.mode("shown", mode);
        let shown = run(nothing, &["--header", "@shown"]);
        assert!(shown.stdout_bytes == body, "{}", shown.stderr);
        assert_eq!(shown.stderr.contains("warning: shown"), warned, "{}", shown.stderr);
    }
    let header = format!("authorization:{basic}");
    assert!(run(nothing, &["--header", "X-One: 1", "--header", &header]).stdout_bytes == body);
    assert_eq!(server.requests().last().expect("a request").headers["x-one"], "1");
    folder.file("wrong", "X-One: 1\ns3cret\n");
    for (header, status, said) in [
        ("s3cret", 2, "--header 1: expected NAME: VALUE"),
        ("s3 cret: 1", 2, "--header 1: expected the name of a header"),
        ("@wrong", 3, "wrong, line 2: expected NAME: VALUE"),
        ("@none", 3, "none: "),
    ] {
        let message = run(nothing, &["--header", header]);
        assert_eq!(message.status, Some(status), "{}", message.stderr);
        assert!(
            message.stderr.contains(said) && !message.stderr.contains("cret"),
            "{}",
            message.stderr
        );
    }
}

/// Starts a copy that waits for its origin.
fn waiting(folder: &Folder, server: &Server) -> Child {
    server.configure(|behaviour| behaviour.holds_bodies = true);
    let mut command = folder.command(&arguments(&server.url("/a"), &["-o", "out"]));
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().expect("the command to start");
    server.wait_for_requests(0, 1);
    child
}

#[test]
fn an_interrupt_leaves_no_file() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = Folder::new();
        let server = Server::new(noise(LEN, 12));
        let child = waiting(&folder, &server);
        assert_eq!(names(&folder), [format!("out.partial-{}", child.id())]);
        kill_process(Pid::from_child(&child), signal).expect("a signal");
        let output = child.wait_with_output().expect("its end");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "nuthatch: interrupted\n");
        assert_eq!(names(&folder), [""; 0]);
        server.configure(|behaviour| behaviour.holds_bodies = false);
    }
}

#[test]
fn leftovers_of_killed_copies_are_removed_and_running_copies_are_not() {
    let folder = Folder::new();
    let server = Server::new(noise(LEN, 14));
    let mut killed = waiting(&folder, &server);
    killed.kill().expect("a signal");
    killed.wait().expect("its end");
    let left = format!("out.partial-{}", killed.id());
    assert_eq!(names(&folder), std::slice::from_ref(&left));
    let running = waiting(&folder, &server);
    let begun = format!("out.partial-{}", running.id());
    while names(&folder).contains(&left) {
        std::thread::yield_now();
    }
    server.configure(|behaviour| behaviour.holds_bodies = false);
    gets(&folder, &server.url("/b"), &["-o", "out"], b"");
    let output = running.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(0), "{begun} was not removed");
    assert_eq!(names(&folder), ["out"]);
}

/// Opens a pseudo-terminal. Returns the side of the user, and a function that opens the other side.
pub(super) fn terminal() -> (fs::File, impl Fn() -> fs::File) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let name = ptsname(&terminal, Vec::new()).expect("a terminal");
    let open = move || {
        let name = name.to_str().expect("UTF-8");
        fs::File::options().read(true).write(true).open(name).expect("a terminal")
    };
    (fs::File::from(terminal), open)
}

#[test]
fn binary_data_is_not_written_to_a_terminal() {
    let folder = Folder::new();
    let (mut terminal, open) = terminal();
    let held = open();
    let run = |server: &Server| {
        let mut command = folder.command(&arguments(&server.url("/a"), &[]));
        command.stdout(open()).stderr(Stdio::piped());
        let output = command.output().expect("its end");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (status, message) = run(&Server::new(noise(LEN, 13)));
    assert_eq!(status, Some(2), "{message}");
    assert!(message.contains("the object is not text; -o FILE writes it to a file"), "{message}");
    let (status, message) = run(&Server::new(b"a text\n".to_vec()));
    assert_eq!(status, Some(0), "{message}");
    let mut shown = [0; 8];
    terminal.read_exact(&mut shown).expect("the text");
    assert_eq!(&shown, b"a text\r\n");
    drop(held);
}
