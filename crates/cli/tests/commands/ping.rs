//! `nuthatch ping`: healthy, unhealthy, absent and foreign servers.

use crate::folder::{Folder, Run};
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
    for more in [&[][..], &["--quiet"], &["--wait", "600ms"]] {
        let run = folder.run(&[&["ping", &follower.admin], more].concat());
        assert_eq!((run.status, &run.stderr[..]), (Some(1), ""), "{run:?}");
        assert!(run.stdout.contains("no generation"), "{run:?}");
    }
    let run = folder.run(&["ping", &follower.admin, "--json"]);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.status, &value["healthy"]), (Some(1), &false.into()));
}

/// Runs the command with these arguments against a server that sends this response to each request,
/// or reads the request and waits. The server closes a connection at once without a response.
fn ping_of(response: Option<&str>, arguments: &[&str]) -> Run {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let response = response.map(str::to_owned);
    // Ends with the process of the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let Some(response) = &response else { continue };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(response.as_bytes());
            if response.is_empty() {
                let _ = stream.read(&mut [0; 1]);
            }
        }
    });
    folder.run(&[&["ping", &address], arguments].concat())
}

/// Returns a response of HTTP.
fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
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
    for (response, expected) in [
        (response("404 Not Found", ""), "with `ok`, or 503, found status 404"),
        ("-ERR unknown command\r\n".to_owned(), "found another server"),
        (String::new(), "expected a response within "),
    ] {
        let run = ping_of(Some(&response), &["--timeout", "200ms"]);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
    assert_eq!(folder.run(&["ping", "nowhere"]).status, Some(2));
    assert_eq!(folder.run(&["ping", "--timeout", "soon"]).status, Some(2));
}

#[test]
fn a_web_server_that_responds_with_200_is_not_healthy() {
    for body in ["", "<html>welcome</html>", "ok but another"] {
        let run = ping_of(Some(&response("200 OK", body)), &[]);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
        assert!(run.stderr.contains("found another body"), "{run:?}");
    }
    let run = ping_of(Some(&response("200 OK", "ok\n")), &["--quiet"]);
    assert_eq!((run.status, &run.stderr[..]), (Some(0), ""), "{run:?}");
}

#[test]
fn a_server_that_hangs_does_not_prolong_the_wait() {
    // With the default of --timeout, five seconds.
    let run = ping_of(Some(""), &["--wait", "200ms"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    let limit = run.stderr.split("within ").nth(1).and_then(|rest| rest.split(',').next());
    assert!(limit.is_some_and(|limit| limit.contains("ms")), "{run:?}");
}

#[test]
fn a_name_that_is_not_resolved_yet_is_no_wrong_argument() {
    let folder = Folder::new();
    // The domain never resolves, says RFC 6761.
    let run = folder.run(&["ping", "nuthatch.invalid:9464", "--wait", "150ms", "--json"]);
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("nuthatch.invalid:9464: "), "{run:?}");
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&value["healthy"], &value["micros"]), (&false.into(), &().into()), "{value}");
    let message = value["message"].as_str().expect("text");
    assert_eq!(run.stderr, format!("nuthatch: {message}\n"));
}

#[test]
fn a_closed_connection_is_not_another_server() {
    let partial = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok";
    for response in [None, Some(partial)] {
        let run = ping_of(response, &[]);
        assert_eq!((run.status, &run.stdout[..]), (Some(3), ""), "{run:?}");
        assert!(run.stderr.contains("the server closed the connection before the end"), "{run:?}");
        assert!(!run.stderr.contains("another server"), "{run:?}");
    }
}

#[test]
fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let body = format!("\x1b[31mred\nline\0{}", "x".repeat(5000));
    let run = ping_of(Some(&response("503 Unavailable", &body)), &[]);
    assert_eq!((run.status, &run.stderr[..]), (Some(1), ""), "{run:?}");
    assert!(run.stdout.contains(r": \u{1b}[31mred\nline\u{0}xxx"), "{run:?}");
    assert!(run.stdout.contains("x…, in ") && run.stdout.len() < 4500, "{run:?}");
}

#[test]
fn odd_arguments_say_what_to_write() {
    let folder = Folder::new();
    for (arguments, expected) in [
        (&["/run/nuthatch/admin.sock"][..], "for a socket file, write unix:/run/nuthatch/admin"),
        (&["http://127.0.0.1:9464"], "expected host:port or unix:PATH"),
        (&["unix:"], "expected host:port or unix:PATH"),
        (&["--timeout", "0s"], "expected a time above zero"),
    ] {
        let run = folder.run(&[&["ping"], arguments].concat());
        assert_eq!((run.status, &run.stdout[..]), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
}
