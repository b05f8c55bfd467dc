//! Tests permissions in each protocol, and which clients are refused.

use crate::ask_last;
use crate::served::{
    LOCAL, ask, at, cache, connect_to, info, options, pass_time, start, with_every_io_backend,
};
use nuthatch_server::mrcache::Framing;
use nuthatch_server::state::{Server, Users};
use nuthatch_server::{IoBackend, Options, Protocol, Running};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{ErrorKind, Write};
use std::time::Duration;

/// The time after which a test fails that waits for something.
const PATIENCE: Duration = Duration::from_mins(1);

with_every_io_backend! {
    clients_of_memcached_log_in_with_their_first_set
    before_login_requests_are_limited
    before_login_no_request_is_longer_than_8_kib
    before_login_clients_that_do_not_read_use_little_memory
    after_login_requests_may_be_long
    clients_of_poor_mans_cache_log_in_through_resp
    clients_of_mrcache_are_the_default_user
    silent_clients_are_closed
    every_thread_applies_a_changed_setting
}

const USERS: &str = "
user default off
user ann on >sesame ~app:* +get +set +append +flushall
user all on >open ~* +@all
";

fn server(users: &str, io_backend: IoBackend) -> Running {
    let listeners = [
        (Protocol::Resp, LOCAL),
        (Protocol::Memcache, LOCAL),
        (Protocol::Pmc, LOCAL),
        (Protocol::Mrcache(Framing::Len4), LOCAL),
    ];
    let users = Users::parse(users).expect("users");
    let server = Server::new(cache()).with_users(users);
    let options = Options::new(listeners.iter().map(at).collect()).io_backend(io_backend);
    Running::serve(server, &options).expect("a server")
}

fn clients_of_memcached_log_in_with_their_first_set(io_backend: IoBackend) {
    let server = server(USERS, io_backend);
    let mut stream = connect_to(&server, 1);
    let first = b"CLIENT_ERROR unauthenticated\r\n";
    ask(&mut stream, b"get app:1\r\n", first);
    ask(&mut stream, b"mn\r\n", first);
    ask(&mut stream, b"add x 0 0 10\r\nann sesame\r\n", first);
    let failed = b"CLIENT_ERROR authentication failure\r\n";
    ask(&mut stream, b"set x 0 0 9\r\nann wrong\r\n", failed);
    ask(&mut stream, b"set x 0 0 6\r\nsesame\r\n", failed);
    ask(
        &mut stream,
        b"set x 0 0 10\r\nann sesame\r\nset app:1 0 0 1\r\n1\r\n",
        b"STORED\r\nSTORED\r\n",
    );
    ask(&mut stream, b"get app:1\r\n", b"VALUE app:1 0 1\r\n1\r\nEND\r\n");
    let key = b"CLIENT_ERROR this user has no permissions to access this key\r\n";
    ask(&mut stream, b"get app:1 other\r\n", key);
    ask(&mut stream, b"ms other 1\r\n1\r\n", key);
    let command = b"CLIENT_ERROR this user has no permissions to run this command\r\n";
    ask(&mut stream, b"incr app:1 1\r\n", command);
    ask(&mut stream, b"gat 10 app:1\r\n", command);
    ask(&mut stream, b"mg app:1 T30\r\n", command);
    ask(&mut stream, b"mg app:1 v\r\n", b"VA 1\r\n1\r\n");
    ask(&mut stream, b"stats\r\n", command);
    ask(&mut stream, b"flush_all\r\nget app:1\r\n", b"OK\r\nEND\r\n");
    // A value that is too long removes the one before it.
    ask(&mut stream, b"set other 0 0 2000000000\r\n", key);
}

fn before_login_requests_are_limited(io_backend: IoBackend) {
    let server = server(USERS, io_backend);
    let mut stream = connect_to(&server, 1);
    let long = [b"set x 0 0 5000\r\n".as_slice(), &[b'x'; 5000], b"\r\n"].concat();
    ask(&mut stream, &long, b"CLIENT_ERROR unauthenticated\r\n");
    ask(&mut stream, b"set x 0 0 8\r\nall open\r\n", b"STORED\r\n");
    ask(&mut stream, &long, b"STORED\r\n");
    let answer = ask_last(&mut connect_to(&server, 0), b"*11\r\n");
    assert_eq!(answer, r"-ERR Protocol error: unauthenticated multibulk length\r\n");
}

/// Regression test: lines of RESP and messages of poor-man's-cache could be as long as after a
/// login.
fn before_login_no_request_is_longer_than_8_kib(io_backend: IoBackend) {
    let server = server(USERS, io_backend);
    let x = |len: usize| "x".repeat(len);
    let argument = format!("$3000\r\n{}\r\n", x(3000));
    let resp = |text: &str| format!("-ERR Protocol error: {text}\\r\\n");
    for (listener, request, expected) in [
        (0, x(5000), resp("too big inline request")),
        (0, "*".to_owned() + &"1".repeat(5000), resp("too big mbulk count string")),
        (0, "*1\r\n$".to_owned() + &"1".repeat(5000), resp("too big bulk count string")),
        (0, "*2\r\n$4\r\nAUTH\r\n$9000\r\n".to_owned(), resp("unauthenticated bulk length")),
        (0, "*10\r\n".to_owned() + &argument.repeat(3), resp("unauthenticated bulk length")),
        (1, format!("get {}", x(5000)), "CLIENT_ERROR line too long\\r\\n".to_owned()),
        (
            2,
            format!("SET k {}", x(5000)),
            "ERROR: Request is longer than 4096 bytes (the limit before login)\\x1f".to_owned(),
        ),
        (2, "*2\r\n$9000\r\n".to_owned(), resp("unauthenticated bulk length")),
        (3, "\0\x02\x01\0\0\x20\0\0".to_owned() + &x(100), String::new()),
        (3, "\0\x01\0\x20".to_owned() + &x(100), String::new()),
    ] {
        let mut stream = connect_to(&server, listener);
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let answer = ask_last(&mut stream, request.as_bytes());
        assert_eq!(answer, expected, "{listener}: {}", &request[..request.len().min(30)]);
    }
}

