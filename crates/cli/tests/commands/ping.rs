//! `nuthatch ping`: healthy, unhealthy, absent and foreign servers.

use crate::folder::Folder;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

#[test]
fn a_healthy_server_is_reported() {
    let folder = Folder::new();
    let server = folder.serve(&["--admin=127.0.0.1:0", "--memory=64MiB"], &[]);
    let run = folder.run(&["ping", &server.admin]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{run:?}");
    assert!(run.stdout.starts_with(&format!("{}: ok, in ", server.admin)), "{run:?}");
    let run = folder.run(&["ping", &server.admin, "--quiet"]);
    assert_eq!((run.status, &run.stdout[..], &run.stderr[..]), (Some(0), "", ""), "{run:?}");
    let run = folder.run(&["ping", &server.admin, "--json"]);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&value["healthy"], &value["message"]), (&true.into(), &"ok".into()));
    assert_eq!(value["address"], server.admin);
    assert!(value["micros"].as_u64() > Some(0), "{value}");
}

#[test]
fn a_ping_waits_until_the_server_is_there() {
    let folder = Folder::new();
    let mut waiting = folder.command(&["ping", "unix:admin.sock", "--wait", "1m"]);
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().expect("the command");
    let _server = folder.serve(&["--admin=unix:admin.sock", "--memory=64MiB"], &[]);
    assert!(waiting.wait().expect("its status").success());
}

#[test]
fn a_follower_without_data_is_not_healthy() {
    let folder = Folder::new();
    let arguments = ["follow", "shared", "there", "--admin=127.0.0.1:0"];
    let follower = folder.start(folder.command(&arguments));
    for more in [&[][..], &["--quiet"], &["--wait", "300ms"]] {
        let run = folder.run(&[&["ping", &follower.admin], more].concat());
        assert_eq!((run.status, &run.stderr[..]), (Some(1), ""), "{run:?}");
        assert!(run.stdout.contains("no generation"), "{run:?}");
    }
    let run = folder.run(&["ping", &follower.admin, "--json"]);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.status, &value["healthy"]), (Some(1), &false.into()));
}

/// Runs the command against a server that sends this response, or reads the request and waits.
fn ping_of(response: &str, timeout: &str) -> (Option<i32>, String) {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let response = response.to_owned();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(response.as_bytes());
        if response.is_empty() {
            let _ = stream.read(&mut [0; 1]);
        }
    });
    let run = folder.run(&["ping", &address, "--timeout", timeout]);
    server.join().expect("the server");
    assert_eq!(run.stdout, "");
    (run.status, run.stderr)
}

#[test]
fn what_is_not_a_server_of_ours_is_an_error() {
    let folder = Folder::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let free = free.expect("a free port").to_string();
    for address in [&free[..], "unix:nothing.sock"] {
        let run = folder.run(&["ping", address]);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
        let expected = format!("nuthatch: nothing listens at {address}: ");
        assert!(run.stderr.starts_with(&expected), "{run:?}");
    }
    let not_found = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    for (response, expected) in [
        (not_found, "expected status 200 or 503, found 404"),
        ("-ERR unknown command\r\n", "found another server"),
        ("", "expected a response within 200ms"),
    ] {
        let (status, stderr) = ping_of(response, "200ms");
        assert_eq!(status, Some(3), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert_eq!(folder.run(&["ping", "nowhere"]).status, Some(2));
    assert_eq!(folder.run(&["ping", "--timeout", "soon"]).status, Some(2));
}
