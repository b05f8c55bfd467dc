//! Tests one cache behind all protocols: each protocol reads what another one stores. Tests the
//! commands of the two small protocols, too.

use nuthatch_cache::{Cache, Eviction, Guard, Options, Write};
use nuthatch_server::Admission;
use nuthatch_server::memcache::commands as memcache;
use nuthatch_server::mrcache::Framing;
use nuthatch_server::mrcache::commands as mrcache;
use nuthatch_server::resp::Span;
use nuthatch_server::resp::commands;
use nuthatch_server::resp::commands::Args;
use nuthatch_server::resp::commands::Client;
use nuthatch_server::state::Server;
use nuthatch_server::{Full, ZeroCopyValues};
use nuthatch_server::{memcache as memcache_protocol, mrcache as mrcache_protocol, pmc};
use std::sync::Arc;

struct Engine {
    cache: Arc<Cache>,
    server: Server,
    shared: nuthatch_server::state::MemcachedState,
}

impl Engine {
    fn new() -> Self {
        let cache = Arc::new(Cache::new(Options::new().memory(16 << 20)).expect("a small cache"));
        Self {
            server: Server::new(cache.clone()),
            cache,
            shared: nuthatch_server::state::MemcachedState::new(1),
        }
    }

    fn with_guard<R>(&self, work: impl FnOnce(&Guard<'_>) -> R) -> R {
        let mut session = self.cache.session().expect("one session");
        work(&session.guard())
    }

    /// Executes a request of Redis, whose words are separated by spaces.
    fn resp(&self, request: &str) -> String {
        let spans = request.split(' ').map(|word| Span {
            start: (word.as_ptr() as usize - request.as_ptr() as usize) as u32,
            len: word.len() as u32,
        });
        let spans: Vec<_> = spans.collect();
        let mut out = Vec::new();
        self.with_guard(|guard| {
            let mut call = commands::Call {
                guard,
                client: &mut Client::default(),
                server: &self.server,
                args: Args::new(request.as_bytes(), &spans),
                out: &mut out,
                admission: Admission::Permitted,
                prefetched: &[],
            };
            commands::execute(&mut call).expect("there is room");
        });
        String::from_utf8(out).expect("text")
    }

    fn memcache(&self, request: &str) -> String {
        use memcache_protocol::{Decoder, Limits, Step};
        let mut decoder = Decoder::new(Limits::default());
        let Step::Request { request, .. } = decoder.next(request.as_bytes()) else {
            panic!("no request: {request}");
        };
        let mut out = Vec::new();
        self.with_guard(|guard| {
            let (server, shared) = (&self.server, &self.shared);
            let mut call = memcache::Call {
                guard,
                server,
                shared,
                out: &mut out,
                zero_copy: &mut ZeroCopyValues::default(),
                prefetched: &[],
            };
            memcache::execute(&mut call, &request).expect("there is room");
        });
        String::from_utf8(out).expect("text")
    }

    fn mrcache(&self, framing: Framing, request: &mrcache_protocol::Request<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut zero_copy = ZeroCopyValues::default();
        let answer = (&mut out, &mut zero_copy);
        self.with_guard(|guard| mrcache::execute((guard, &self.server), framing, request, answer))
            .expect("room");
        out
    }

    /// Executes a message of poor-man's-cache, given without its separator.
    fn pmc(&self, message: &str) -> String {
        let (message, request) = pmc_request(message);
        let mut out = Vec::new();
        let mut zero_copy = ZeroCopyValues::default();
        let answer = (&mut out, &mut zero_copy);
        self.with_guard(|guard| {
            let place = (guard, &self.server);
            nuthatch_server::pmc::commands::execute(place, &message, request, answer)
        })
        .expect("there is room");
        assert_eq!(out.pop(), Some(pmc::SEPARATOR));
        String::from_utf8(out).expect("text")
    }
}

fn pmc_request(message: &str) -> (Vec<u8>, pmc::Request) {
    let mut bytes = message.as_bytes().to_vec();
    bytes.push(pmc::SEPARATOR);
    match pmc::Decoder::default().next(&bytes) {
        Ok(pmc::Step::Request { request, .. }) => (bytes, request),
        other => panic!("{message}: {other:?}"),
    }
}

fn get(key: &[u8]) -> mrcache_protocol::Request<'_> {
    mrcache_protocol::Request::Get { key }
}

