//! Tests users and settings that are replaced while clients are connected.

use crate::served::{LOCAL, ask, at, cache, connect_to, info, with_every_io_backend};
use nuthatch_server::state::{Server, Users};
use nuthatch_server::{IoBackend, Options, Protocol, Reload, Running};
use std::io::Read;
use std::net::TcpStream;

with_every_io_backend! {
    connections_of_users_with_fewer_permissions_are_closed
    clients_that_need_a_password_after_a_reload_are_closed
}

const BEFORE: &str = "
user default off
user stays on >pass ~* +get +set
user gains on >pass ~app:* +get
user removed on >pass ~* +@all
user disabled on >pass ~* +@all
user loses-command on >pass ~* +get +set
user loses-key on >pass ~app:* ~other:* +get
";

const AFTER: &str = "
user default off
user stays on >another ~* +get +set
user gains on >pass ~* +get +set
user disabled off >pass ~* +@all
user loses-command on >pass ~* +get
user loses-key on >pass ~app:* +get
";

fn serve(users: &str, io_backend: IoBackend) -> Running {
    let listeners = [(Protocol::Resp, LOCAL), (Protocol::Memcache, LOCAL)];
    let server = Server::new(cache()).with_users(Users::parse(users).expect("users"));
    let options =
        Options::new(listeners.iter().map(at).collect()).threads(2).io_backend(io_backend);
    Running::serve(server, &options).expect("a server")
}

fn reload(server: &Running, users: &str) {
    let mut reload = Reload::default();
    reload.users = Some(Users::parse(users).expect("users"));
    server.reloader().reload(reload).expect("reloaded");
}

#[track_caller]
fn is_closed(mut stream: TcpStream) {
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)), "it goes on");
}

fn connections_of_users_with_fewer_permissions_are_closed(io_backend: IoBackend) {
    let server = serve(BEFORE, io_backend);
    let log_in = |listener: usize, name: &str| {
        let mut stream = connect_to(&server, listener);
        if listener == 0 {
            ask(&mut stream, format!("AUTH {name} pass\r\n").as_bytes(), b"+OK\r\n");
        } else {
            let words = format!("{name} pass");
            let request = format!("set x 0 0 {}\r\n{words}\r\n", words.len());
            ask(&mut stream, request.as_bytes(), b"STORED\r\n");
        }
        stream
    };
    let closed: Vec<_> = ["removed", "disabled", "loses-command", "loses-key"]
        .iter()
        .flat_map(|name| [log_in(0, name), log_in(1, name)])
        .collect();
    let (mut stays, mut gains) = (log_in(0, "stays"), log_in(0, "gains"));
    let mut unknown = connect_to(&server, 0);
    ask(&mut unknown, b"GET k\r\n", b"-NOAUTH Authentication required.\r\n");
    reload(&server, AFTER);
    closed.into_iter().for_each(is_closed);
    ask(&mut stays, b"SET k v\r\n", b"+OK\r\n");
    // Its thread may learn of it a moment later.
    let mut answer = [0; 5];
    while &answer != b"+OK\r\n" {
        std::io::Write::write_all(&mut gains, b"SET k w\r\n").expect("sent");
        gains.read_exact(&mut answer).expect("an answer");
        if &answer != b"+OK\r\n" {
            while gains.read_exact(&mut answer[..1]).is_ok() && answer[0] != b'\n' {}
        }
    }
    ask(&mut unknown, b"AUTH stays pass\r\n", b"-WRONGPASS invalid username-password pair");
}

fn clients_that_need_a_password_after_a_reload_are_closed(io_backend: IoBackend) {
    let server = serve("", io_backend);
    let (mut used, unused) = (connect_to(&server, 0), connect_to(&server, 0));
    // A connection counts once the server has accepted it.
    while info(&mut used, "connected_clients") != "2" {}
    ask(&mut used, b"PING\r\n", b"+PONG\r\n");
    let mut memcached = connect_to(&server, 1);
    ask(&mut memcached, b"mn\r\n", b"MN\r\n");
    reload(&server, "user default on >sesame allkeys +@all");
    [used, unused, memcached].into_iter().for_each(is_closed);
    ask(&mut connect_to(&server, 0), b"AUTH sesame\r\n", b"+OK\r\n");
}

#[test]
fn settings_are_reloaded_all_or_none() {
    let server = serve("", IoBackend::Auto);
    let settings = |clients: &str| {
        let mut reload = Reload::default();
        reload.settings = vec![("timeout", "77".to_owned()), ("maxclients", clients.to_owned())];
        server.reloader().reload(reload)
    };
    let config = |name: &str, value: &str| {
        let (n, v) = (name.len(), value.len());
        let answer = format!("*2\r\n${n}\r\n{name}\r\n${v}\r\n{value}\r\n");
        let request = format!("CONFIG GET {name}\r\n");
        ask(&mut connect_to(&server, 0), request.as_bytes(), answer.as_bytes());
    };
    assert!(settings("many").is_err());
    config("timeout", "0");
    settings("99").expect("good settings");
    config("timeout", "77");
    config("maxclients", "99");
}
