//! Tests commands with several clients at once.

use crate::house::House;
use nuthatch_server::resp::commands::{Client, Failure};
use nuthatch_server::state::{Endpoints, TooManyClients};

#[test]
fn a_watched_key_that_another_client_writes_stops_the_transaction() {
    let house = House::new();
    let (mut one, mut other) = (house.client(), house.client());
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
        house.ask(&mut one, before);
        assert_eq!(house.ask(&mut one, "WATCH k"), "+OK\r\n");
        house.ask(&mut other, between);
        assert_eq!(house.ask(&mut one, "MULTI"), "+OK\r\n");
        assert_eq!(house.ask(&mut one, "ECHO mine"), "+QUEUED\r\n");
        assert_eq!(house.ask(&mut one, "EXEC"), expected, "{before}, {between}");
    }
}

#[test]
fn a_change_between_multi_and_exec_counts_and_a_later_watch_begins_anew() {
    let house = House::new();
    let (mut one, mut other) = (house.client(), house.client());
    house.ask(&mut one, "WATCH k");
    house.ask(&mut one, "MULTI");
    house.ask(&mut one, "SET k one");
    house.ask(&mut other, "SET k other");
    assert_eq!(house.ask(&mut one, "EXEC"), "*-1\r\n");
    assert_eq!(house.ask(&mut one, "GET k"), "$5\r\nother\r\n");
    house.ask(&mut one, "WATCH k");
    house.ask(&mut one, "MULTI");
    house.ask(&mut one, "SET k one");
    assert_eq!(house.ask(&mut one, "EXEC"), "*1\r\n+OK\r\n");
    assert_eq!(house.ask(&mut other, "GET k"), "$3\r\none\r\n");
}

#[test]
fn a_watched_key_that_expires_has_changed_and_one_that_had_expired_has_not() {
    let house = House::new();
    let mut client = house.client();
    house.ask(&mut client, "SET k 1 PX 1000");
    house.ask(&mut client, "WATCH k");
    house.wait_ms(1000);
    house.ask(&mut client, "MULTI");
    assert_eq!(house.ask(&mut client, "EXEC"), "*-1\r\n");
    house.ask(&mut client, "WATCH k");
    house.ask(&mut client, "MULTI");
    assert_eq!(house.ask(&mut client, "EXEC"), "*0\r\n");
}

