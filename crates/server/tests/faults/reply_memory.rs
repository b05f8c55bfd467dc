//! Tests small requests with large replies.

use crate::{MEMCACHE, RESP, Subject, ask, framed, set};
use nuthatch_cache::{Eviction, Options};
use std::io::{Read, Write};

static VALUE: [u8; 60_000] = [b'v'; 60_000];
/// The keys of a request: their values together would have 6 GB.
const KEYS: usize = 100_000;

const TOO_LONG: &str = "-ERR the reply is longer than the free memory for connections\r\n";

#[test]
fn the_reply_to_one_request_fits_into_memory() {
    let subject = Subject::new();
    let mut resp = subject.connect(RESP);
    let (request, stored) = set(RESP, "k", &VALUE);
    ask(&mut resp, &request, stored);
    let mut args = vec![&b"MGET"[..]];
    args.resize(1 + KEYS, b"k");
    ask(&mut resp, &framed(&args), TOO_LONG.as_bytes());
    let mut memcache = subject.connect(MEMCACHE);
    for verb in ["get", "gets", "gat 0"] {
        let line = format!("{verb}{}\r\n", " k".repeat(KEYS));
        let text = b"SERVER_ERROR out of memory writing get response\r\n";
        ask(&mut memcache, line.as_bytes(), text);
    }
    ask(&mut memcache, b"mn\r\n", b"MN\r\n");
    subject.is_well();
    // A reply that fits is sent.
    args.truncate(1 + 200);
    let answer = [b"$60000\r\n", &VALUE[..], b"\r\n"].concat().repeat(200);
    ask(&mut resp, &framed(&args), &[b"*200\r\n", &*answer].concat());
}

/// The reply to a name of a few bytes has hundreds of bytes.
#[test]
fn replies_that_repeat_a_value_fit_into_memory() {
    let subject = Subject::with(Options::MIN_MEMORY, Eviction::S3Fifo, 1);
    let mut stream = subject.connect(RESP);
    for words in [["COMMAND", "INFO", "client"], ["COMMAND", "DOCS", "get"], ["CLIENT", "ID", "1"]]
    {
        let mut args: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        if words[0] == "CLIENT" {
            args.splice(1..1, [&b"LIST"[..]]);
        }
        args.resize(200_000, words[2].as_bytes());
        ask(&mut stream, &framed(&args), TOO_LONG.as_bytes());
        subject.is_well();
    }
    stream.write_all(b"CLIENT LIST ID 1 1 7 1\r\nQUIT\r\n").expect("sent");
    let mut list = String::new();
    stream.read_to_string(&mut list).expect("a list");
    assert_eq!(list.matches(" addr=127.0.0.1:").count(), 3, "{list}");
}

/// Regression test: a refused `MGET` removed the replies before its own, too.
#[test]
fn a_reply_without_memory_leaves_earlier_replies() {
    let subject = Subject::new();
    for (listener, verb, too_long) in [
        (RESP, "MGET", TOO_LONG),
        (MEMCACHE, "get", "SERVER_ERROR out of memory writing get response\r\n"),
    ] {
        let mut stream = subject.connect(listener);
        let (request, stored) = set(listener, "k", &VALUE);
        ask(&mut stream, &request, stored);
        let ping = if listener == RESP { ("PING\r\n", "+PONG\r\n") } else { ("mn\r\n", "MN\r\n") };
        let line = format!("{verb}{}\r\n", " k".repeat(600));
        let requests = ping.0.repeat(1000) + &line + ping.0;
        let answers = ping.1.repeat(1000) + too_long + ping.1;
        ask(&mut stream, requests.as_bytes(), answers.as_bytes());
    }
}

/// Each requests a little less than the memory holds, at the same moment, and none of them reads.
#[test]
fn many_long_replies_at_once_fit_into_memory() {
    let subject = Subject::new();
    let mut control = subject.connect(RESP);
    let (request, stored) = set(RESP, "k", &VALUE);
    ask(&mut control, &request, stored);
    let mut args = vec![&b"MGET"[..]];
    args.resize(1 + 150, b"k");
    let many = framed(&args);
    let pipeline = framed(&[b"GET", b"k"]).repeat(150);
    let mut streams: Vec<_> = (0..100).map(|_| subject.connect(RESP)).collect();
    for (stream, request) in streams.iter_mut().zip([many, pipeline].iter().cycle()) {
        stream.write_all(request).expect("sent");
    }
    for _ in 0..100 {
        subject.is_well();
    }
    drop((streams, control));
    subject.wait_until_alone();
}

/// All of it is executed, and as many replies as fit are complete.
#[test]
fn replies_of_a_transaction_fit_into_memory() {
    const REQUESTS: usize = 5000;
    let subject = Subject::new();
    let mut stream = subject.connect(RESP);
    let (request, stored) = set(RESP, "k", &VALUE);
    ask(&mut stream, &request, stored);
    ask(&mut stream, b"MULTI\r\n", b"+OK\r\n");
    for _ in 0..REQUESTS {
        ask(&mut stream, b"GET k\r\nINCR n\r\n", b"+QUEUED\r\n+QUEUED\r\n");
    }
    stream.write_all(b"EXEC\r\nGET n\r\n").expect("sent");
    ask(&mut stream, b"", format!("*{}\r\n", 2 * REQUESTS).as_bytes());
    let (mut values, mut errors) = (0, 0);
    for _ in 0..REQUESTS {
        let mut first = [0];
        stream.read_exact(&mut first).expect("an answer");
        if first == *b"$" {
            ask(&mut stream, b"", &[b"60000\r\n", &VALUE[..], b"\r\n"].concat());
            values += 1;
        } else {
            ask(&mut stream, b"", &TOO_LONG.as_bytes()[1..]);
            errors += 1;
        }
        let number = values + errors;
        if errors == 0 {
            ask(&mut stream, b"", format!(":{number}\r\n").as_bytes());
        } else {
            // Whether short replies fit or not, there is a reply.
            let mut first = [0];
            stream.read_exact(&mut first).expect("an answer");
            let rest =
                if first == *b":" { format!("{number}\r\n") } else { TOO_LONG[1..].to_owned() };
            ask(&mut stream, b"", rest.as_bytes());
        }
    }
    assert!(values > 100 && errors > 100, "{values} values, {errors} errors");
    let answer = format!("${}\r\n{REQUESTS}\r\n", REQUESTS.to_string().len());
    ask(&mut stream, b"", answer.as_bytes());
    subject.is_well();
}

/// A request that is queued for `EXEC` uses memory like one that waits to be executed.
#[test]
fn queued_transactions_fit_into_memory() {
    let subject = Subject::new();
    let mut streams = Vec::new();
    for _ in 0..40 {
        let mut stream = subject.connect(RESP);
        ask(&mut stream, b"MULTI\r\n", b"+OK\r\n");
        let queued = framed(&[b"SET", b"k", &VALUE]).repeat(50);
        // The server may refuse it, and close its connection.
        let _ = stream.write_all(&queued);
        subject.is_well();
        streams.push(stream);
    }
    drop(streams);
    subject.wait_until_alone();
    subject.is_well();
    let memory = subject.cache.stats().memory;
    assert!(memory < 8 << 20, "{memory} bytes are left");
}
