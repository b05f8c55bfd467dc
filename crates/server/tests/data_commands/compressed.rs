//! Compares the replies to commands over long values with those of a server without compression.

use crate::engine::{Connection, Engine};
use nuthatch_compress::{Codec, DEFAULT_DICTIONARY_BYTES, Dictionaries, train};
use nuthatch_server::DictionarySource;
use nuthatch_server::resp::Version;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Returns a value that compression makes shorter.
fn long(number: usize) -> String {
    let part = |at: usize| format!("{{\"id\":{at},\"name\":\"user {number}\"}},");
    (0..20).map(part).collect()
}

/// Connections to a server without compression and to one with it.
struct Both<'e>(Connection<'e>, Connection<'e>);

impl Both<'_> {
    /// Checks that the replies of both to a request are the same, and returns one.
    #[track_caller]
    fn run(&mut self, request: &[&str]) -> String {
        let replies = [&mut self.0, &mut self.1].map(|connection| connection.run(request));
        let [plain, compressed] = replies.map(|reply| String::from_utf8(reply).expect("text"));
        assert_eq!(plain, compressed, "{request:?}");
        plain
    }
}

const NOW_MS: u64 = 1_700_000_000_000;

/// Calls `test` with connections to both servers, where the keys `a`, `b` and `c` have long values.
fn with_both(test: impl Fn(&mut Both<'_>, &Engine)) {
    let (plain, compressed) = (Engine::new(NOW_MS), Engine::compressed(NOW_MS));
    let mut both = Both(plain.connect(Version::Resp3), compressed.connect(Version::Resp3));
    for (number, key) in ["a", "b", "c"].into_iter().enumerate() {
        both.run(&["SET", key, &long(number), "PX", "100000"]);
        assert!(compressed.is_compressed(key.as_bytes()));
    }
    test(&mut both, &compressed);
}

#[test]
fn reads_see_the_raw_value() {
    with_both(|both, _| {
        let requests: [&[&str]; 26] = [
            &["GET", "a"],
            &["MGET", "a", "missing", "b", "c"],
            &["STRLEN", "a"],
            &["GETRANGE", "a", "5", "300"],
            &["GETRANGE", "a", "-7", "-1"],
            &["SUBSTR", "b", "0", "10"],
            &["GETBIT", "a", "803"],
            &["BITCOUNT", "a"],
            &["BITCOUNT", "a", "3", "-5"],
            &["BITPOS", "a", "0", "4"],
            &["BITPOS", "a", "1", "77", "900", "BIT"],
            &["BITFIELD", "a", "GET", "u16", "100"],
            &["BITFIELD_RO", "a", "GET", "i7", "1000"],
            &["LCS", "a", "b"],
            &["LCS", "a", "b", "LEN"],
            &["LCS", "a", "c", "IDX", "MINMATCHLEN", "5", "WITHMATCHLEN"],
            &["INCR", "a"],
            &["INCRBYFLOAT", "a", "1.5"],
            &["OBJECT", "ENCODING", "a"],
            &["OBJECT", "REFCOUNT", "a"],
            &["TYPE", "a"],
            &["EXISTS", "a", "b"],
            &["PTTL", "a"],
            &["SET", "a", "x", "IFEQ", "y"],
            &["SETNX", "a", "x"],
            &["SET", "a", "x", "NX", "GET"],
        ];
        for request in requests {
            both.run(request);
        }
    });
}

#[test]
fn writes_derive_values_from_the_raw_one() {
    let value = long(7);
    let old = long(0);
    let requests: [&[&str]; 18] = [
        &["APPEND", "a", "more"],
        &["SETRANGE", "a", "700", "elsewhere"],
        &["SETRANGE", "a", "3", ""],
        &["SETBIT", "a", "5000", "1"],
        &["BITFIELD", "a", "SET", "u8", "80", "65", "INCRBY", "u8", "88", "7"],
        &["BITOP", "NOT", "a", "b"],
        &["BITOP", "XOR", "a", "b", "missing", "c"],
        &["BITOP", "AND", "a", "a", "b"],
        &["GETSET", "a", &value],
        &["GETDEL", "a"],
        &["GETEX", "a", "PERSIST"],
        &["SET", "a", &value, "GET"],
        &["SET", "a", &value, "IFEQ", &old],
        &["SETEX", "a", "100", &value],
        &["MSET", "a", &value, "b", "short", "c", &value],
        &["MSETNX", "a", &value, "d", &value],
        &["MSETNX", "d", &value, "e", "short"],
        &["RENAME", "b", "a"],
    ];
    for request in requests {
        with_both(|both, _| {
            both.run(request);
            for key in ["a", "b", "c", "d", "e"] {
                both.run(&["BITCOUNT", key]);
                both.run(&["GETBIT", key, "13"]);
                both.run(&["STRLEN", key]);
                both.run(&["PTTL", key]);
                let replies = [&mut both.0, &mut both.1].map(|one| one.run(&["GET", key]));
                assert_eq!(replies[0], replies[1], "{request:?}");
            }
        });
    }
}

#[test]
fn a_value_stays_compressed_when_other_parts_of_the_item_change() {
    with_both(|both, engine| {
        for request in [
            &["PERSIST", "a"][..],
            &["EXPIRE", "a", "50"],
            &["GETEX", "a", "EX", "70"],
            &["WATCH", "a"],
            &["UNWATCH"],
            &["COPY", "a", "b", "REPLACE"],
            &["RENAMENX", "a", "d"],
        ] {
            both.run(request);
        }
        for key in ["b", "d"] {
            assert!(engine.is_compressed(key.as_bytes()), "{key}");
            assert_eq!(both.run(&["GET", key]).matches("user 0").count(), 20);
            both.run(&["PTTL", key]);
        }
    });
}

/// Random bytes stay as they came, and a value that became shorter is not marked as compressed.
#[test]
fn a_value_that_compression_does_not_make_shorter_is_stored_as_it_came() {
    with_both(|both, engine| {
        both.run(&["SET", "a", "0123456789abcdefghijklmnopqrstuvwxyz"]);
        assert!(!engine.is_compressed(b"a"));
        both.run(&["GET", "a"]);
        both.run(&["SETRANGE", "b", "0", "x"]);
        assert!(engine.is_compressed(b"b"));
        both.run(&["BITFIELD", "b", "GET", "u8", "0"]);
        both.run(&["SET", "b", "1"]);
        both.run(&["INCR", "b"]);
        assert!(!engine.is_compressed(b"b"));
    });
}

fn dictionary() -> Vec<u8> {
    let samples = (0..4000).map(|number| document(number).into_bytes().into_boxed_slice());
    let trained = train(samples.collect(), DEFAULT_DICTIONARY_BYTES, 3, NonZeroU32::new(7));
    trained.expect("a dictionary").bytes
}

fn document(number: usize) -> String {
    format!("{{\"id\":{number},\"name\":\"user {number}\",\"is_active\":true,\"plan\":\"free\"}}")
}

/// Returns the bulk string at the end of a reply.
fn last_bulk(reply: &[u8]) -> &[u8] {
    let start = reply.iter().position(|byte| *byte == b'$').expect("a bulk string");
    let line = reply[start..].iter().position(|byte| *byte == b'\n').expect("its length");
    &reply[start + line + 1..reply.len() - 2]
}

/// A client decompresses a value itself, with the dictionary that it asked for.
#[test]
fn clients_can_get_compressed_values_and_their_dictionaries() {
    let engine = Engine::with_dictionaries(NOW_MS, DictionarySource::Fixed(dictionary()));
    let mut connection = engine.connect(Version::Resp2);
    connection.run(&["SET", "user:5", &document(5)]);
    assert_eq!(connection.run(&["GET", "user:5"]).len(), document(5).len() + "$00\r\n\r\n".len());
    let reply = connection.run(&["NUTHATCH.GETZ", "user:5"]);
    assert!(reply.starts_with(b"*2\r\n:7\r\n"), "{}", reply.escape_ascii());
    let encoded = last_bulk(&reply);
    assert!(encoded.len() < document(5).len() / 2);
    let reply = connection.run(&["NUTHATCH.DICT", "7"]);
    let dictionaries = Arc::new(Dictionaries::new(1, 64 << 20));
    dictionaries.add(last_bulk(&reply)).expect("a dictionary");
    let (mut codec, mut raw) = (Codec::new(&dictionaries).expect("memory"), Vec::new());
    codec.decompress(encoded, 1000, &mut raw).expect("a value");
    assert_eq!(raw, document(5).as_bytes());

    assert_eq!(connection.run(&["NUTHATCH.GETZ", "missing"]), b"$-1\r\n");
    assert_eq!(connection.run(&["NUTHATCH.DICT", "8"]), b"$-1\r\n");
    connection.run(&["SET", "short", "1"]);
    assert_eq!(connection.run(&["NUTHATCH.GETZ", "short"]), b"*2\r\n:-1\r\n$1\r\n1\r\n");
    for id in ["0", "-1", "4294967296", "x"] {
        let reply = connection.run(&["NUTHATCH.DICT", id]);
        assert_eq!(reply, b"-ERR expected the id of a dictionary, 1 or more\r\n", "{id}");
    }
    // Too long for a dictionary.
    connection.run(&["SET", "long", &document(1).repeat(2000)]);
    assert!(connection.run(&["NUTHATCH.GETZ", "long"]).starts_with(b"*2\r\n:0\r\n"));
}

#[test]
fn info_has_the_ratio_of_each_dictionary() {
    let engine = Engine::with_dictionaries(NOW_MS, DictionarySource::Fixed(dictionary()));
    let mut connection = engine.connect(Version::Resp2);
    for number in 0..100 {
        connection.run(&["SET", "user", &document(number)]);
    }
    connection.run(&["SET", "short", "0123456789"]);
    let info = String::from_utf8(connection.run(&["INFO", "compression"])).expect("text");
    let line = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name}: {info}"))
    };
    assert_eq!((line("compression"), line("compression_level")), ("zstd", "3"));
    assert_eq!(line("compression_dictionaries"), "file");
    assert_eq!(line("compression_incompressible_values"), "1");
    let fields = line("compression_dict_7");
    let field = |name: &str| {
        let fields = &mut fields.split(',');
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).expect(name)
    };
    assert_eq!((field("values"), field("groups")), ("100", "(rest)"));
    assert!(field("ratio").parse::<f64>().expect("a number") > 2.0, "{fields}");
    assert!(
        line("compression_dict_0").starts_with("values=0,raw_bytes=0,stored_bytes=0,ratio=1.00")
    );
}
