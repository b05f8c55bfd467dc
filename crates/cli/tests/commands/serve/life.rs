//! The start and the end of a server.

use crate::folder::Folder;
use crate::server::wait_until_closed;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};

#[test]
fn signals_stop_it_and_it_exits_with_0() {
    let folder = Folder::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = folder.serve(&[], &[]);
        assert_eq!(server.ask("PING"), "+PONG\r\n");
        server.signal(signal);
        assert_eq!(server.wait(), Some(0), "{signal:?}");
        assert_eq!(server.messages(), "");
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let folder = Folder::new();
    let first = folder.serve(&[], &[]);
    let address = &first.addresses[0];
    let other = ["--memory=16MiB", "--memcache=off", &format!("--resp={address}")];
    let message = |name: &str| {
        format!(
            "--{name}: {address}: Address already in use (os error 98); --{name} ADDR chooses \
             another address, --{name} off does without"
        )
    };
    folder.fails(&other, 3, &message("resp"));
    let twice = ["--resp=127.0.0.1:0", &format!("--memcache={address}"), "--memory=16MiB"];
    folder.fails(&twice, 3, &message("memcache"));
    assert_eq!(first.ask("PING"), "+PONG\r\n");
}

#[test]
fn a_start_that_fails_leaves_no_socket_behind() {
    let folder = Folder::new();
    let first = folder.serve(&[], &[]);
    let taken = format!("--resp={}", first.addresses[0]);
    let run = folder.run_serve(&["--resp=unix:resp.sock", &taken, "--memory=16MiB"], &[]);
    assert_eq!(run.status, Some(3));
    assert!(!folder.path("resp.sock").exists());
}

