//! Tests a cache whose memory is used up.

use crate::{MEMCACHE, MRCACHE, PMC, RESP, Subject, ask, framed, get, miss, set};
use nuthatch_cache::{Eviction, Options};
use std::io::{Read, Write};

static VALUE: [u8; 20_000] = [b'v'; 20_000];

/// The reply when no memory is free, for each protocol that has one.
const OUT_OF_MEMORY: [&[u8]; 3] = [
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    b"SERVER_ERROR out of memory storing object\r\n",
    b"ERROR: the memory is used up\x1f",
];

/// Stores values until one is refused. Returns how many were stored.
fn fill(subject: &Subject, prefix: &str) -> usize {
    let mut stream = subject.connect(RESP);
    let max = (2 * subject.cache.memory()) as usize / VALUE.len();
    let stored = (0..max).take_while(|number| {
        let (request, _) = set(RESP, &format!("{prefix}:{number}"), &VALUE);
        stream.write_all(&request).expect("sent");
        let mut first = [0];
        stream.read_exact(&mut first).expect("an answer");
        let rest = if first == *b"+" { 4 } else { OUT_OF_MEMORY[RESP].len() - 1 };
        let mut answer = vec![0; rest];
        stream.read_exact(&mut answer).expect("an answer");
        assert!(first == *b"+" || answer == OUT_OF_MEMORY[RESP][1..]);
        first == *b"+"
    });
    let stored = stored.count();
    assert!(stored < max, "there is no end to the memory");
    stored
}

#[test]
fn without_eviction_writes_fail_until_keys_are_removed() {
    for threads in [1, 2] {
        let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, threads);
        let stored = fill(&subject, "k");
        assert!(stored * VALUE.len() > Options::MIN_MEMORY as usize / 4, "{stored} stored");
        for listener in [RESP, MEMCACHE, PMC] {
            let mut stream = subject.connect(listener);
            let (request, _) = set(listener, "new", &VALUE);
            ask(&mut stream, &request, OUT_OF_MEMORY[listener]);
            ask(&mut stream, &get(listener, "new", b"").0, miss(listener));
            // Existing keys are read as before, and the connection stays open.
            let (request, answer) = get(listener, "k:1", &VALUE);
            ask(&mut stream, &request, &answer);
        }
        let mut mrcache = subject.connect(MRCACHE);
        let (request, _) = get(MRCACHE, "new", b"");
        ask(&mut mrcache, &[set(MRCACHE, "new", &VALUE).0, request].concat(), miss(MRCACHE));
        subject.is_well();
        let mut stream = subject.connect(RESP);
        for number in 0..stored {
            ask(&mut stream, format!("DEL k:{number}\r\n").as_bytes(), b":1\r\n");
        }
        for listener in [RESP, MEMCACHE, PMC, MRCACHE] {
            let mut stream = subject.connect(listener);
            let (request, answer) = set(listener, "new", &VALUE);
            ask(&mut stream, &request, answer);
            let (request, answer) = get(listener, "new", &VALUE);
            ask(&mut stream, &request, &answer);
        }
        subject.is_well();
    }
}

/// Removes and stores in several rounds.
#[test]
fn removed_values_free_their_memory() {
    let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, 1);
    let mut stream = subject.connect(RESP);
    let first = fill(&subject, "k");
    for every in [1, 2, 3, 5, 7] {
        let keys = || (0..first).step_by(every);
        for number in keys() {
            ask(&mut stream, format!("DEL k:{number}\r\n").as_bytes(), b":1\r\n");
        }
        // The items between them are in the same segments, and are moved.
        for number in keys().take(keys().count() * 3 / 4) {
            let (request, answer) = set(RESP, &format!("k:{number}"), &VALUE);
            ask(&mut stream, &request, answer);
        }
        subject.is_well();
        ask(&mut stream, b"FLUSHALL\r\n", b"+OK\r\n");
        let again = fill(&subject, "k");
        assert!(again * 20 >= first * 19, "{first} values at first, {again} later");
        ask(&mut stream, b"FLUSHALL\r\n", b"+OK\r\n");
        for number in 0..first {
            // Another thread may briefly hold the memory for the last values.
            let (request, _) = set(RESP, &format!("k:{number}"), &VALUE[..VALUE.len() * 9 / 10]);
            ask(&mut stream, &request, b"+OK\r\n");
        }
    }
}

