//! Reloads on SIGHUP.

use crate::folder::Folder;
use crate::server::{Running, wait_until};
use crate::store_remote::certificates;
use crate::tls;
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Sends SIGHUP and waits until the log has this number of finished or failed reloads.
#[track_caller]
fn reload(server: &Running, text: &str) {
    let before = server.messages().matches(text).count();
    server.signal(Signal::HUP);
    wait_until(text, || server.messages().matches(text).count() > before);
}

fn ask(stream: &mut (impl Read + Write), request: &str, expected: &str) {
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), expected);
}

#[test]
fn sighup_reads_settings_users_and_the_log_filter_again() {
    let folder = Folder::new();
    folder.file("users", "user default off\nuser ann on >a ~* +@all\nuser bob on >b ~* +get");
    folder.file("a.toml", "users = 'users'\ntimeout = '10s'\nlog = 'info'\nmemory = '16MiB'");
    let server = folder.serve_without_memory(&["--config=a.toml", "--max-clients=7"]);
    let (mut ann, mut bob) = (server.connect(), server.connect());
    ask(&mut ann, "AUTH ann a\r\n", "+OK\r\n");
    ask(&mut bob, "AUTH bob b\r\n", "+OK\r\n");

    folder.file("users", "user default off\nuser ann on >new ~* +@all");
    folder.file("a.toml", "users = 'users'\ntimeout = '77s'\nmax-clients = 9\nmemory = '32MiB'");
    server.signal(Signal::HUP);
    let end = bob.read(&mut [0]).map_err(|error| error.kind());
    assert!(
        matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)),
        "its user was removed: {end:?}"
    );
    ask(&mut ann, "CONFIG GET timeout\r\n", "*2\r\n$7\r\ntimeout\r\n$2\r\n77\r\n");
    // The command line still wins over the file.
    ask(&mut ann, "CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$1\r\n7\r\n");
    let memory = "*2\r\n$9\r\nmaxmemory\r\n$8\r\n16777216\r\n";
    ask(&mut ann, "CONFIG GET maxmemory\r\n", memory);
    ask(&mut server.connect(), "AUTH ann new\r\n", "+OK\r\n");
    let messages = server.messages();
    let warning = " WARN nuthatch::server: memory was changed: it needs a restart to take effect\n";
    assert!(messages.contains(warning), "{messages}");
}

#[test]
fn a_bad_file_is_logged_and_changes_nothing() {
    let folder = Folder::new();
    folder.file("users", "user default on >a allkeys +@all");
    folder.file("a.toml", "users = 'users'\ntimeout = '10s'");
    let server = folder.serve(&["--config=a.toml", "--log=info"], &[]);
    let mut client = server.connect();
    ask(&mut client, "AUTH a\r\n", "+OK\r\n");
    for (file, text, problem) in [
        ("a.toml", "timeout = 'soon'", "a.toml:1:11: timeout"),
        (
            "a.toml",
            "timeout = '5s'\nusers = 'absent'",
            "absent: expected a file, but there is no such file",
        ),
        ("users", "user default on +fly", "users: line 1, word 4"),
    ] {
        folder.file("a.toml", "users = 'users'\ntimeout = '20s'").file(file, text);
        reload(&server, FAILED);
        assert!(server.messages().contains(problem), "{}", server.messages());
        ask(&mut client, "CONFIG GET timeout\r\n", "*2\r\n$7\r\ntimeout\r\n$2\r\n10\r\n");
        ask(&mut server.connect(), "AUTH a\r\n", "+OK\r\n");
    }
    folder.file("a.toml", "timeout = '30s'\nusers = 'users'");
    folder.file("users", "user default on >a allkeys +@all");
    reload(&server, "nuthatch::server: reloaded");
    ask(&mut client, "CONFIG GET timeout\r\n", "*2\r\n$7\r\ntimeout\r\n$2\r\n30\r\n");
}

