//! Tests keys, values, lines, counts and lengths beyond their limits.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, ask, ask_last, framed, get, miss, set};
use nuthatch_cache::Cache;

/// Requests that end a connection in RESP, with the text after `-ERR Protocol error: `.
#[test]
fn lengths_and_counts_of_resp_are_refused() {
    let subject = Subject::new();
    let mistakes: [(&str, &str); 15] = [
        ("*1048577\r\n", "invalid multibulk length"),
        ("*2147483648\r\n", "invalid multibulk length"),
        ("*99999999999999999999\r\n", "invalid multibulk length"),
        ("*-99999999999999999999\r\n", "invalid multibulk length"),
        ("*+1\r\n", "invalid multibulk length"),
        ("*\r\n", "invalid multibulk length"),
        ("*1x\r\n", "invalid multibulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$99999999999999999999\r\n", "invalid bulk length"),
        ("*1\r\n$\r\n", "invalid bulk length"),
        ("*1\r\n$1 \r\n", "invalid bulk length"),
        ("*3\r\n$3\r\nSET\r\n$536870912\r\n", ""),
        ("*1\r\n$4\r\nPINGPONG\r\n", "expected CRLF after an argument"),
        ("*1\r\n:4\r\n", "expected '$', got ':'"),
        ("\"PING\r\n", "unbalanced quotes in request"),
    ];
    for (request, text) in mistakes {
        if text.is_empty() {
            // The longest line that is allowed: the server does not know yet that it is too long.
            let mut stream = subject.connect(RESP);
            ask(&mut stream, format!("PING\r\n{request}").as_bytes(), b"+PONG\r\n");
            continue;
        }
        let answer = format!("+PONG\r\n-ERR Protocol error: {text}\r\n");
        let request = format!("PING\r\n{request}");
        ask_last(&mut subject.connect(RESP), request.as_bytes(), answer.as_bytes());
    }
    subject.is_well();
}

#[test]
fn lines_of_resp_have_a_maximum_length() {
    let subject = Subject::new();
    let long = "1".repeat((64 << 10) + 1);
    for (begin, text) in [
        ("", "too big inline request"),
        ("*", "too big mbulk count string"),
        ("*1\r\n$", "too big bulk count string"),
    ] {
        let answer = format!("-ERR Protocol error: {text}\r\n");
        let mut stream = subject.connect(RESP);
        ask_last(&mut stream, format!("{begin}{long}").as_bytes(), answer.as_bytes());
    }
    subject.is_well();
}

#[test]
fn keys_that_are_too_long_are_refused_and_the_connection_stays_open() {
    let subject = Subject::new();
    let longest = "k".repeat(Cache::MAX_KEY_LEN);
    let too_long = "k".repeat(Cache::MAX_KEY_LEN + 1);
    let text = "a key of 65537 bytes is too long: at most 65536 can be stored";
    let mut resp = subject.connect(RESP);
    let (request, stored) = set(RESP, &longest, b"v");
    ask(&mut resp, &request, stored);
    let (request, found) = get(RESP, &longest, b"v");
    ask(&mut resp, &request, &found);
    let (request, _) = set(RESP, &too_long, b"v");
    ask(&mut resp, &request, format!("-ERR {text}\r\n").as_bytes());
    let appends = framed(&[b"APPEND", too_long.as_bytes(), b"v"]);
    ask(&mut resp, &appends, format!("-ERR {text}\r\n").as_bytes());
    for name in [&b"GET"[..], b"GETDEL"] {
        ask(&mut resp, &framed(&[name, too_long.as_bytes()]), miss(RESP));
    }
    ask(&mut resp, &framed(&[b"DEL", too_long.as_bytes()]), b":0\r\n");

    let mut pmc = subject.connect(PMC);
    let (request, found) = get(PMC, &longest, b"v");
    ask(&mut pmc, &request, &found);
    let (request, _) = set(PMC, &too_long, b"v");
    ask(&mut pmc, &request, format!("ERROR: {text}\x1f").as_bytes());
    let (request, _) = get(PMC, &too_long, b"v");
    ask(&mut pmc, &request, miss(PMC));

    // The longest key that a request of mrcache can have is 65,535 bytes.
    let mut mrcache = subject.connect(MRCACHE);
    let longest = "m".repeat(65_535);
    let (request, found) = get(MRCACHE, &longest, b"v");
    ask(&mut mrcache, &[set(MRCACHE, &longest, b"v").0, request].concat(), &found);
    subject.is_well();
}

#[test]
fn keys_of_memcached_are_of_250_bytes_at_most() {
    let subject = Subject::new();
    let mut stream = subject.connect(MEMCACHE);
    let (longest, too_long) = ("k".repeat(250), "k".repeat(251));
    let (request, stored) = set(MEMCACHE, &longest, b"v");
    ask(&mut stream, &request, stored);
    let (request, found) = get(MEMCACHE, &longest, b"v");
    ask(&mut stream, &request, &found);
    let bad = b"CLIENT_ERROR bad command line format\r\n";
    // The bytes after the line are no request, whatever they look like.
    let block = b"delete k\r\nflush_all";
    let (request, _) = set(MEMCACHE, &too_long, block);
    ask(&mut stream, &request, bad);
    for line in ["get K", "gets k K", "gat 0 K", "incr K 1", "touch K 1", "delete K", "mg K v"] {
        ask(&mut stream, format!("{line}\r\n").replace('K', &too_long).as_bytes(), bad);
    }
    ask(
        &mut stream,
        format!("ms {too_long} 2\r\nmn\r\nmn\r\n").as_bytes(),
        &[bad, &b"MN\r\n"[..]].concat(),
    );
    let (request, found) = get(MEMCACHE, &longest, b"v");
    ask(&mut stream, &request, &found);
}