#[test]
fn a_value_is_the_same_in_every_protocol() {
    let engine = Engine::new();
    let is = |value: &str| {
        let len = value.len();
        assert_eq!(engine.resp("GET k"), format!("${len}\r\n{value}\r\n"));
        let flagless = format!("VALUE k 0 {len}\r\n{value}\r\nEND\r\n");
        assert_eq!(engine.memcache("get k\r\n"), flagless);
        assert_eq!(engine.memcache("mg k v\r\n"), format!("VA {len}\r\n{value}\r\n"));
        assert_eq!(engine.mrcache(Framing::Len4, &get(b"k"))[4..], *value.as_bytes());
        assert_eq!(engine.pmc("GET k"), value);
    };
    assert_eq!(engine.resp("SET k redis"), "+OK\r\n");
    is("redis");
    assert_eq!(engine.memcache("set k 0 0 9\r\nmemcached\r\n"), "STORED\r\n");
    is("memcached");
    let set = mrcache_protocol::Request::Set { key: b"k", value: b"mrcache" };
    assert!(engine.mrcache(Framing::Len4, &set).is_empty());
    is("mrcache");
    assert_eq!(engine.pmc("SET k a poor man's"), "OK");
    is("a poor man's");
}

#[test]
fn counters_times_and_flags_are_shared() {
    let engine = Engine::new();
    engine.resp("SET n 100");
    assert_eq!(engine.memcache("decr n 1\r\n"), "99\r\n");
    assert_eq!(engine.resp("INCR n"), ":100\r\n");
    engine.resp("SET n -1");
    let refused = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    assert_eq!(engine.memcache("incr n 1\r\n"), refused);
    engine.resp("SET n 1 EX 100");
    assert_eq!(engine.memcache("mg n t\r\n"), "HD t100\r\n");
    engine.memcache("set n 7 200 1\r\nx\r\n");
    assert_eq!(engine.resp("TTL n"), ":200\r\n");
    assert_eq!(engine.resp("APPEND n y"), ":2\r\n");
    assert_eq!(engine.memcache("mg n v f t\r\n"), "VA 2 f7 t200\r\nxy\r\n");
    let number = engine.memcache("mg n c\r\n");
    assert_eq!(engine.resp("SET n z"), "+OK\r\n");
    let number = number.trim_start_matches("HD c").trim_end();
    assert_eq!(engine.memcache(&format!("cas n 0 0 1 {number}\r\nw\r\n")), "EXISTS\r\n");
    assert_eq!(engine.pmc("DEL n"), "OK");
    assert_eq!(engine.memcache("get n\r\n"), "END\r\n");
    engine.resp("SET n z");
    assert_eq!(engine.memcache("flush_all\r\n"), "OK\r\n");
    assert_eq!(engine.resp("EXISTS n"), ":0\r\n");
}