/// Regression test: the reload waited for a writer, and SIGTERM for the reload.
#[test]
fn a_pipe_as_a_secret_file_blocks_no_reload_and_no_stop() {
    let folder = Folder::new();
    folder.file("token", "a-token-of-the-tests").file("password", "a");
    folder.file("users", "user default on >a allkeys +@all");
    for arguments in [
        &["--admin=127.0.0.1:0", "--admin-token-file=token"][..],
        &["--password-file=password"],
        &["--users=users"],
    ] {
        let server = folder.serve(arguments, &[]);
        let name = arguments[arguments.len() - 1].rsplit_once('=').expect("a file").1;
        let path = folder.path(name);
        std::fs::remove_file(&path).expect("a file");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        reload(&server, FAILED);
        let (status, log) = server.stop();
        assert!(log.contains(&format!("{name}: expected a file, but it cannot be read: it is a")));
        assert_eq!(status, Some(0), "{log}");
    }
}

#[test]
fn a_reload_that_would_let_everybody_in_is_refused() {
    let folder = Folder::new();
    folder.file("users", "user default off\nuser ann on >a ~* +@all");
    let server = folder.serve(&["--resp=0.0.0.0:0", "--users=users"], &[]);
    folder.file("users", "user default on nopass ~* +@all");
    reload(&server, "reload failed");
    assert!(server.messages().contains("needs no login"), "{}", server.messages());
}

#[test]
fn the_log_filter_is_reloaded() {
    let folder = Folder::new();
    folder.file("a.toml", "log = 'warn'");
    let server = folder.serve(&["--config=a.toml"], &[]);
    server.signal(Signal::HUP);
    folder.file("a.toml", "log = 'info'");
    reload(&server, "INFO nuthatch::server: reloaded");
}

/// Warnings were plain lines between the objects.
#[test]
fn with_json_lines_every_warning_of_a_setting_is_an_object() {
    let folder = Folder::new();
    folder.file("cert.pem", "").file("key.pem", "").file("password", "a").mode("password", 0o644);
    let text = "log-format = 'json'\nlog = 'info'\ntls-cert = 'cert.pem'\ntls-key = 'key.pem'\n\
                password-file = 'password'\n";
    folder.file("a.toml", format!("{text}drain-ms = 1\n"));
    let variables = [("NUTHATCH_FOO", "1")];
    let server = folder.serve(&["--config=a.toml", "--max-clients=4294967295"], &variables);
    folder.file("a.toml", format!("{text}drain-ms = 2\n"));
    reload(&server, "\"reloaded\"");
    let (status, logged) = server.stop();
    assert_eq!(status, Some(0));
    let lines: Vec<serde_json::Value> =
        logged.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let warnings = lines.iter().filter(|line| line["level"] == "WARN");
    let warnings: Vec<_> = warnings
        .map(|line| (line["target"].as_str(), line["message"].as_str().expect("a message")))
        .collect();
    for expected in [
        "NUTHATCH_FOO is not a setting and is ignored",
        "password: all users of this machine can read it",
        "a.toml:3: tls-cert is not used: no address begins with `tls:`",
        "max-clients is ",
        "drain-ms was changed: it needs a restart to take effect",
    ] {
        let is_there = |(target, message): &(Option<&str>, &str)| {
            *target == Some("nuthatch::server") && message.contains(expected)
        };
        assert!(warnings.iter().any(is_there), "{expected}: {logged}");
    }
}

/// Regression test: listeners of the cache kept the old certificate after a reload.
#[test]
fn listeners_of_the_cache_use_a_reloaded_certificate() {
    let folder = Folder::new();
    certificates(&folder, "one");
    folder.file("a.toml", "tls-cert = 'cert.pem'\ntls-key = 'key.pem'");
    let arguments = ["--config=a.toml", "--resp=tls:127.0.0.1:0", "--log=info"];
    let server = folder.serve(&arguments, &[]);
    let address = server.addresses[0].trim_start_matches("tls:");
    let connect = |issuer: &str| {
        let stream = TcpStream::connect(address).expect("a connection");
        tls::client(stream, &folder.bytes(issuer))
    };
    let mut open = connect("one.ca");
    ask(&mut open, "PING\r\n", "+PONG\r\n");

    certificates(&folder, "two");
    reload(&server, RELOADED);
    ask(&mut connect("two.ca"), "PING\r\n", "+PONG\r\n");
    let error = connect("one.ca").write_all(b"PING\r\n").expect_err("another issuer");
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    ask(&mut open, "PING\r\n", "+PONG\r\n");
}

