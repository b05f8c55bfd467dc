//! Tests commands with several clients at once.

use crate::harness::Harness;
use nuthatch_server::resp::commands::{Client, Failure};
use nuthatch_server::state::{Endpoints, TooManyClients};

#[test]
fn a_watched_key_that_another_client_writes_stops_the_transaction() {
    let harness = Harness::new();
    let (mut one, mut other) = (harness.client(), harness.client());
    for (before, between, expected) in [
        ("SET k 1", "SET k 1", "*-1\r\n"),
        ("SET k 1", "SET k 2", "*-1\r\n"),
        ("SET k 1", "APPEND k 2", "*-1\r\n"),
        ("SET k 1", "INCR k", "*-1\r\n"),
        ("SET k 1", "DEL k", "*-1\r\n"),
        ("SET k 1", "FLUSHALL", "*-1\r\n"),
        ("SET k 1", "EXPIRE k 100", "*-1\r\n"),
        ("DEL k", "SET k 1", "*-1\r\n"),
        ("SET k 1", "GET k", "*1\r\n$4\r\nmine\r\n"),
        ("SET k 1", "SET other 1", "*1\r\n$4\r\nmine\r\n"),
        ("DEL k", "DEL k", "*1\r\n$4\r\nmine\r\n"),
    ] {
        harness.ask(&mut one, before);
        assert_eq!(harness.ask(&mut one, "WATCH k"), "+OK\r\n");
        harness.ask(&mut other, between);
        assert_eq!(harness.ask(&mut one, "MULTI"), "+OK\r\n");
        assert_eq!(harness.ask(&mut one, "ECHO mine"), "+QUEUED\r\n");
        assert_eq!(harness.ask(&mut one, "EXEC"), expected, "{before}, {between}");
    }
}

#[test]
fn exec_fails_after_a_change_since_watch_and_a_later_watch_starts_over() {
    let harness = Harness::new();
    let (mut one, mut other) = (harness.client(), harness.client());
    harness.ask(&mut one, "WATCH k");
    harness.ask(&mut one, "MULTI");
    harness.ask(&mut one, "SET k one");
    harness.ask(&mut other, "SET k other");
    assert_eq!(harness.ask(&mut one, "EXEC"), "*-1\r\n");
    assert_eq!(harness.ask(&mut one, "GET k"), "$5\r\nother\r\n");
    harness.ask(&mut one, "WATCH k");
    harness.ask(&mut one, "MULTI");
    harness.ask(&mut one, "SET k one");
    assert_eq!(harness.ask(&mut one, "EXEC"), "*1\r\n+OK\r\n");
    assert_eq!(harness.ask(&mut other, "GET k"), "$3\r\none\r\n");
}

#[test]
fn exec_fails_if_a_watched_key_expires_but_not_if_it_had_expired_before() {
    let harness = Harness::new();
    let mut client = harness.client();
    harness.ask(&mut client, "SET k 1 PX 1000");
    harness.ask(&mut client, "WATCH k");
    harness.wait_ms(1000);
    harness.ask(&mut client, "MULTI");
    assert_eq!(harness.ask(&mut client, "EXEC"), "*-1\r\n");
    harness.ask(&mut client, "WATCH k");
    harness.ask(&mut client, "MULTI");
    assert_eq!(harness.ask(&mut client, "EXEC"), "*0\r\n");
}

#[test]
fn transactions_of_two_threads_lose_no_increment() {
    const EACH: u32 = 300;
    let harness = Harness::new();
    harness.ask(&mut harness.client(), "SET k 0");
    let count = || {
        let metrics = harness.server.thread();
        let client = harness.server.connect(&metrics, Endpoints::default(), 0);
        let (mut client, mut session) = (client.expect("a connection"), harness.session());
        let mut ask = |request: &[&[u8]], alone: bool| {
            let mut guard = session.guard();
            if alone {
                guard.begin_exclusive();
            }
            let answer = harness.bytes_in(&guard, &mut client, request).expect("there is room");
            String::from_utf8(answer).expect("a text")
        };
        let mut counted = 0;
        while counted < EACH {
            ask(&[b"WATCH", b"k"], false);
            let seen = ask(&[b"GET", b"k"], false);
            let seen: u32 = seen.lines().nth(1).expect("a value").parse().expect("a number");
            ask(&[b"MULTI"], false);
            ask(&[b"SET", b"k", (seen + 1).to_string().as_bytes()], false);
            counted += u32::from(ask(&[b"EXEC"], true) == "*1\r\n+OK\r\n");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(count);
        scope.spawn(count);
    });
    let total = harness.ask(&mut harness.client(), "GET k");
    assert_eq!(total, format!("$3\r\n{}\r\n", 2 * EACH));
}