#[test]
fn lengths_of_memcached_are_refused() {
    let subject = Subject::new();
    let mut stream = subject.connect(MEMCACHE);
    let bad = "CLIENT_ERROR bad command line format\r\n";
    for (request, answer) in [
        ("set k 4294967296 0 1\r\n1\r\n", bad),
        ("set k 0 9223372036854775808 1\r\n1\r\n", bad),
        ("cas k 0 0 1 18446744073709551616\r\n1\r\n", bad),
        ("\r\n", "ERROR\r\n"),
        ("set k 0 0 1\r\n1\r\n", "STORED\r\n"),
        ("incr k 18446744073709551616\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
        ("incr k -1\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
        ("touch k 9223372036854775808\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
        ("incr k 18446744073709551615\r\n", "0\r\n"),
        ("mg k T9223372036854775808\r\n", "CLIENT_ERROR bad token in command line format\r\n"),
    ] {
        ask(&mut stream, request.as_bytes(), answer.as_bytes());
    }
}

#[test]
fn lines_of_memcached_have_a_maximum_length() {
    let subject = Subject::new();
    let too_long = b"CLIENT_ERROR line too long\r\n";
    ask_last(&mut subject.connect(MEMCACHE), &[b's'; 2051], too_long);
    ask_last(&mut subject.connect(MEMCACHE), "set ".repeat(600).as_bytes(), too_long);
    // Lines with many keys may be longer, and are limited as well.
    let keys = "get ".to_owned() + &"key ".repeat((8 << 20) / 4 + 1);
    ask_last(&mut subject.connect(MEMCACHE), keys.as_bytes(), too_long);
    subject.is_well();
}

#[test]
fn values_that_are_too_long_are_refused() {
    let subject = Subject::new();
    let too_long = vec![b'v'; subject.cache.max_value_len() + 1];
    let longest = &too_long[1..];
    for listener in [MEMCACHE, RESP] {
        let mut stream = subject.connect(listener);
        let (request, stored) = set(listener, "k", longest);
        ask(&mut stream, &request, stored);
        let (ask_for, found) = get(listener, "k", longest);
        ask(&mut stream, &ask_for, &found);
        let (request, _) = set(listener, "k", &too_long);
        // Redis keeps the old value, as for every refused request; memcached does not.
        if listener == RESP {
            let (len, max) = (too_long.len(), longest.len());
            let refusal = format!(
                "-ERR Protocol error: invalid bulk length: {len} bytes exceed the limit of {max} \
                 (5/8 of maxmemory)\r\n"
            );
            ask(&mut stream, &request[..40], refusal.as_bytes());
            ask(&mut subject.connect(RESP), &ask_for, &found);
        } else {
            ask(&mut stream, &request, b"SERVER_ERROR object too large for cache\r\n");
            ask(&mut stream, &ask_for, miss(listener));
        }
    }
    let mut resp = subject.connect(RESP);
    let refusal = b"-ERR string exceeds maximum allowed size (5/8 of maxmemory)\r\n";
    ask(&mut resp, b"APPEND k x\r\n", refusal);
    let refusal = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    ask(&mut resp, b"SETRANGE k 1099511627776 x\r\n", refusal);
    ask(&mut resp, b"SETRANGE k -1 x\r\n", b"-ERR offset is out of range\r\n");
    let text = b"-ERR bit offset is not an integer or out of range\r\n";
    ask(&mut resp, b"SETBIT k 1099511627776 1\r\n", text);
    subject.is_well();
}

/// A value that is gathered with its request needs its memory twice.
#[test]
fn the_longest_values_of_poor_mans_cache_and_mrcache_are_stored() {
    let subject = Subject::new();
    let longest = vec![b'v'; subject.cache.memory() as usize / 8 * 3];
    for listener in [PMC, MRCACHE] {
        let mut stream = subject.connect(listener);
        let (request, stored) = set(listener, "k", &longest);
        ask(&mut stream, &request, stored);
        let (request, found) = get(listener, "k", &longest);
        ask(&mut stream, &request, &found);
        subject.is_well();
    }
}

#[test]
fn an_endless_message_of_poor_mans_cache_is_refused() {
    let subject = Subject::new();
    let max = subject.cache.memory() as usize / 8 * 3 + Cache::MAX_KEY_LEN + 5;
    let message = vec![b'x'; max + 1];
    let answer = format!("OK\x1fERROR: Request is longer than {max} bytes (3/8 of maxmemory)\x1f");
    let request = [b"SET k v\x1f", &*message].concat();
    ask_last(&mut subject.connect(PMC), &request, answer.as_bytes());
    ask_last(
        &mut subject.connect(PMC),
        b"*1\r\n$-1\r\n",
        b"-ERR Protocol error: invalid bulk length\r\n",
    );
    subject.is_well();
}

/// The protocol has no reply for errors.
#[test]
fn errors_in_mrcache_end_the_connection() {
    let subject = Subject::new();
    let too_long = (subject.cache.max_value_len() as u32 + 1).to_le_bytes();
    let mistakes: [&[u8]; 6] = [
        b"\0\0",
        b"\0\x06\x01\0k",
        b"\xff\xff\xff\xff",
        b"\0\x02\x01\0\xff\xff\xff\xff",
        b"\0\x04\x01\0\0\0\0\x80",
        &[&b"\0\x02\x01\0"[..], &too_long].concat(),
    ];
    for mistake in mistakes {
        let (request, found) = get(MRCACHE, "k", b"v");
        let before = [set(MRCACHE, "k", b"v").0, request].concat();
        ask_last(&mut subject.connect(MRCACHE), &[&*before, mistake].concat(), &found);
    }
    subject.is_well();
}