const STORE: [&str; 4] = ["--config=a.toml", "--store=db", "--store-create", "--log=info"];
const FAILED: &str = "reload failed; the previous settings stay in use";
const RELOADED: &str = "nuthatch::server: reloaded";

/// Returns the address of the store server beside the cache server.
fn store_of(server: &Running) -> String {
    let address = server.addresses.iter().find(|address| address.starts_with("grpc"));
    address.expect("where the store is").clone()
}

/// The cache's settings and users were reloaded before the file of tokens was read.
#[test]
fn a_bad_file_of_tokens_reloads_nothing_of_the_cache_either() {
    let folder = Folder::new();
    folder.file("tokens", "token app write >robin\n").file("old", "robin").file("new", "wren");
    folder.file("a.toml", "timeout = '10s'\nusers = 'users'");
    folder.file("users", "user default on >a allkeys +@all");
    let tokens = ["--grpc=127.0.0.1:0", "--store-tokens=tokens"];
    let server = folder.serve(&[&STORE[..], &tokens].concat(), &[]);
    let address = store_of(&server);
    let put = |token: &str| {
        folder.run(&["store", "put", &address, "a", "1", "--token-file", token]).status
    };
    let timeout = |password: &str, expected: &str| {
        let mut client = server.connect();
        ask(&mut client, &format!("AUTH {password}\r\n"), "+OK\r\n");
        let expected = format!("*2\r\n$7\r\ntimeout\r\n$2\r\n{expected}\r\n");
        ask(&mut client, "CONFIG GET timeout\r\n", &expected);
    };
    let change = |tokens: &str, users: &str| {
        folder.file("a.toml", "timeout = '30s'\nusers = 'users'");
        folder.file("tokens", tokens).file("users", users);
    };
    let users = "user default on >b allkeys +@all";
    change("token app", users);
    reload(&server, FAILED);
    let messages = server.messages();
    assert!(messages.contains("tokens: line 1"), "{messages}");
    assert_eq!((put("old"), put("new")), (Some(0), Some(3)));
    timeout("a", "10");
    // The opposite case: valid tokens, and users that are not valid.
    change("token app write >wren\n", "user default on +fly");
    reload(&server, FAILED);
    assert_eq!((put("old"), put("new")), (Some(0), Some(3)));
    timeout("a", "10");
    change("token app write >wren\n", users);
    reload(&server, RELOADED);
    assert_eq!((put("old"), put("new")), (Some(3), Some(0)));
    timeout("b", "30");
}

/// Regression test: after a reload, the store used the files that the settings named at its start.
#[test]
fn the_store_uses_the_certificate_that_a_reloaded_file_names() {
    let folder = Folder::new();
    let named = |name: &str, more: &str| {
        let files = format!("tls-cert = '{name}.cert'\ntls-key = '{name}.key'\n{more}");
        folder.file("a.toml", files);
    };
    for name in ["one", "two"] {
        certificates(&folder, name);
        for kind in ["cert", "key"] {
            let from = folder.path(&format!("{kind}.pem"));
            std::fs::rename(from, folder.path(&format!("{name}.{kind}"))).expect("a rename");
        }
    }
    named("one", "timeout = '10s'");
    let server = folder.serve(&[&STORE[..], &["--grpc=tls:127.0.0.1:0"]].concat(), &[]);
    let port = store_of(&server).rsplit(':').next().expect("a port").to_owned();
    let put = |ca: &str| {
        let address = format!("grpcs://localhost:{port}");
        folder.run(&["store", "put", &address, "a", "1", "--tls-ca", ca]).status
    };
    assert_eq!((put("one.ca"), put("two.ca")), (Some(0), Some(3)));
    // A reload cannot change whether clients need a certificate: it fails and changes nothing.
    named("two", "tls-client-ca = 'one.ca'\ntimeout = '30s'");
    reload(&server, FAILED);
    let refused = "the store: certificates of clients cannot be switched on or off";
    assert!(server.messages().contains(refused), "{}", server.messages());
    assert_eq!((put("one.ca"), put("two.ca")), (Some(0), Some(3)));
    assert_eq!(server.config("timeout"), "10");
    named("two", "timeout = '30s'");
    reload(&server, RELOADED);
    assert_eq!((put("one.ca"), put("two.ca")), (Some(3), Some(0)));
    assert_eq!(server.config("timeout"), "30");
}