#[test]
fn a_socket_that_a_killed_server_left_is_replaced() {
    let folder = Folder::new();
    let resp = ["--resp=unix:resp.sock"];
    let path = folder.path("resp.sock");
    let mut killed = folder.serve(&resp, &[]);
    killed.signal(Signal::KILL);
    assert_eq!(killed.wait(), None);
    assert!(path.exists(), "it was killed before it could remove the socket");

    let mut server = folder.serve(&resp, &[]);
    let mut stream = UnixStream::connect(&path).expect("a connection");
    stream.write_all(b"PING\r\nQUIT\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "+PONG\r\n+OK\r\n");

    let message = "--resp: unix:resp.sock: Address already in use (os error 98); --resp ADDR \
                   chooses another address, --resp off does without";
    folder.fails(&["--resp=unix:resp.sock", "--memcache=off", "--memory=16MiB"], 3, message);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert!(!path.exists(), "it goes with the server");
}

#[test]
fn a_file_and_the_socket_of_another_process_are_not_removed() {
    let folder = Folder::new();
    let _theirs = UnixListener::bind(folder.path("theirs.sock")).expect("a socket");
    folder.file("file", "theirs");
    for (name, problem) in [
        ("theirs.sock", "Address already in use (os error 98)"),
        ("file", "expected a socket or nothing at this path, found another file"),
    ] {
        let resp = format!("--resp=unix:{name}");
        let arguments = [resp.as_str(), "--memcache=off", "--memory=16MiB"];
        let advice = "--resp ADDR chooses another address, --resp off does without";
        folder.fails(&arguments, 3, &format!("--resp: unix:{name}: {problem}; {advice}"));
        assert!(folder.path(name).exists());
    }
}

#[test]
fn two_servers_do_not_share_a_folder() {
    let folder = Folder::new();
    let data = ["--data-dir=data"];
    let mut first = folder.serve(&data, &[]);
    let run = folder.run_serve(&["--data-dir=data", "--resp=127.0.0.1:0", "--memcache=off"], &[]);
    let message = "nuthatch: --data-dir: data: expected a folder that no server uses, found one \
                   in use by process";
    assert!(run.stderr.starts_with(message), "{}", run.stderr);
    assert_eq!(run.status, Some(3));
    first.signal(Signal::KILL);
    first.wait();
    folder.serve(&data, &[]);
}

#[test]
fn without_an_address_there_is_nothing_to_serve() {
    let folder = Folder::new();
    let message = "expected an address to listen on, found none";
    folder.fails(&["--resp=off", "--memcache=off"], 2, message);
    let run = folder.run_serve(&["--max-value=1k"], &[]);
    assert!(run.stderr.starts_with("nuthatch: --max-value: "), "{}", run.stderr);
    assert_eq!(run.status, Some(2));
}

/// The kernel keeps the sockets of a killed server open until it has removed the rings.
#[test]
fn a_server_starts_at_the_address_of_one_that_was_just_killed() {
    let folder = Folder::new();
    // An IP address of its own: otherwise another test could get the port between two starts.
    let mut server = folder.serve(&["--resp=127.0.0.77:0"], &[]);
    let resp = format!("--resp={}", server.addresses[0]);
    for signal in [Signal::KILL, Signal::TERM, Signal::KILL, Signal::TERM, Signal::KILL] {
        server.signal(signal);
        server.wait();
        server = folder.serve(&[&resp], &[]);
        assert_eq!(server.ask("PING"), "+PONG\r\n");
    }
}

#[test]
fn the_event_loop_is_printed() {
    let folder = Folder::new();
    for name in ["io_uring", "epoll"] {
        let server = folder.serve(&["--event-loop", name], &[]);
        let expected = format!("16.0 MiB of memory, 2 threads on {name}\n");
        assert_eq!(server.greeting, expected);
        assert!(server.ask("INFO server").contains(&format!("\r\nmultiplexing_api:{name}\r\n")));
    }
    let message = "--event-loop: expected auto or io_uring or epoll, found `kqueue`";
    let run = folder.run_serve(&["--event-loop=kqueue"], &[]);
    assert_eq!(run.status, Some(2), "{message}: {run:?}");
}

#[test]
fn a_server_stops_during_debug_sleep() {
    let folder = Folder::new();
    let mut server = folder.serve(&["--enable-debug-command=local"], &[]);
    assert_eq!(server.config("enable-debug-command"), "local");
    let mut stream = server.connect();
    stream.write_all(b"DEBUG SLEEP 1000000\r\n").expect("sent");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    let mut answers = String::new();
    // The server has sent all or part of the response, or nothing.
    let _ = stream.read_to_string(&mut answers);
    assert!("+OK\r\n".starts_with(&answers), "{answers}");
}

#[test]
fn a_panic_in_a_thread_ends_the_process_with_a_message() {
    let folder = Folder::new();
    let mut server = folder.serve(&["--enable-debug-command=local"], &[]);
    let mut other = server.connect();
    let _ = server.connect().write_all(b"DEBUG PANIC\r\n");
    assert_eq!(server.wait(), Some(101));
    let messages = server.messages();
    assert!(messages.contains("DEBUG PANIC was called"), "{messages}");
    let last = "nuthatch: a thread panicked, which is a bug: the server ends; restart it\n";
    assert!(messages.ends_with(last), "{messages}");
    assert!(matches!(other.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_signal_lets_requests_finish_and_a_second_one_does_not() {
    let folder = Folder::new();
    let arguments = ["--drain-ms=3600000", "--admin=127.0.0.1:0", "--log=info"];
    let mut server = folder.serve(&arguments, &[]);
    let begin = |server: &crate::server::Running| {
        let mut stream = server.connect();
        stream.write_all(b"PING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nv").expect("sent");
        stream.read_exact(&mut [0; 7]).expect("an answer");
        stream
    };
    let (mut half, mut admin) = (begin(&server), TcpStream::connect(&server.admin).expect("it"));
    server.signal(Signal::TERM);
    wait_until_closed(&server.addresses[0]);
    admin
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut health = String::new();
    admin.read_to_string(&mut health).expect("an answer");
    assert!(health.starts_with("HTTP/1.1 503 "), "{health}");
    half.write_all(b"v\r\n").expect("sent");
    let mut answer = String::new();
    half.read_to_string(&mut answer).expect("an answer, then the end");
    assert_eq!(answer, "+OK\r\n");
    assert_eq!(server.wait(), Some(0));

    for second in [Signal::TERM, Signal::INT] {
        let mut server = folder.serve(&arguments[..1], &[]);
        let mut half = begin(&server);
        server.signal(Signal::INT);
        wait_until_closed(&server.addresses[0]);
        server.signal(second);
        assert_eq!(server.wait(), Some(0));
        assert!(matches!(half.read(&mut [0]), Ok(0) | Err(_)));
    }
}

#[test]
fn a_drain_has_an_end() {
    let folder = Folder::new();
    let mut server = folder.serve(&["--drain-ms=1"], &[]);
    let mut half = server.connect();
    half.write_all(b"PING\r\n*1\r\n").expect("sent");
    half.read_exact(&mut [0; 7]).expect("an answer");
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
}