#[test]
fn with_eviction_writes_succeed_and_old_keys_are_evicted() {
    for (threads, memory) in [(1, Options::MIN_MEMORY), (2, 64 << 20)] {
        let subject = Subject::with(memory, Eviction::S3Fifo, threads);
        let count = 5 * memory as usize / VALUE.len();
        let mut streams = [RESP, MEMCACHE, PMC, MRCACHE].map(|one| (one, subject.connect(one)));
        for number in 0..count {
            let key = format!("k:{number}");
            let (listener, stream) = &mut streams[number % 4];
            let (request, answer) = set(*listener, &key, &VALUE);
            ask(stream, &request, answer);
            let (request, answer) = get(*listener, &key, &VALUE);
            ask(stream, &request, &answer);
            if number % 100 == 0 {
                let stats = subject.cache.stats();
                assert!(stats.memory <= stats.memory_limit, "{stats:?}");
            }
        }
        let (_, stream) = &mut streams[0];
        ask(stream, b"EXISTS k:0 k:1 k:2 k:3\r\n", b":0\r\n");
        let stats = subject.cache.stats();
        assert!(stats.evicted > 0 && stats.items < count as u64 / 4, "{stats:?}");
        subject.is_well();
    }
}

/// Buffers and open segments of each thread must leave some memory.
#[test]
fn the_minimum_of_memory_serves_many_threads() {
    for eviction in [Eviction::None, Eviction::S3Fifo] {
        let subject = Subject::with(Options::MIN_MEMORY, eviction, 8);
        for number in 0..40 {
            // The kernel selects the thread of each connection.
            let mut stream = subject.connect(RESP);
            let (request, answer) = set(RESP, &format!("k:{number}"), &VALUE);
            ask(&mut stream, &request, answer);
            let (request, answer) = get(RESP, &format!("k:{number}"), &VALUE);
            ask(&mut stream, &request, &answer);
            subject.is_well();
        }
        let mut stream = subject.connect(RESP);
        let (request, answer) = get(RESP, "k:0", &VALUE);
        ask(&mut stream, &request, &answer);
    }
}

/// No client sends a request: the event loops remove expired items by themselves.
#[test]
fn expired_keys_and_their_memory_are_freed_without_a_request() {
    for threads in [1, 2] {
        let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, threads);
        let mut streams: Vec<_> = (0..4).map(|_| subject.connect(RESP)).collect();
        for number in 0..2000 {
            let key = number.to_string();
            let px: &[u8] = if number % 500 == 0 { b"280000" } else { b"1500" };
            let set = framed(&[b"SET", key.as_bytes(), &VALUE[..5000], b"PX", px]);
            ask(&mut streams[number % 4], &set, b"+OK\r\n");
        }
        let full = subject.cache.stats();
        assert_eq!(full.items, 2000);
        subject.clock.set(1_700_000_004_000);
        while subject.cache.len() > 4 {
            std::thread::yield_now();
        }
        assert_eq!((subject.cache.len(), subject.cache.stats().expired), (4, 1996));
        while subject.cache.stats().memory_items > full.memory_items / 2 {
            std::thread::yield_now();
        }
        fill(&subject, "new");
        ask(&mut streams[0], b"EXISTS 0 500 1000 1500\r\n", b":4\r\n");
        subject.is_well();
    }
}

#[test]
fn mset_stores_all_keys_or_none_when_memory_is_used_up() {
    for command in [&b"MSET"[..], b"MSETNX"] {
        let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, 2);
        let mut stream = subject.connect(RESP);
        ask(&mut stream, b"SET old v\r\n", b"+OK\r\n");
        let stored = fill(&subject, "k");
        // Frees memory for some of the values.
        for number in 0..stored / 4 {
            ask(&mut stream, format!("DEL k:{number}\r\n").as_bytes(), b":1\r\n");
        }
        let first: &[u8] = if command == b"MSET" { b"old" } else { b"first" };
        let keys: Vec<_> = (0..stored / 2).map(|number| format!("new:{number}")).collect();
        let mut args = vec![command, first, b"w"];
        args.extend(keys.iter().flat_map(|key| [key.as_bytes(), &VALUE]));
        for _ in 0..2 {
            ask(&mut stream, &framed(&args), OUT_OF_MEMORY[RESP]);
            ask(&mut stream, b"EXISTS new:0 new:1 new:2 new:99 first\r\n", b":0\r\n");
            ask(&mut stream, b"GET old\r\n", b"$1\r\nv\r\n");
            ask(&mut stream, b"DBSIZE\r\n", format!(":{}\r\n", stored + 1 - stored / 4).as_bytes());
        }
        subject.is_well();
    }
}

