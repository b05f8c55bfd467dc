//! Tests the commands of memcached: the vectors, and what the vectors cannot express.

#[path = "../case/mod.rs"]
#[expect(dead_code, reason = "other files of vectors need more of it")]
mod case;
mod engine;
mod out_of_memory;
mod threads;
mod vectors;

use engine::{Engine, START_MS};
use nuthatch_cache::Write;
use nuthatch_server::memcache::commands::{Next, keys};
use nuthatch_server::memcache::{Decoder, KeyBuffer, Limits, Request, Step};

#[test]
fn quit_closes_the_connection() {
    let (outcomes, out) = Engine::new().outcomes(b"mn\r\nquit\r\n");
    assert_eq!((outcomes, out), (vec![Ok(Next::Continue), Ok(Next::Close)], b"MN\r\n".to_vec()));
}

#[test]
fn a_delayed_flush_runs_before_requests_of_other_protocols_too() {
    let engine = Engine::new();
    assert_eq!(engine.run(b"set a 0 0 1\r\nx\r\nflush_all 10\r\n"), "STORED\r\nOK\r\n");
    let mut session = engine.cache.session().expect("one session");
    for (now_ms, is_there) in [(START_MS + 9999, true), (START_MS + 10_000, false)] {
        engine.set_time(now_ms);
        let guard = session.guard();
        engine.shared.flush_if_due(&guard);
        assert_eq!(guard.get(b"a").is_some(), is_there);
    }
    let guard = session.guard();
    guard.set(b"a", b"y", &Write::new()).map(drop).expect("room");
    engine.shared.flush_if_due(&guard);
    assert!(guard.get(b"a").is_some(), "it happens once");
}

#[test]
fn statistics_are_reset() {
    let engine = Engine::new();
    engine.run(b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\nget a b c\r\ndelete a\r\n");
    let has = |lines: &[&str]| {
        let stats = engine.run(b"stats\r\n");
        assert!(stats.ends_with("END\r\n"), "{stats}");
        for line in lines {
            assert!(stats.contains(&format!("STAT {line}\r\n")), "{line}: {stats}");
        }
    };
    has(&["time 1700000000", "version 1.6.38", "cmd_get 3", "get_hits 2", "get_misses 1"]);
    has(&["cmd_set 2", "delete_hits 1", "curr_items 1", "limit_maxbytes 268435456", "threads 1"]);
    engine.run(b"stats reset\r\nget b\r\n");
    has(&["cmd_get 1", "get_hits 1", "get_misses 0", "cmd_set 0", "total_items 0", "curr_items 1"]);
    let settings = engine.run(b"stats settings\r\n");
    assert!(settings.contains("STAT maxbytes 268435456\r\n"), "{settings}");
    assert_eq!(engine.run(b"stats items\r\nstats cachedump 1 10\r\n"), "END\r\nEND\r\n");
}

#[test]
fn keys_of_a_request_are_known_before_it_is_executed() {
    let keys_of = |bytes: &[u8]| -> Vec<String> {
        let mut decoder = Decoder::new(Limits::default());
        let Step::Request { request, .. } = decoder.next(bytes) else { panic!("a request") };
        let mut room = KeyBuffer::default();
        let keys = keys(&request, &mut room).map(|key| String::from_utf8_lossy(key).into_owned());
        keys.collect()
    };
    assert_eq!(keys_of(b"get a b  c\r\n"), ["a", "b", "c"]);
    assert_eq!(keys_of(b"gat 0 a b\r\n"), ["a", "b"]);
    assert_eq!(keys_of(b"set a 0 0 1\r\nx\r\n"), ["a"]);
    assert_eq!(keys_of(b"mg Zm9v b\r\n"), ["foo"]);
    for request in ["incr a 1\r\n", "touch a 1\r\n", "delete a\r\n", "mg a\r\n", "md a\r\n"] {
        assert_eq!(keys_of(request.as_bytes()), ["a"], "{request}");
    }
    for request in ["version\r\n", "mn\r\n", "stats\r\n", "flush_all\r\n", "quit\r\n"] {
        assert!(keys_of(request.as_bytes()).is_empty(), "{request}");
    }
    let none = Request::Version;
    assert_eq!(keys(&none, &mut KeyBuffer::default()).count(), 0);
}