/// Regression test: each connection held a megabyte of errors, and the input after them.
fn before_login_clients_that_do_not_read_use_little_memory(io_backend: IoBackend) {
    const CLIENTS: usize = 20;
    const EACH: usize = 64 << 10;
    let server = server(USERS, io_backend);
    let mut control = connect_to(&server, 0);
    ask(&mut control, b"AUTH all open\r\n", b"+OK\r\n");
    let held = |control: &mut _| -> usize {
        info(control, "used_memory_connections").parse().expect("a number")
    };
    let before = held(&mut control);
    let pings = b"PING\r\n".repeat(4096);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut client = connect_to(&server, 0);
            set_socket_recv_buffer_size(&client, 4096).expect("a socket");
            client.set_nonblocking(true).expect("a socket");
            let (mut sent, mut blocked) = (0, 0);
            while blocked < 30 && sent < 64 << 20 {
                match client.write(&pings[sent % 6..]) {
                    Ok(len) => (sent, blocked) = (sent + len, 0),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => blocked += 1,
                    Err(_) => break,
                }
                pass_time(&mut control, 1);
                let more = held(&mut control).saturating_sub(before);
                assert!(more <= CLIENTS * EACH, "{more} bytes");
            }
            client
        })
        .collect();
    drop(clients);
}

fn after_login_requests_may_be_long(io_backend: IoBackend) {
    let server = server(USERS, io_backend);
    let log_in = b"*3\r\n$4\r\nAUTH\r\n$3\r\nall\r\n$4\r\nopen\r\n";
    let mut stream = connect_to(&server, 0);
    ask(&mut stream, log_in, b"+OK\r\n");
    let line = format!("SET k {}\r\n", "x".repeat(60_000));
    ask(&mut stream, line.as_bytes(), b"+OK\r\n");
    let mut stream = connect_to(&server, 2);
    ask(&mut stream, log_in, b"+OK\r\n");
    let message = format!("SET k {}\x1f", "x".repeat(200_000));
    ask(&mut stream, message.as_bytes(), b"OK\x1f");
}

fn clients_of_poor_mans_cache_log_in_through_resp(io_backend: IoBackend) {
    let server = server(USERS, io_backend);
    let mut stream = connect_to(&server, 2);
    ask(&mut stream, b"GET app:1\x1f", b"ERROR: Authentication required\x1f");
    let log_in = b"*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsesame\r\n";
    ask(&mut stream, log_in, b"+OK\r\n");
    ask(&mut stream, b"GET app:1\x1f", b"(nil)\x1f");
    ask(&mut stream, b"GET other\x1f", b"ERROR: No permission to access this key\x1f");
    ask(&mut stream, b"DEL app:1\x1f", b"ERROR: No permission to run this command\x1f");
}

fn clients_of_mrcache_are_the_default_user(io_backend: IoBackend) {
    let get = b"\0\x01\x05\0app:1";
    assert_eq!(ask_last(&mut connect_to(&server(USERS, io_backend), 3), get), "");
    let server = server("user default on nopass ~app:* +get", io_backend);
    let mut stream = connect_to(&server, 3);
    ask(&mut stream, get, b"\0\0\0\0");
    assert_eq!(ask_last(&mut stream, b"\0\x02\x01\0\x01\0\0\0k1"), "");
}

fn silent_clients_are_closed(io_backend: IoBackend) {
    let server = server("", io_backend);
    let mut silent = connect_to(&server, 1);
    ask(&mut silent, b"mn\r\n", b"MN\r\n");
    let mut stream = connect_to(&server, 0);
    ask(&mut stream, b"CONFIG SET timeout 1\r\n", b"+OK\r\n");
    assert_eq!(ask_last(&mut silent, b""), "");
    assert_eq!(ask_last(&mut stream, b""), "");
}

/// The other threads sleep when the setting changes.
fn every_thread_applies_a_changed_setting(io_backend: IoBackend) {
    let server = start(&options(&[LOCAL], 4, io_backend));
    let mut silent: Vec<_> = (0..20).map(|_| connect_to(&server, 0)).collect();
    for stream in &mut silent {
        ask(stream, b"PING\r\n", b"+PONG\r\n");
    }
    ask(&mut connect_to(&server, 0), b"CONFIG SET timeout 1\r\n", b"+OK\r\n");
    for stream in &mut silent {
        assert_eq!(ask_last(stream, b""), "");
    }
}