#[test]
fn of_two_threads_that_count_together_none_loses_a_count() {
    const EACH: u32 = 300;
    let house = House::new();
    house.ask(&mut house.client(), "SET k 0");
    let count = || {
        let metrics = house.server.thread();
        let client = house.server.connect(&metrics, Endpoints::default(), 0);
        let (mut client, mut session) = (client.expect("a connection"), house.session());
        let mut ask = |request: &[&[u8]], alone: bool| {
            let mut guard = session.guard();
            if alone {
                guard.begin_exclusive();
            }
            let answer = house.bytes_in(&guard, &mut client, request).expect("there is room");
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
    let total = house.ask(&mut house.client(), "GET k");
    assert_eq!(total, format!("$3\r\n{}\r\n", 2 * EACH));
}

#[test]
fn queued_requests_are_seen_by_nobody_before_exec() {
    let house = House::new();
    let (mut one, mut other) = (house.client(), house.client());
    house.ask(&mut one, "MULTI");
    house.ask(&mut one, "SET k 1");
    assert_eq!(house.ask(&mut other, "GET k"), "$-1\r\n");
    assert!(
        house.ask(&mut other, "CLIENT LIST").contains(" flags=x db=0 sub=0 psub=0 ssub=0 multi=1 ")
    );
    house.ask(&mut one, "EXEC");
    assert_eq!(house.ask(&mut other, "GET k"), "$1\r\n1\r\n");
    assert!(!house.ask(&mut other, "CLIENT LIST").contains("flags=x"));
}

#[test]
fn a_transaction_has_an_end() {
    let house = House::new();
    let mut client = house.client();
    house.ask(&mut client, "MULTI");
    let value = vec![b'v'; 1 << 20];
    let mut queued = 0;
    let refusal = loop {
        let answer = house.bytes(&mut client, &[b"SET", b"k", &value]);
        if answer != b"+QUEUED\r\n" {
            break answer;
        }
        queued += 1;
        assert!(queued < 100, "queued without an end");
    };
    assert_eq!(refusal, b"-ERR the transaction is too long\r\n");
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(house.ask(&mut client, "EXEC"), aborted);
}

#[test]
fn what_there_is_no_room_for_in_a_transaction_is_an_answer() {
    let house = House::new();
    let mut client = house.client();
    let value = vec![b'v'; house.server.cache.max_value_len()];
    // Until no memory is left for requests under this guard.
    let mut session = house.session();
    let guard = session.guard();
    let mut number = 0u32;
    while let Ok(answer) =
        house.bytes_in(&guard, &mut client, &[b"SET", &number.to_le_bytes(), &value])
    {
        assert_eq!(answer, b"+OK\r\n");
        number += 1;
        assert!(number < 10_000, "room without an end");
    }
    for request in [&[&b"MULTI"[..]][..], &[b"SET", b"k", &value], &[b"PING"]] {
        house.bytes_in(&guard, &mut client, request).expect("needs no room");
    }
    let answer = house.bytes_in(&guard, &mut client, &[b"EXEC"]).expect("an answer");
    let expected = "*2\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n+PONG\r\n";
    assert_eq!(String::from_utf8_lossy(&answer), expected);
    let full = house.bytes_in(&guard, &mut client, &[b"SET", b"k", &value]);
    assert_eq!(full, Err(Failure::Full));
}

#[test]
fn clients_are_listed_until_they_go() {
    let house = House::new();
    let (mut one, mut other) = (house.client(), house.client());
    house.ask(&mut one, "CLIENT SETNAME first");
    house.ask(&mut one, "CLIENT SETINFO LIB-NAME rs");
    house.wait_ms(5000);
    other.set_buffers(10, 20, 30, 30);
    let list = house.ask(&mut other, "CLIENT LIST");
    let lines: Vec<_> = list.lines().skip(1).filter(|line| !line.is_empty()).collect();
    let expected = "id=1 addr=127.0.0.1:40000 laddr=127.0.0.1:6379 fd=8 name=first age=5 idle=5 \
                    flags=N db=0 ";
    assert!(lines[0].starts_with(expected), "{list}");
    assert!(
        lines[0].contains(" cmd=client|setinfo user=default ") && lines[0].contains("lib-name=rs")
    );
    assert!(lines[1].starts_with("id=2 ") && lines[1].contains(" qbuf=10 qbuf-free=20 "), "{list}");
    assert_eq!(lines.len(), 2);
    assert_eq!(house.ask(&mut other, "CLIENT LIST ID 1").lines().count(), 3);
    drop(one);
    assert_eq!(house.server.clients.len(), 1);
    assert!(!house.ask(&mut other, "CLIENT LIST").contains("id=1 "));
}

#[test]
fn a_killed_client_was_listed_until_its_thread_closed_it() {
    let house = House::new();
    let (mut one, other) = (house.client(), house.client());
    assert_eq!(house.ask(&mut one, "CLIENT KILL ID 2"), ":1\r\n");
    assert!(other.is_killed());
    for words in ["CLIENT LIST", "CLIENT LIST ID 1 2", "CLIENT LIST TYPE normal"] {
        let list = house.ask(&mut one, words);
        assert!(list.contains("id=1 ") && !list.contains("id=2 "), "{words}: {list}");
    }
}

#[test]
fn a_client_that_is_killed_is_marked() {
    let house = House::new();
    let (mut one, mut other) = (house.client(), house.client());
    let before = house.server.clients.kills();
    assert_eq!(house.ask(&mut one, "CLIENT KILL ID 1"), ":0\r\n", "it spares itself");
    assert_eq!(house.ask(&mut one, "CLIENT KILL ID 2"), ":1\r\n");
    assert!(other.is_killed() && !one.is_killed());
    assert_ne!(house.server.clients.kills(), before);
    assert_eq!(house.ask(&mut one, "CLIENT KILL ID 2"), ":0\r\n", "it is dead already");
    assert_eq!(house.ask(&mut other, "CLIENT KILL 127.0.0.1:40000"), "+OK\r\n");
    assert!(one.is_killed());
    let mut third = house.client();
    assert_eq!(house.ask(&mut third, "CLIENT KILL SKIPME no"), ":1\r\n");
    assert!(third.closing, "its answer is sent first");
}

#[test]
fn replies_are_off_until_they_are_on() {
    let house = House::new();
    let mut client = house.client();
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
        assert_eq!(house.ask(&mut client, request), expected, "{request}");
    }
}

#[test]
fn there_are_no_more_clients_than_there_may_be() {
    let house = House::new();
    let mut client = house.client();
    house.ask(&mut client, "CONFIG SET maxclients 1");
    let refused = house.server.connect(&house.metrics, Endpoints::default(), 0);
    assert_eq!(refused.map(|client: Client| client.id), Err(TooManyClients));
    assert_eq!(TooManyClients::TEXT, "ERR max number of clients reached");
    assert!(house.ask(&mut client, "INFO stats").contains("\r\nrejected_connections:1\r\n"));
}

#[test]
fn a_client_may_ask_for_the_newer_protocol() {
    let house = House::new();
    let mut client = house.client();
    let hello = house.ask(&mut client, "HELLO 3 SETNAME me");
    assert!(hello.starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n"), "{hello}");
    assert!(hello.contains("$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n"), "{hello}");
    assert_eq!(house.ask(&mut client, "CLIENT GETNAME"), "$2\r\nme\r\n");
    assert_eq!(house.ask(&mut client, "GET absent"), "_\r\n");
    assert!(house.ask(&mut client, "CLIENT INFO").contains(" resp=3 "));
    house.ask(&mut client, "RESET");
    assert_eq!(house.ask(&mut client, "GET absent"), "$-1\r\n");
}

/// Before, these names used memory that was not counted.
#[test]
fn names_that_clients_give_themselves_have_a_limit() {
    let house = House::new();
    let mut client = house.client();
    let (longest, too_long) = ("n".repeat(1024), "n".repeat(1025));
    for (request, what) in [
        ("CLIENT SETNAME", "Client names"),
        ("CLIENT SETINFO LIB-NAME", "lib-name"),
        ("CLIENT SETINFO LIB-VER", "lib-ver"),
        ("HELLO 3 SETNAME", "Client names"),
    ] {
        let refused = format!("-ERR {what} cannot have more than 1024 bytes\r\n");
        assert_eq!(house.ask(&mut client, &format!("{request} {too_long}")), refused);
        let answer = house.ask(&mut client, &format!("{request} {longest}"));
        assert!(!answer.starts_with('-'), "{request}: {answer}");
    }
}
