//! `nuthatch doctor` on the machine of the test.

use crate::folder::Folder;
use serde_json::Value;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// Runs the command with addresses that are free. Returns its exit status and its findings.
fn findings(folder: &Folder, settings: &str) -> (Option<i32>, Vec<Value>) {
    folder.file("nuthatch.toml", settings);
    let run = folder.run(&["doctor", "--config", "nuthatch.toml", "--json"]);
    assert_eq!(run.stderr, "", "{run:?}");
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    (run.status, value["findings"].as_array().expect("an array").clone())
}

fn finding<'v>(findings: &'v [Value], name: &str) -> &'v Value {
    findings.iter().find(|finding| finding["name"] == name).expect(name)
}

#[test]
fn a_machine_is_examined_for_the_settings_of_a_server() {
    let folder = Folder::new();
    let free = "resp = [\"127.0.0.1:0\"]\nmemcache = [\"off\"]\nadmin = [\"off\"]\n";
    let (status, all) = findings(&folder, &format!("{free}memory = \"64MiB\"\nmax-clients = 10\n"));
    assert_eq!(status, Some(0), "{all:?}");
    assert_eq!(finding(&all, "memory")["status"], "ok");
    assert_eq!(finding(&all, "port of resp")["status"], "ok");
    assert!(
        finding(&all, "open files")["found"].as_str().expect("text").contains("10 connections")
    );

    let (status, all) = findings(&folder, &format!("{free}memory = \"1000GiB\"\n"));
    assert_eq!(status, Some(1), "{all:?}");
    let memory = finding(&all, "memory");
    assert_eq!(memory["status"], "problem");
    assert!(memory["advice"].as_str().expect("text").contains("1000.0 GiB"), "{memory}");
}

#[test]
fn a_running_server_is_not_a_problem_and_another_program_is() {
    let folder = Folder::new();
    let server = folder.serve(&["--admin=127.0.0.1:0", "--memory=64MiB"], &[]);
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let other = other.local_addr().map(|address| (address, other)).expect("an address");
    let settings = |resp: &str| {
        let admin = &server.admin;
        format!("resp = [\"{resp}\"]\nmemcache = [\"off\"]\nadmin = [\"{admin}\"]\n")
    };
    let (_, all) = findings(&folder, &settings(&server.addresses[0]));
    for name in ["port of resp", "port of admin"] {
        let port = finding(&all, name);
        assert_eq!(port["status"], "ok", "{port}");
        assert!(port["found"].as_str().expect("text").contains("nuthatch serve, process "));
    }
    // A server at the admin address made every port "ok".
    let (status, all) = findings(&folder, &settings(&other.0.to_string()));
    let port = finding(&all, "port of resp");
    assert_eq!((status, &port["status"]), (Some(1), &"problem".into()), "{port}");
    let expected = format!("process {}", std::process::id());
    assert!(port["found"].as_str().expect("text").ends_with(&expected), "{port}");
}

#[test]
fn a_running_server_at_a_socket_file_is_found() {
    let folder = Folder::new();
    let path = folder.text("resp.sock");
    let settings = format!("resp = [\"unix:{path}\"]\nmemcache = [\"off\"]\nadmin = [\"off\"]\n");
    let socket = |all: &[Value]| finding(all, "socket of resp")["found"].to_string();
    let (_, all) = findings(&folder, &settings);
    assert!(socket(&all).contains("is free"), "{all:?}");
    let _server = folder.serve(&[&format!("--resp=unix:{path}")], &[]);
    let (_, all) = findings(&folder, &settings);
    assert!(socket(&all).contains("nuthatch serve, process "), "{all:?}");
}

#[test]
fn settings_with_which_a_server_does_not_start_are_problems() {
    let folder = Folder::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let free = free.expect("a free port");
    for (resp, memcache, name) in [
        (free.to_string(), free.to_string(), "port of memcache"),
        (format!("unix:{}", folder.text("absent/x.sock")), "off".to_owned(), "socket of resp"),
    ] {
        let settings =
            format!("resp = [\"{resp}\"]\nmemcache = [\"{memcache}\"]\nadmin = [\"off\"]\n");
        let (status, all) = findings(&folder, &settings);
        assert_eq!(status, Some(1), "{all:?}");
        assert_eq!(finding(&all, name)["status"], "problem", "{all:?}");
        let run = folder.run_serve(&["--config=nuthatch.toml", "--memory=16MiB"], &[]);
        assert_eq!(run.status, Some(3), "{run:?}");
    }
}

/// A socket unit without its service made a problem, or doctor started the service.
#[test]
fn a_socket_of_systemd_is_a_note_and_gets_no_connection() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a socket");
    // Its name is all that doctor sees of a process.
    std::os::unix::fs::symlink("/bin/sh", folder.path("systemd-test")).expect("a link");
    let mut holder = Command::new(folder.path("systemd-test"));
    holder.args(["-c", "echo; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    holder.stderr(std::os::fd::OwnedFd::from(listener.try_clone().expect("a socket")));
    let mut holder = holder.spawn().expect("a shell");
    let started = holder.stdout.as_mut().expect("its output").read_exact(&mut [0]);
    started.expect("it runs");
    let settings = format!(
        "resp = [\"{address}\"]\nmemcache = [\"off\"]\nadmin = [\"off\"]\nmax-clients = 10\n"
    );
    let (_, all) = findings(&folder, &settings);
    let port = finding(&all, "port of resp");
    assert_eq!(port["status"], "note", "{port}");
    assert!(port["advice"].as_str().expect("text").contains("socket unit of this server"));
    assert_eq!(listener.accept().expect_err("no client").kind(), ErrorKind::WouldBlock);
    drop(holder.stdin.take());
    holder.wait().expect("its end");
}

#[test]
fn a_report_says_what_was_found() {
    let folder = Folder::new();
    let run = folder.run(&["doctor"]);
    assert!(matches!(run.status, Some(0 | 1)), "{run:?}");
    for expected in ["open files: ", "kernel: Linux ", "io_uring: ", " checks, "] {
        assert!(run.stdout.contains(expected), "{run:?}");
    }
    let run = folder.run(&["doctor", "--config", "absent.toml"]);
    assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
}