#[test]
fn queued_requests_have_no_effect_before_exec() {
    let harness = Harness::new();
    let (mut one, mut other) = (harness.client(), harness.client());
    harness.ask(&mut one, "MULTI");
    harness.ask(&mut one, "SET k 1");
    assert_eq!(harness.ask(&mut other, "GET k"), "$-1\r\n");
    assert!(
        harness
            .ask(&mut other, "CLIENT LIST")
            .contains(" flags=x db=0 sub=0 psub=0 ssub=0 multi=1 ")
    );
    harness.ask(&mut one, "EXEC");
    assert_eq!(harness.ask(&mut other, "GET k"), "$1\r\n1\r\n");
    assert!(!harness.ask(&mut other, "CLIENT LIST").contains("flags=x"));
}

#[test]
fn transactions_have_a_maximum_length() {
    let harness = Harness::new();
    let mut client = harness.client();
    harness.ask(&mut client, "MULTI");
    let value = vec![b'v'; 1 << 20];
    let mut queued = 0;
    let refusal = loop {
        let answer = harness.bytes(&mut client, &[b"SET", b"k", &value]);
        if answer != b"+QUEUED\r\n" {
            break answer;
        }
        queued += 1;
        assert!(queued < 100, "queued without an end");
    };
    assert_eq!(refusal, b"-ERR the transaction exceeds 64 MiB\r\n");
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(harness.ask(&mut client, "EXEC"), aborted);
}

#[test]
fn a_command_without_memory_in_a_transaction_has_an_error_reply() {
    let harness = Harness::new();
    let mut client = harness.client();
    let value = vec![b'v'; harness.server.cache.max_value_len()];
    // Until no memory is left for requests under this guard.
    let mut session = harness.session();
    let guard = session.guard();
    let mut number = 0u32;
    while let Ok(answer) =
        harness.bytes_in(&guard, &mut client, &[b"SET", &number.to_le_bytes(), &value])
    {
        assert_eq!(answer, b"+OK\r\n");
        number += 1;
        assert!(number < 10_000, "room without an end");
    }
    for request in [&[&b"MULTI"[..]][..], &[b"SET", b"k", &value], &[b"PING"]] {
        harness.bytes_in(&guard, &mut client, request).expect("needs no room");
    }
    let answer = harness.bytes_in(&guard, &mut client, &[b"EXEC"]).expect("an answer");
    let expected = "*2\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n+PONG\r\n";
    assert_eq!(String::from_utf8_lossy(&answer), expected);
    let full = harness.bytes_in(&guard, &mut client, &[b"SET", b"k", &value]);
    assert_eq!(full, Err(Failure::Full));
}

#[test]
fn clients_are_listed_until_they_disconnect() {
    let harness = Harness::new();
    let (mut one, mut other) = (harness.client(), harness.client());
    harness.ask(&mut one, "CLIENT SETNAME first");
    harness.ask(&mut one, "CLIENT SETINFO LIB-NAME rs");
    harness.wait_ms(5000);
    other.set_buffers(10, 20, 30, 30);
    let list = harness.ask(&mut other, "CLIENT LIST");
    let lines: Vec<_> = list.lines().skip(1).filter(|line| !line.is_empty()).collect();
    let expected = "id=1 addr=127.0.0.1:40000 laddr=127.0.0.1:6379 fd=8 name=first age=5 idle=5 \
                    flags=N db=0 ";
    assert!(lines[0].starts_with(expected), "{list}");
    assert!(
        lines[0].contains(" cmd=client|setinfo user=default ") && lines[0].contains("lib-name=rs")
    );
    assert!(lines[1].starts_with("id=2 ") && lines[1].contains(" qbuf=10 qbuf-free=20 "), "{list}");
    assert_eq!(lines.len(), 2);
    assert_eq!(harness.ask(&mut other, "CLIENT LIST ID 1").lines().count(), 3);
    drop(one);
    assert_eq!(harness.server.clients.len(), 1);
    assert!(!harness.ask(&mut other, "CLIENT LIST").contains("id=1 "));
}