#[test]
fn mrcache_answers_gets_and_nothing_else() {
    use mrcache_protocol::Request::{GetZ, Set, SetZ, Stat};
    let engine = Engine::new();
    let ask = |request| engine.mrcache(Framing::Len4, &request);
    assert_eq!(ask(get(b"test")), b"\0\0\0\0");
    assert_eq!(ask(Set { key: b"test", value: b"four" }), b"");
    assert_eq!(ask(get(b"test")), b"\x04\0\0\0four");
    assert_eq!(engine.mrcache(Framing::Ver6, &get(b"test")), b"\0\x01\x04\0\0\0four");
    assert_eq!(engine.mrcache(Framing::Ver6, &get(b"none")), b"\0\x01\0\0\0\0");
    assert_eq!(ask(SetZ { key: b"z", value: b"zzz" }), b"");
    assert_eq!(ask(GetZ { key: b"z" }), b"\x03\0\0\0zzz");
    assert_eq!(ask(GetZ { key: b"test" }), b"\x04\0\0\0four");
    assert_eq!(ask(Set { key: b"", value: b"" }), b"");
    assert_eq!(ask(get(b"")), b"\0\0\0\0");
    assert_eq!(ask(Stat), b"");
    // The protocol has no reply that refuses a value that is too long, so the old value is removed.
    let value = vec![0; engine.cache.max_value_len() + 1];
    assert_eq!(ask(Set { key: b"test", value: &value }), b"");
    assert_eq!(ask(get(b"test")), b"\0\0\0\0");
}

#[test]
fn pmc_answers_each_message() {
    let engine = Engine::new();
    assert_eq!(engine.pmc("GET k"), "(nil)");
    assert_eq!(engine.pmc("SET k {\"a\": 1}"), "OK");
    assert_eq!(engine.pmc("GET k"), "{\"a\": 1}");
    assert_eq!(engine.pmc("SET k "), "OK");
    assert_eq!(engine.pmc("GET k"), "");
    assert_eq!(engine.pmc("DEL k"), "OK");
    assert_eq!(engine.pmc("DEL k"), "ERROR: Key does not exist");
    assert_eq!(engine.pmc("PUT k v"), "ERROR: Unknown command");
    engine.pmc("SET k old");
    let (len, max) = (engine.cache.max_value_len() + 1, engine.cache.max_value_len());
    let refused = format!("ERROR: a value of {len} bytes is too long: at most {max} can be stored");
    assert_eq!(engine.pmc(&format!("SET k {}", "v".repeat(len))), refused);
    assert_eq!(engine.pmc("GET k"), "(nil)");
}

#[test]
fn a_value_without_memory_removes_the_old_one_in_mrcache_and_pmc() {
    let options = Options::new().memory(16 << 20).eviction(Eviction::None);
    let cache = Arc::new(Cache::new(options).expect("a small cache"));
    let mut session = cache.session().expect("one session");
    let guard = session.guard();
    let value = vec![b'v'; 50_000];
    let stored = (0_u32..1000)
        .take_while(|number| guard.set(&number.to_le_bytes(), &value, &Write::new()).is_ok())
        .count();
    assert!((10..1000).contains(&stored), "{stored}");
    let key = 0_u32.to_le_bytes();
    let set = mrcache_protocol::Request::Set { key: &key, value: &value };
    let text = format!("SET \x01\0\0\0 {}", String::from_utf8_lossy(&value));
    let (message, request) = pmc_request(&text);
    let pmc_key = nuthatch_server::pmc::commands::key(&message, request).expect("a key");
    assert_eq!((mrcache::key(&set), pmc_key), (Some(&key[..]), &b"\x01\0\0\0"[..]));

    // Both may be stored under another guard: nothing is executed, and nothing is answered.
    let mut out = Vec::new();
    let mut zero_copy = ZeroCopyValues::default();
    let server = Server::new(Arc::clone(&cache));
    let place = (&guard, &server);
    let answer = (&mut out, &mut zero_copy);
    assert_eq!(mrcache::execute(place, Framing::Len4, &set, answer), Err(Full));
    let answer = (&mut out, &mut zero_copy);
    assert_eq!(
        nuthatch_server::pmc::commands::execute(place, &message, request, answer),
        Err(Full)
    );
    assert!(out.is_empty());
    assert!(guard.get(&key).is_some() && guard.get(pmc_key).is_some());

    mrcache::out_of_memory(&guard, &set);
    assert!(out.is_empty());
    nuthatch_server::pmc::commands::out_of_memory(&guard, &message, request, &mut out);
    assert_eq!(out, b"ERROR: the memory is used up\x1f");
    assert!(guard.get(&key).is_none() && guard.get(pmc_key).is_none());
}
