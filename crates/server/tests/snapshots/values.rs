//! Tests the values of all types in all protocols.

use crate::harness::{Reply, Setup, Site, build_all_types, build_with, file};
use crate::served::ask;
use nuthatch_snapshot::{Compression, Value, WriterOptions};

/// The text of each value, and its type.
const TEXTS: [(&str, &[u8], &str); 11] = [
    ("name", b"Ada", "string"),
    ("bytes", b"\x00\xff\r\n", "string"),
    ("true", b"true", "string"),
    ("false", b"false", "string"),
    ("age", b"-36", "string"),
    ("score", b"0.25", "string"),
    ("ids", b"[1,-2,3]", "list"),
    ("scores", b"[0.5,\"Infinity\"]", "list"),
    ("vector", b"[0.1,2.0]", "list"),
    ("tags", "[\"a\",\"b \\\"c\\\"\",\"é\"]".as_bytes(), "list"),
    ("none", b"[]", "list"),
];

fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

#[test]
fn clients_of_redis_get_the_text_of_every_type() {
    let site = Site::with_all_types();
    let mut stream = site.connect(0);
    for version in ["", "HELLO 3\r\n"] {
        let null: &[u8] = if version.is_empty() { b"$-1\r\n" } else { b"_\r\n" };
        if !version.is_empty() {
            let mut client = site.resp();
            client.ask("PING");
            stream = site.connect(0);
            ask(&mut stream, version.as_bytes(), b"%");
            // The rest of the reply has no fixed length: a value marks its end.
            ask_behind(&mut stream);
        }
        for (key, text, kind) in TEXTS {
            ask(&mut stream, format!("GET users:{key}\r\n").as_bytes(), &bulk(text));
            let len = format!(":{}\r\n", text.len());
            ask(&mut stream, format!("STRLEN users:{key}\r\n").as_bytes(), len.as_bytes());
            let kind = format!("+{kind}\r\n");
            ask(&mut stream, format!("TYPE users:{key}\r\n").as_bytes(), kind.as_bytes());
            ask(&mut stream, format!("EXISTS users:{key}\r\n").as_bytes(), b":1\r\n");
        }
        ask(&mut stream, b"GET users:nothing\r\n", null);
        ask(&mut stream, b"GET users:\r\n", null);
        ask(&mut stream, b"STRLEN users:nothing\r\n", b":0\r\n");
        ask(&mut stream, b"TYPE users:nothing\r\n", b"+none\r\n");
        ask(&mut stream, b"EXISTS users:nothing\r\n", b":0\r\n");
    }
}

/// Skips the rest of a reply.
fn ask_behind(stream: &mut std::net::TcpStream) {
    use std::io::{Read, Write};
    stream.write_all(b"ECHO end-of-hello\r\n").expect("sent");
    let mut read = Vec::new();
    while !read.ends_with(b"end-of-hello\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        read.push(byte[0]);
    }
}

#[test]
fn lists_are_arrays_of_strings() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    let texts = |texts: &[&str]| {
        Reply::List(texts.iter().map(|text| Reply::Text((*text).to_owned())).collect())
    };
    for (request, expected) in [
        ("LRANGE users:ids 0 -1", texts(&["1", "-2", "3"])),
        ("LRANGE users:ids 1 1", texts(&["-2"])),
        ("LRANGE users:ids -2 100", texts(&["-2", "3"])),
        ("LRANGE users:ids 3 5", texts(&[])),
        ("LRANGE users:scores 0 -1", texts(&["0.5", "Infinity"])),
        ("LRANGE users:vector 0 -1", texts(&["0.1", "2.0"])),
        ("LRANGE users:tags 0 -1", texts(&["a", "b \"c\"", "é"])),
        ("LRANGE users:none 0 -1", texts(&[])),
        ("LRANGE users:nothing 0 -1", texts(&[])),
        ("LLEN users:tags", Reply::Integer(3)),
        ("LLEN users:none", Reply::Integer(0)),
        ("LLEN users:nothing", Reply::Integer(0)),
        ("LINDEX users:ids 0", Reply::Text("1".to_owned())),
        ("LINDEX users:ids -1", Reply::Text("3".to_owned())),
        ("LINDEX users:ids 3", Reply::Null),
        ("LINDEX users:ids -4", Reply::Null),
    ] {
        assert_eq!(client.ask(request), expected, "{request}");
    }
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    client.ask("SET string v");
    for request in ["LRANGE users:name 0 -1", "LLEN string", "LINDEX users:age 0"] {
        assert_eq!(client.ask(request).text(), wrong, "{request}");
    }
    assert_eq!(client.ask("LRANGE nothing 0 -1"), texts(&[]));
    assert_eq!(client.ask("LLEN nothing"), Reply::Integer(0));
    assert_eq!(client.ask("LINDEX nothing 0"), Reply::Null);
}