#[test]
fn a_killed_client_was_listed_until_its_thread_closed_it() {
    let harness = Harness::new();
    let (mut one, other) = (harness.client(), harness.client());
    assert_eq!(harness.ask(&mut one, "CLIENT KILL ID 2"), ":1\r\n");
    assert!(other.is_killed());
    for words in ["CLIENT LIST", "CLIENT LIST ID 1 2", "CLIENT LIST TYPE normal"] {
        let list = harness.ask(&mut one, words);
        assert!(list.contains("id=1 ") && !list.contains("id=2 "), "{words}: {list}");
    }
}

#[test]
fn a_client_that_is_killed_is_marked() {
    let harness = Harness::new();
    let (mut one, mut other) = (harness.client(), harness.client());
    let before = harness.server.clients.kills();
    assert_eq!(harness.ask(&mut one, "CLIENT KILL ID 1"), ":0\r\n", "it spares itself");
    assert_eq!(harness.ask(&mut one, "CLIENT KILL ID 2"), ":1\r\n");
    assert!(other.is_killed() && !one.is_killed());
    assert_ne!(harness.server.clients.kills(), before);
    assert_eq!(harness.ask(&mut one, "CLIENT KILL ID 2"), ":0\r\n", "it is dead already");
    assert_eq!(harness.ask(&mut other, "CLIENT KILL 127.0.0.1:40000"), "+OK\r\n");
    assert!(one.is_killed());
    let mut third = harness.client();
    assert_eq!(harness.ask(&mut third, "CLIENT KILL SKIPME no"), ":1\r\n");
    assert!(third.closing, "its answer is sent first");
}

#[test]
fn replies_are_off_until_they_are_on() {
    let harness = Harness::new();
    let mut client = harness.client();
    for (request, expected) in [
        ("CLIENT REPLY OFF", ""),
        ("PING", ""),
        ("FOO", ""),
        ("CLIENT REPLY SKIP", ""),
        ("PING", ""),
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("PING", "+PONG\r\n"),
        ("CLIENT REPLY SKIP", ""),
        ("PING", ""),
        ("PING", "+PONG\r\n"),
        ("CLIENT REPLY SKIP", ""),
        ("CLIENT REPLY SKIP", ""),
        ("FOO", ""),
        ("PING", "+PONG\r\n"),
    ] {
        assert_eq!(harness.ask(&mut client, request), expected, "{request}");
    }
}

#[test]
fn clients_beyond_the_maximum_are_refused() {
    let harness = Harness::new();
    let mut client = harness.client();
    harness.ask(&mut client, "CONFIG SET maxclients 1");
    let refused = harness.server.connect(&harness.metrics, Endpoints::default(), 0);
    assert_eq!(refused.map(|client: Client| client.id), Err(TooManyClients));
    assert_eq!(TooManyClients::TEXT, "ERR max number of clients reached");
    assert!(harness.ask(&mut client, "INFO stats").contains("\r\nrejected_connections:1\r\n"));
}

#[test]
fn a_client_may_ask_for_the_newer_protocol() {
    let harness = Harness::new();
    let mut client = harness.client();
    let hello = harness.ask(&mut client, "HELLO 3 SETNAME me");
    assert!(hello.starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"), "{hello}");
    assert!(hello.contains("$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n"), "{hello}");
    assert_eq!(harness.ask(&mut client, "CLIENT GETNAME"), "$2\r\nme\r\n");
    assert_eq!(harness.ask(&mut client, "GET absent"), "_\r\n");
    assert!(harness.ask(&mut client, "CLIENT INFO").contains(" resp=3 "));
    harness.ask(&mut client, "RESET");
    assert_eq!(harness.ask(&mut client, "GET absent"), "$-1\r\n");
}

/// Regression test: these names used memory that was not counted.
#[test]
fn client_names_have_a_maximum_length() {
    let harness = Harness::new();
    let mut client = harness.client();
    let (longest, too_long) = ("n".repeat(1024), "n".repeat(1025));
    for (request, what) in [
        ("CLIENT SETNAME", "Client names"),
        ("CLIENT SETINFO LIB-NAME", "lib-name"),
        ("CLIENT SETINFO LIB-VER", "lib-ver"),
        ("HELLO 3 SETNAME", "Client names"),
    ] {
        let refused = format!("-ERR {what} cannot have more than 1024 bytes\r\n");
        assert_eq!(harness.ask(&mut client, &format!("{request} {too_long}")), refused);
        let answer = harness.ask(&mut client, &format!("{request} {longest}"));
        assert!(!answer.starts_with('-'), "{request}: {answer}");
    }
}
