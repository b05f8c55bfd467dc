//! Tests values for which there is no memory.

use crate::engine::Engine;
use nuthatch_cache::{Eviction, Options, Write};
use nuthatch_server::Full;
use nuthatch_server::memcache::commands::{execute, out_of_memory};
use nuthatch_server::memcache::{Decoder, Limits, Step};

/// Creates a cache without eviction, with no memory for a value as long as those in it: that of
/// `a`, which has a number for compare-and-set, and those of `b1` and others, which have none.
fn full() -> Engine {
    let engine = Engine::with(Options::new().memory(16 << 20).eviction(Eviction::None));
    let value = vec![b'v'; 50_000];
    let mut stored = 0_u32;
    loop {
        let (mut session, before) = (engine.cache.session().expect("one session"), stored);
        let guard = session.guard();
        let write = |number| if number == 0 { Write::new().cas(7) } else { Write::new() };
        let key = |number| if number == 0 { "a".to_owned() } else { format!("b{number}") };
        while guard.set(key(stored).as_bytes(), &value, &write(stored)).is_ok() {
            stored += 1;
        }
        // The next session may use memory that one session leaves.
        if stored == before {
            break;
        }
    }
    assert!(stored > 10, "some were stored: {stored}");
    engine
}

/// Executes a request that finds no memory twice. Returns all replies.
fn give_up(engine: &Engine, bytes: &[u8]) -> String {
    let mut out = b"before ".to_vec();
    let mut session = engine.cache.session().expect("one session");
    let guard = session.guard();
    let Step::Request { request, .. } = Decoder::new(Limits::default()).next(bytes) else {
        panic!("a request: {}", bytes.escape_ascii());
    };
    let mut zero_copy = nuthatch_server::ZeroCopyValues::default();
    let mut call = engine.call(&guard, (&mut out, &mut zero_copy));
    assert_eq!(execute(&mut call, &request), Err(Full));
    assert_eq!(call.out, b"before ");
    out_of_memory(&mut call, &request);
    String::from_utf8(out).expect("text")
}

#[test]
fn without_memory_nothing_is_replied_before_the_last_attempt() {
    let refused = "before SERVER_ERROR out of memory storing object\r\n";
    let value = "v".repeat(50_000);
    let gone = "END\r\n";
    // The value that the request would replace is removed, whatever it was; all others stay.
    for (line, quiet, removes) in [
        ("set a 0 0 50000", false, true),
        ("set a 0 0 50000 noreply", true, true),
        ("ms a 50000 q", false, true),
        ("ms YQ== 50000 b", false, true),
        ("replace a 0 0 50000", false, false),
        ("cas a 0 0 50000 7", false, false),
        ("ms a 50000 C7", false, false),
        ("ms a 50000 MR", false, false),
        ("add b 0 0 50000", false, false),
    ] {
        let engine = full();
        let answer = give_up(&engine, format!("{line}\r\n{value}\r\n").as_bytes());
        assert_eq!(answer, if quiet { "before " } else { refused }, "{line}");
        assert_eq!(engine.run(b"get a\r\n") == gone, removes, "{line}");
    }
    for line in [
        "append a 0 0 1\r\nx",
        "ms a 1 MP\r\nx",
        "touch a 100",
        "gat 100 a",
        "gets b1",
        "mg b1 c v",
        "mg a T30 v",
        "md a I",
    ] {
        let engine = full();
        assert_eq!(give_up(&engine, format!("{line}\r\n").as_bytes()), refused, "{line}");
        assert_ne!(engine.run(b"get a\r\n"), gone, "{line}");
    }
}

#[test]
fn a_value_over_the_limit_of_the_cache_is_refused() {
    let mut engine = Engine::with(Options::new().memory(16 << 20));
    engine.max_object_len = 16 << 20;
    let (max, refused) =
        (engine.cache.max_value_len(), "SERVER_ERROR object too large for cache\r\n");
    assert!(max < engine.max_object_len, "the decoder lets it through");
    let value = |len: usize| "v".repeat(len);
    let set = |len| format!("set a 0 0 {len}\r\n{}\r\n", value(len));
    assert_eq!(engine.run(set(max).as_bytes()), "STORED\r\n");
    assert_eq!(engine.run(b"append a 0 0 1\r\nx\r\n"), refused);
    assert_eq!(engine.run(b"ms a 1 MP\r\nx\r\n"), refused);
    assert_eq!(engine.run(b"append a 0 0 1 noreply\r\nx\r\nmg a s\r\n"), format!("HD s{max}\r\n"));
    assert_eq!(engine.run(set(max + 1).as_bytes()), refused);
    assert_eq!(engine.run(b"get a\r\n"), "END\r\n");
}