#[test]
fn debug_object_has_the_encoding_and_the_length_of_the_text() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    for (key, encoding, len) in [("name", "embstr", 3), ("age", "int", 3), ("ids", "listpack", 8)] {
        let text = format!(
            "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:{len} lru:0 \
             lru_seconds_idle:0"
        );
        assert_eq!(client.ask(&format!("DEBUG OBJECT users:{key}")), Reply::Text(text), "{key}");
    }
    let error = client.ask("DEBUG OBJECT users:nothing");
    assert_eq!(error, Reply::Text("-ERR no such key".to_owned()));
}

#[test]
fn other_commands_read_the_text_of_a_value() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    client.ask("SET local users");
    for (request, expected) in [
        ("GETRANGE users:name 1 -1", "da"),
        ("SUBSTR users:age 0 1", "-3"),
        ("LCS users:name local", ""),
        ("OBJECT ENCODING users:age", "int"),
        ("OBJECT ENCODING users:name", "embstr"),
        ("OBJECT ENCODING users:tags", "listpack"),
    ] {
        assert_eq!(client.ask(request), Reply::Text(expected.to_owned()), "{request}");
    }
    for (request, expected) in [
        ("GETBIT users:name 1", 1),
        ("BITCOUNT users:name", 8),
        ("BITPOS users:name 1", 1),
        ("TTL users:name", -1),
        ("PTTL users:name", -1),
        ("EXPIRETIME users:name", -1),
        ("PEXPIRETIME users:nothing", -2),
        ("TOUCH users:name users:nothing local", 2),
        ("EXISTS users:name users:name local", 3),
        ("OBJECT REFCOUNT users:name", 1),
        ("OBJECT IDLETIME users:name", 0),
    ] {
        assert_eq!(client.ask(request), Reply::Integer(expected), "{request}");
    }
    assert_eq!(client.ask("OBJECT FREQ users:nothing"), Reply::Null);
    assert_eq!(client.ask("MEMORY USAGE users:nothing"), Reply::Null);
    assert_eq!(client.ask("MEMORY USAGE users:name"), Reply::Integer(4 + 3 + 16));
    let list = Reply::List(vec![Reply::Integer(65)]);
    assert_eq!(client.ask("BITFIELD_RO users:name GET u8 0"), list);
    let raw = Reply::List(vec![Reply::Integer(-1), Reply::Text("Ada".to_owned())]);
    assert_eq!(client.ask("NUTHATCH.GETZ users:name"), raw);
}

#[test]
fn mget_and_pipelines_mix_both_kinds_of_keys_in_order() {
    let site = Site::with_all_types();
    let mut client = site.resp();
    client.ask("SET a 1");
    let expected = ["1", "Ada", "1", "-36"].map(|text| Reply::Text(text.to_owned()));
    let [one, name, again, age] = expected.clone();
    let reply = client.ask("MGET a users:name nothing a users:nothing users:age");
    assert_eq!(reply.list(), [one, name, Reply::Null, again, Reply::Null, age]);
    for _ in 0..100 {
        for request in ["GET a", "GET users:name", "GET a", "GET users:age"] {
            client.send(&request.split(' ').collect::<Vec<_>>());
        }
    }
    for number in 0..400 {
        assert_eq!(client.read(), expected[number % 4], "reply {number}");
    }
    let mut memcached = site.connect(1);
    let found = "VALUE users:name 0 3\r\nAda\r\nVALUE a 0 1\r\n1\r\nEND\r\n";
    let requests = "get nothing users:name users:nothing a other\r\nmg a v\r\n".repeat(100);
    ask(
        &mut memcached,
        requests.as_bytes(),
        format!("{found}VA 1\r\n1\r\n").repeat(100).as_bytes(),
    );
}

#[test]
fn every_node_of_a_cluster_answers_keys_of_snapshots() {
    let setup = Setup { is_node: true, ..Setup::default() };
    let site = Site::start(&setup, |folder| build_all_types(&file(folder, "users")));
    let mut client = site.resp();
    let expected = ["Ada", "-36"].map(|text| Reply::Text(text.to_owned()));
    assert_eq!(client.ask("GET users:name"), expected[0]);
    // Their keys hash to different slots.
    assert_eq!(client.ask("MGET users:name users:age").list(), expected);
    for request in ["GET name", "MGET users:name name"] {
        assert_eq!(client.ask(request).text(), "-CLUSTERDOWN The cluster is down", "{request}");
    }
}