/// Items are never changed in place: a command that changes an item writes it anew, and leaves the
/// old one if there is no memory for the new one.
#[test]
fn a_command_without_memory_leaves_its_keys_as_they_were() {
    let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, 1);
    fill(&subject, "k");
    let mut stream = subject.connect(RESP);
    let (mut get, old) = get(RESP, "k:7", &VALUE);
    get.extend(b"EXISTS other\r\n");
    let old = [&old[..], b":0\r\n"].concat();
    for args in [
        &[&b"RENAME"[..], b"k:7", b"other"][..],
        &[b"RENAMENX", b"k:7", b"other"],
        &[b"COPY", b"k:7", b"other"],
        &[b"APPEND", b"k:7", &VALUE],
        &[b"SETRANGE", b"k:7", b"30000", b"x"],
        &[b"GETSET", b"k:7", &VALUE],
        &[b"SET", b"k:7", &VALUE, b"GET"],
        &[b"EXPIRE", b"k:7", b"100"],
        &[b"GETEX", b"k:7", b"EX", b"100"],
        &[b"SETBIT", b"k:7", b"7", b"1"],
    ] {
        ask(&mut stream, &framed(args), OUT_OF_MEMORY[RESP]);
        ask(&mut stream, &get, &old);
    }
    // A transaction is executed to its end, as in Redis: each command has its own reply.
    let exec = [b"*3\r\n+OK\r\n", OUT_OF_MEMORY[RESP], b"+OK\r\n"].concat();
    ask(&mut stream, b"MULTI\r\n", b"+OK\r\n");
    ask(&mut stream, b"SET s v\r\n", b"+QUEUED\r\n");
    ask(&mut stream, &framed(&[b"APPEND", b"k:7", &VALUE]), b"+QUEUED\r\n");
    ask(&mut stream, b"SET s w\r\nEXEC\r\n", &[b"+QUEUED\r\n", &exec[..]].concat());
    ask(&mut stream, &get, &old);
}

/// Stores short values until there is no memory for one more.
fn fill_to_the_last(subject: &Subject) {
    let mut stream = subject.connect(RESP);
    fill(subject, "k");
    for number in 0..1_000_000 {
        stream.write_all(format!("SET s:{number} 1\r\n").as_bytes()).expect("sent");
        let mut first = [0];
        stream.read_exact(&mut first).expect("an answer");
        let rest = if first == *b"+" { 4 } else { OUT_OF_MEMORY[RESP].len() - 1 };
        stream.read_exact(&mut vec![0; rest]).expect("an answer");
        if first == *b"-" {
            return;
        }
    }
    panic!("there is no end to the memory");
}

/// Regression test: these commands wrote an expired item, for which there was no memory.
#[test]
fn commands_that_remove_an_item_need_no_memory() {
    let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, 1);
    fill_to_the_last(&subject);
    let mut resp = subject.connect(RESP);
    let mut memcache = subject.connect(MEMCACHE);
    for (number, (listener, request, answer)) in [
        (RESP, "EXPIRE s:0 -1\r\n", ":1\r\n"),
        (RESP, "PEXPIREAT s:1 1\r\n", ":1\r\n"),
        (RESP, "GETDEL s:2\r\n", "$1\r\n1\r\n"),
        (RESP, "GETEX s:3 PXAT 1\r\n", "$1\r\n1\r\n"),
        (MEMCACHE, "touch s:4 -1\r\n", "TOUCHED\r\n"),
        (MEMCACHE, "gat -1 s:5\r\n", "VALUE s:5 0 1\r\n1\r\nEND\r\n"),
        (MEMCACHE, "md s:6\r\n", "HD\r\n"),
        (RESP, "UNLINK s:7\r\n", ":1\r\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let stream = if listener == RESP { &mut resp } else { &mut memcache };
        ask(stream, request.as_bytes(), answer.as_bytes());
        ask(&mut resp, format!("EXISTS s:{number}\r\n").as_bytes(), b":0\r\n");
    }
}

/// A value that is appended to is written anew each time.
#[test]
fn without_eviction_a_growing_value_uses_the_memory_of_the_old_one() {
    let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, 1);
    let mut stream = subject.connect(RESP);
    for round in 0..50 {
        for len in 1..=10 {
            let append = framed(&[b"APPEND", b"k", &VALUE[..5000]]);
            ask(&mut stream, &append, format!(":{}\r\n", len * 5000).as_bytes());
        }
        ask(&mut stream, b"DEL k\r\n", b":1\r\n");
        assert_eq!(subject.cache.len(), 0, "in round {round}");
    }
}

/// The result of a command needs as much memory as the value, and both exist for a moment.
#[test]
fn a_value_computed_from_a_long_one_is_refused_if_both_do_not_fit() {
    const LEN: usize = 20 << 20;
    let subject = Subject::with(64 << 20, Eviction::S3Fifo, 1);
    let mut resp = subject.connect(RESP);
    let mut memcache = subject.connect(MEMCACHE);
    let (request, stored) = set(RESP, "k", &vec![b'v'; LEN]);
    ask(&mut resp, &request, stored);
    let len = format!(":{LEN}\r\n");
    for request in [
        "APPEND k x",
        "SETRANGE k 0 x",
        "SETBIT k 0 0",
        "BITFIELD k SET u8 0 1",
        "EXPIRE k 100",
        "GETEX k EX 100",
    ] {
        ask(&mut resp, format!("{request}\r\n").as_bytes(), OUT_OF_MEMORY[RESP]);
        ask(&mut resp, b"STRLEN k\r\n", len.as_bytes());
        subject.is_well();
    }
    for request in ["append k 0 0 1\r\nx", "prepend k 0 0 1\r\nx", "touch k 100", "md k I"] {
        ask(&mut memcache, format!("{request}\r\n").as_bytes(), OUT_OF_MEMORY[MEMCACHE]);
        ask(&mut resp, b"STRLEN k\r\n", len.as_bytes());
    }
    // Commands that copy nothing are executed.
    ask(&mut resp, b"PEXPIRE k 0\r\nSTRLEN k\r\n", b":1\r\n:0\r\n");
    // A shorter value fits.
    let (request, stored) = set(RESP, "k", &vec![b'v'; LEN / 2]);
    ask(&mut resp, &request, stored);
    let len = format!(":{}\r\n", LEN / 2 + 1);
    ask(&mut resp, b"APPEND k x\r\n", len.as_bytes());
    subject.is_well();
}

/// A value that is received into the cache finds no memory half-way.
#[test]
fn a_long_value_that_finds_no_memory_half_way_is_refused_and_the_connection_stays_open() {
    const LEN: usize = 4 << 20;
    for threads in [1, 2] {
        for listener in [RESP, MEMCACHE] {
            let subject = Subject::with(64 << 20, Eviction::None, threads);
            let mut stream = subject.connect(listener);
            let (request, _) = set(listener, "big", &vec![b'v'; LEN]);
            let (first, rest) = request.split_at(LEN / 4);
            stream.write_all(first).expect("sent");
            while subject.cache.stats().memory_large < (LEN / 8) as u64 {
                subject.answers();
            }
            fill(&subject, "k");
            // The request after it is executed.
            let (next, found) = get(listener, "k:1", &VALUE);
            let refused = OUT_OF_MEMORY[listener];
            ask(&mut stream, &[rest, &next].concat(), &[refused, &found].concat());
            ask(&mut stream, &get(listener, "big", b"").0, miss(listener));
            ask(&mut subject.connect(RESP), b"FLUSHALL\r\n", b"+OK\r\n");
            while subject.cache.pending_bytes() > 0 {
                subject.answers();
            }
            let (_, stored) = set(listener, "big", b"");
            ask(&mut stream, &request, stored);
            subject.is_well();
        }
    }
}

/// `EXEC` is refused then, as in Redis. There is no reply if the client asked for none.
#[test]
fn a_long_value_without_memory_is_refused_in_transactions_and_without_replies() {
    const LEN: usize = 4 << 20;
    for before in [&b"MULTI\r\n"[..], b"CLIENT REPLY OFF\r\n", b"CLIENT REPLY SKIP\r\n"] {
        let subject = Subject::with(64 << 20, Eviction::None, 1);
        let mut stream = subject.connect(RESP);
        let answer: &[u8] = if before == b"MULTI\r\n" { b"+OK\r\n" } else { b"" };
        ask(&mut stream, before, answer);
        let (request, _) = set(RESP, "big", &vec![b'v'; LEN]);
        let (first, rest) = request.split_at(LEN / 4);
        stream.write_all(first).expect("sent");
        while subject.cache.stats().memory_large < (LEN / 8) as u64 {
            subject.answers();
        }
        fill(&subject, "k");
        let (next, answer) = if before == b"MULTI\r\n" {
            let aborted = b"-EXECABORT Transaction discarded because of previous errors.\r\n";
            (&b"EXEC\r\n"[..], [OUT_OF_MEMORY[RESP], aborted].concat())
        } else {
            (&b"CLIENT REPLY ON\r\n"[..], b"+OK\r\n".to_vec())
        };
        ask(&mut stream, &[rest, next].concat(), &answer);
        subject.is_well();
    }
}

#[test]
fn a_request_without_memory_has_no_reply_if_replies_are_off() {
    let subject = Subject::with(Options::MIN_MEMORY, Eviction::None, 1);
    fill(&subject, "k");
    let mut stream = subject.connect(RESP);
    for mode in ["OFF", "SKIP"] {
        let (request, _) = set(RESP, "new", &VALUE);
        let request = [format!("CLIENT REPLY {mode}\r\n").as_bytes(), &request].concat();
        ask(&mut stream, &[&request[..], b"CLIENT REPLY ON\r\n"].concat(), b"+OK\r\n");
    }
    ask(&mut stream, b"EXISTS new\r\n", b":0\r\n");
}