#[test]
fn clients_of_memcached_get_flags_and_cas_numbers_of_zero() {
    let site = Site::with_all_types();
    let mut stream = site.connect(1);
    for (key, text, _) in TEXTS {
        let len = text.len();
        let of = |head: String, tail: &[u8]| [head.as_bytes(), text, b"\r\n", tail].concat();
        let head = format!("VALUE users:{key} 0 {len}\r\n");
        ask(&mut stream, format!("get users:{key}\r\n").as_bytes(), &of(head, b"END\r\n"));
        let head = format!("VALUE users:{key} 0 {len} 0\r\n");
        ask(&mut stream, format!("gets users:{key}\r\n").as_bytes(), &of(head, b"END\r\n"));
        let head = format!("VA {len} s{len} f0 c0 t-1 h0 l0 kusers:{key}\r\n");
        let request = format!("mg users:{key} s f c t h l k v\r\n");
        ask(&mut stream, request.as_bytes(), &of(head, b""));
    }
    ask(&mut stream, b"set a 7 0 1\r\n1\r\n", b"STORED\r\n");
    ask(
        &mut stream,
        b"get a users:name users:nothing users:age nothing\r\n",
        b"VALUE a 7 1\r\n1\r\nVALUE users:name 0 3\r\nAda\r\nVALUE users:age 0 3\r\n-36\r\nEND\r\n",
    );
    ask(&mut stream, b"mg users:nothing v\r\nmg users:nothing v q\r\nmn\r\n", b"EN\r\nMN\r\n");
    ask(&mut stream, b"mg dXNlcnM6bmFtZQ== b v\r\n", b"VA 3\r\nAda\r\n");
    ask(
        &mut stream,
        b"me users:name\r\n",
        b"ME users:name exp=-1 la=0 cas=0 fetch=no cls=1 size=7\r\n",
    );
    ask(&mut stream, b"me users:nothing\r\n", b"EN\r\n");
}

#[test]
fn clients_of_the_two_small_protocols_get_values() {
    let site = Site::with_all_types();
    let mut pmc = site.connect(2);
    ask(&mut pmc, b"GET users:name\x1fGET users:nothing\x1f", b"Ada\x1f(nil)\x1f");
    let mut mrcache = site.connect(3);
    ask(&mut mrcache, b"\x00\x01\x0a\x00users:name", b"\x03\x00\x00\x00Ada");
    ask(&mut mrcache, b"\x00\x01\x0a\x00users:nope", b"\x00\x00\x00\x00");
}

#[test]
fn compressed_values_are_sent_raw_and_sets_of_shards_are_read() {
    let text = "nuthatch ".repeat(100);
    let build = |folder: &std::path::Path| {
        let options = WriterOptions::new().compression(Compression::Zstd { level: 3 }).shards(4);
        let entries = (0..200).map(|number| (format!("{number}"), Value::String(text.as_str())));
        build_with(&file(folder, "users"), &options, entries);
    };
    let site = Site::start(&Setup::default(), build);
    let mut client = site.resp();
    for number in 0..200 {
        assert_eq!(client.ask(&format!("GET users:{number}")), Reply::Text(text.clone()));
    }
    assert_eq!(client.ask("GET users:200"), Reply::Null);
    assert_eq!(client.report("users", "hits"), "200");
    assert_eq!(client.report("users", "misses"), "1");
}

/// Regression test: the text of a list was made before its length was checked.
#[test]
fn a_list_whose_text_does_not_fit_in_memory_is_refused() {
    let list: Vec<i64> = (0..2 << 20).collect();
    let build = |folder: &std::path::Path| {
        let entries = [("list".to_owned(), Value::I64List(&list))];
        build_with(&file(folder, "users"), &WriterOptions::new(), entries);
    };
    let site = Site::start(&Setup::default(), build);
    let mut client = site.resp();
    let text = "-ERR the reply is longer than the free memory for connections";
    assert_eq!(client.ask("GET users:list").text(), text);
    assert_eq!(client.ask("STRLEN users:list").text(), text);
    assert_eq!(client.ask("LLEN users:list"), Reply::Integer(2 << 20));
    assert_eq!(client.ask("LRANGE users:list 5 6").list().len(), 2);
    assert_eq!(client.ask("PING").text(), "PONG");
}
