//! Tests values so long that they are received into the cache before their request is complete.

use crate::served::{LOCAL, ask, at, connect_to, pass_time, with_every_io_backend};
use nuthatch_cache::{Cache, Eviction, Options as CacheOptions};
use nuthatch_server::state::{Server, Users};
use nuthatch_server::{IoBackend, Options, Protocol, Running};
use nuthatch_testing::random;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

with_every_io_backend! {
    the_longest_values_are_set_and_got_back
    requests_with_long_values_may_be_split_anywhere
    all_options_of_set_apply_to_long_values
    other_commands_take_long_values
    requests_after_a_long_value_are_executed
    long_values_are_stored_by_memcached_commands
    an_incomplete_value_returns_its_memory
    a_value_longer_than_announced_is_refused
    a_client_that_may_not_store_is_refused_and_stays_connected
    without_memory_long_values_are_refused_and_other_requests_executed
    many_long_values_at_once_are_stored_or_refused
}

const RESP: usize = 0;
const MEMCACHE: usize = 1;

/// The length from which values are long, in a cache of [`MEMORY`].
const LONG: usize = 1 << 20;
const MEMORY: u64 = 64 << 20;

/// The time after which a test fails that waits for something.
const PATIENCE: Duration = Duration::from_mins(1);

/// The maximum of round trips until a condition must hold.
const TRIES: usize = 100_000;

/// All users may execute all commands.
const ALL: &str = "user default on nopass ~* +@all";

const OOM: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

struct Subject {
    cache: Arc<Cache>,
    server: Running,
}

impl Subject {
    fn with(eviction: Eviction, users: &str, io_backend: IoBackend) -> Self {
        Self::with_threads(1, (eviction, users), io_backend)
    }

    fn with_threads(
        threads: usize,
        (eviction, users): (Eviction, &str),
        io_backend: IoBackend,
    ) -> Self {
        let options = CacheOptions::new().memory(MEMORY).eviction(eviction);
        let cache = Arc::new(Cache::new(options).expect("a cache"));
        let users = Users::parse(users).expect("users");
        let server = Server::new(Arc::clone(&cache)).with_users(users);
        let listeners = [(Protocol::Resp, LOCAL), (Protocol::Memcache, LOCAL)];
        let options = Options::new(listeners.iter().map(at).collect()).io_backend(io_backend);
        let options = options.threads(threads);
        Self { cache, server: Running::serve(server, &options).expect("a server") }
    }

    fn new(io_backend: IoBackend) -> Self {
        Self::with(Eviction::S3Fifo, ALL, io_backend)
    }

    fn connect(&self, listener: usize) -> TcpStream {
        let stream = connect_to(&self.server, listener);
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// Waits until the condition holds for the cache.
    #[track_caller]
    fn wait(&self, what: &str, holds: impl Fn(&Cache) -> bool) {
        let mut clock = self.connect(RESP);
        let held = (0..TRIES).any(|_| {
            pass_time(&mut clock, 1);
            holds(&self.cache)
        });
        assert!(held, "{what}: {} drafted, {:?}", self.cache.pending_bytes(), self.cache.stats());
    }

    /// Checks that no memory of long values is left once all keys are removed.
    #[track_caller]
    fn is_empty_after_all(&self) {
        ask(&mut self.connect(RESP), b"FLUSHALL\r\n", b"+OK\r\n");
        self.wait("all is given back", |cache| {
            cache.pending_bytes() == 0 && cache.stats().memory_large == 0
        });
    }
}

fn framed(args: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend_from_slice(&bulk(arg));
    }
    out
}

fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// Sends a request in pieces, so that its value begins to arrive before it is complete, then
/// compares the reply.
#[track_caller]
fn ask_slowly(subject: &Subject, stream: &mut TcpStream, request: &[u8], expected: &[u8]) {
    assert!(request.len() > LONG, "a long request");
    let (first, rest) = request.split_at(300);
    stream.write_all(first).expect("sent");
    subject.wait("it begins", |cache| cache.pending_bytes() > 0);
    ask_long(stream, rest, expected);
}

/// Like `ask`, for replies that are too long for a message.
#[track_caller]
fn ask_long(stream: &mut TcpStream, request: &[u8], expected: &[u8]) {
    stream.write_all(request).expect("sent");
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).expect("an answer");
    let printable = |bytes: &[u8]| bytes[..bytes.len().min(100)].escape_ascii().to_string();
    assert!(answer == expected, "{} is not {}", printable(&answer), printable(expected));
}

fn the_longest_values_are_set_and_got_back(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let mut stream = subject.connect(RESP);
    let max = subject.cache.max_value_len();
    assert!(max > MEMORY as usize / 8 * 5 - 100_000);
    for (number, len) in [(0, LONG), (1, max), (2, max - 1), (3, 3 * LONG + 7), (4, max)] {
        let stored = random::bytes(number, len);
        ask_slowly(&subject, &mut stream, &framed(&[b"SET", b"k", &stored]), b"+OK\r\n");
        ask_long(&mut stream, b"GET k\r\n", &bulk(&stored));
        let stats = subject.cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
    }
    ask(&mut stream, format!("*2\r\n$4\r\nECHO\r\n${}\r\n", max + 1).as_bytes(), b"-ERR Protocol");
    subject.is_empty_after_all();
}

fn requests_with_long_values_may_be_split_anywhere(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let mut clock = subject.connect(RESP);
    let stored = random::bytes(1, LONG + 5);
    let requests = [
        (RESP, framed(&[b"SET", b"k", &stored, b"PX", b"100000"]), &b"+OK\r\n+PONG\r\n"[..]),
        (
            MEMCACHE,
            [format!("set k 7 0 {}\r\n", stored.len()).as_bytes(), &stored, b"\r\n"].concat(),
            b"STORED\r\nMN\r\n",
        ),
    ];
    for (listener, request, answer) in requests {
        let next: &[u8] = if listener == RESP { b"PING\r\n" } else { b"mn\r\n" };
        let all = [&request[..], next].concat();
        let head = all.len() - stored.len();
        let ends = (1..head).chain(all.len() - head..all.len());
        let middle = [head + 1000, LONG / 2, LONG - 1, LONG, LONG + 10];
        let mut stream = subject.connect(listener);
        for cut in ends.chain(middle) {
            // A second split, so that the value does not begin and end in one piece.
            let mut from = 0;
            for to in [cut.min(600_000), cut.max(600_000), all.len()] {
                stream.write_all(&all[from..to]).expect("sent");
                pass_time(&mut clock, 3);
                from = to;
            }
            ask(&mut stream, b"", answer);
            let mut reader = subject.connect(RESP);
            ask_long(&mut reader, b"GETDEL k\r\n", &bulk(&stored));
        }
    }
    // Byte by byte, but for most of the value.
    let request = framed(&[b"SET", b"k", &stored, b"XX", b"KEEPTTL"]);
    let mut stream = subject.connect(RESP);
    for byte in &request[..60] {
        stream.write_all(&[*byte]).expect("sent");
        pass_time(&mut clock, 1);
    }
    stream.write_all(&request[60..LONG]).expect("sent");
    for byte in &request[LONG..] {
        stream.write_all(&[*byte]).expect("sent");
        pass_time(&mut clock, 1);
    }
    ask(&mut stream, b"EXISTS k\r\n", b"$-1\r\n:0\r\n");
    subject.is_empty_after_all();
}

fn all_options_of_set_apply_to_long_values(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let mut stream = subject.connect(RESP);
    let [one, two] = [1, 2].map(|number| random::bytes(number, LONG + number as usize));
    let mut set = |stored: &[u8], options: &[&[u8]], expected: &[u8]| {
        let request = framed(&[&[&b"SET"[..], b"k", stored], options].concat());
        ask_slowly(&subject, &mut stream, &request, expected);
    };
    set(&one, &[b"XX"], b"$-1\r\n");
    set(&one, &[b"NX", b"GET"], b"$-1\r\n");
    set(&two, &[b"NX"], b"$-1\r\n");
    set(&two, &[b"NX", b"GET"], &bulk(&one));
    set(&two, &[b"GET", b"PX", b"1000000"], &bulk(&one));
    set(&one, &[b"IFEQ", &one], b"$-1\r\n");
    set(&two, &[b"IFEQ", &two, b"KEEPTTL"], b"+OK\r\n");
    set(&one, &[b"KEEPTTL"], b"+OK\r\n");
    set(&two, &[b"EX", b"0"], b"-ERR invalid expire time in 'set' command\r\n");
    set(&two, &[b"NONE"], b"-ERR syntax error\r\n");
    ask_long(&mut stream, b"GET k\r\n", &bulk(&one));
    stream.write_all(b"PTTL k\r\n").expect("sent");
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer.starts_with(b":") && answer[1].is_ascii_digit(), "it expires: {answer:?}");
    ask_long(&mut stream, &framed(&[b"SET", b"other", &two]), b"+OK\r\n");
    subject.is_empty_after_all();
}

fn other_commands_take_long_values(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let mut stream = subject.connect(RESP);
    let [one, two] = [1, 2].map(|number| random::bytes(number, LONG + number as usize));
    let mut slowly = |args: &[&[u8]], expected: &[u8]| {
        let request = framed(args);
        if request.len() > LONG {
            ask_slowly(&subject, &mut stream, &request, expected);
        } else {
            ask_long(&mut stream, &request, expected);
        }
    };
    slowly(&[b"ECHO", &one], &bulk(&one));
    slowly(&[b"SETEX", b"k", b"100", &one], b"+OK\r\n");
    slowly(&[b"GETSET", b"k", &two], &bulk(&one));
    slowly(&[b"SETNX", b"k", &one], b":0\r\n");
    slowly(&[b"APPEND", b"k", &one], format!(":{}\r\n", one.len() + two.len()).as_bytes());
    slowly(&[b"GET", b"k"], &bulk(&[&two[..], &one].concat()));
    slowly(&[b"MSET", b"a", &one, b"b", &two, b"c", b"short"], b"+OK\r\n");
    slowly(
        &[b"MGET", b"a", b"b", b"c"],
        &[b"*3\r\n", &bulk(&one)[..], &bulk(&two), b"$5\r\nshort\r\n"].concat(),
    );
    slowly(&[b"SETRANGE", b"k", b"1", &one], format!(":{}\r\n", one.len() + two.len()).as_bytes());
    let text = "-ERR wrong number of arguments for 'get' command\r\n";
    slowly(&[b"GET", b"k", &one], text.as_bytes());
    slowly(&[&one], b"-ERR unknown command '");
    let mut stream = subject.connect(RESP);
    ask(&mut stream, b"MULTI\r\n", b"+OK\r\n");
    ask_slowly(&subject, &mut stream, &framed(&[b"SET", b"k", &two]), b"+QUEUED\r\n");
    ask_slowly(&subject, &mut stream, &framed(&[b"SET", b"l", &one]), b"+QUEUED\r\n");
    ask(&mut stream, b"EXEC\r\n", b"*2\r\n+OK\r\n+OK\r\n");
    ask_long(&mut stream, b"GET k\r\n", &bulk(&two));
    ask_long(&mut stream, b"GET l\r\n", &bulk(&one));
    subject.is_empty_after_all();
}

fn requests_after_a_long_value_are_executed(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let [one, two] = [1, 2].map(|number| random::bytes(number, LONG + number as usize));
    let before = [b"PING\r\n", &framed(&[b"SET", b"k", b"short"])[..]].concat();
    let requests = [
        &before[..],
        &framed(&[b"SET", b"k", &one]),
        b"STRLEN k\r\n",
        &framed(&[b"SET", b"l", &two]),
        &framed(&[b"SET", b"m", b""]),
        b"MGET k l m\r\n",
    ];
    let answer = format!("+PONG\r\n+OK\r\n+OK\r\n:{}\r\n+OK\r\n+OK\r\n*3\r\n", one.len());
    let answer = [answer.as_bytes(), &bulk(&one), &bulk(&two), &bulk(b"")].concat();
    for _ in 0..5 {
        ask_long(&mut subject.connect(RESP), &requests.concat(), &answer);
    }
    let mut memcache = subject.connect(MEMCACHE);
    let set = |key: &str, stored: &[u8]| {
        let line = format!("set {key} 0 0 {}\r\n", stored.len());
        [line.as_bytes(), stored, b"\r\n"].concat()
    };
    let noreply =
        [format!("set b 0 0 {} noreply\r\n", two.len()).as_bytes(), &two, b"\r\n"].concat();
    let requests = [&set("a", &one), &noreply, &set("c", b"")[..], b"get a b c\r\n"].concat();
    let found = |key: &str, stored: &[u8]| {
        let line = format!("VALUE {key} 0 {}\r\n", stored.len());
        [line.as_bytes(), stored, b"\r\n"].concat()
    };
    let answer = [
        b"STORED\r\nSTORED\r\n",
        &found("a", &one)[..],
        &found("b", &two),
        &found("c", b""),
        b"END\r\n",
    ];
    for _ in 0..5 {
        ask_long(&mut memcache, &requests, &answer.concat());
    }
    subject.is_empty_after_all();
}

fn long_values_are_stored_by_memcached_commands(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let mut stream = subject.connect(MEMCACHE);
    let [one, two] = [1, 2].map(|number| random::bytes(number, LONG + number as usize));
    let mut slowly = |verb: &str, stored: &[u8], more: &str, expected: &str| {
        let line = match verb {
            "ms" => format!("ms k {} {more}\r\n", stored.len()),
            _ => format!("{verb} k 7 0 {}{more}\r\n", stored.len()),
        };
        let request = [line.as_bytes(), stored, b"\r\n"].concat();
        ask_slowly(&subject, &mut stream, &request, expected.as_bytes());
    };
    slowly("replace", &one, "", "NOT_STORED\r\n");
    slowly("append", &one, "", "NOT_STORED\r\n");
    slowly("cas", &one, " 77", "NOT_FOUND\r\n");
    slowly("add", &one, "", "STORED\r\n");
    slowly("add", &two, "", "NOT_STORED\r\n");
    slowly("cas", &two, " 77777", "EXISTS\r\n");
    slowly("replace", &two, "", "STORED\r\n");
    slowly("append", &one, "", "STORED\r\n");
    slowly("ms", &one, "F9 ME", "NS\r\n");
    slowly("ms", &two, "T1000 F5 E99", "HD\r\n");
    slowly("ms", &one, "C98 I E100", "HD\r\n");
    slowly("ms", &one, "C99 F5", "EX\r\n");
    slowly("ms", &one, "C100 F5", "HD\r\n");
    let line = format!("VALUE k 5 {}\r\n", one.len());
    ask_long(&mut stream, b"get k\r\n", &[line.as_bytes(), &one, b"\r\nEND\r\n"].concat());
    // A value that is longer than announced.
    let line = format!("set k 0 0 {}\r\n", two.len() - 2);
    let request = [line.as_bytes(), &two, b"\r\nversion\r\n"].concat();
    stream.write_all(&request).expect("sent");
    ask(&mut stream, b"", b"CLIENT_ERROR bad data chunk\r\n");
    subject.is_empty_after_all();
}

fn an_incomplete_value_returns_its_memory(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let max = subject.cache.max_value_len();
    let heads = [
        (RESP, format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${max}\r\n")),
        (MEMCACHE, format!("set k 0 0 {max}\r\n")),
        (MEMCACHE, format!("ms k {max} T0\r\n")),
    ];
    for (listener, head) in heads {
        for len in [0, 1, 300_000, 20 << 20, max, max + 1] {
            let mut stream = subject.connect(listener);
            stream.write_all(head.as_bytes()).expect("sent");
            subject.wait("it begins", |cache| cache.pending_bytes() > 0);
            stream.write_all(&random::bytes(1, len)[..len.min(max)]).expect("sent");
            if len > max {
                stream.write_all(b"\r").expect("sent");
            }
            drop(stream);
            subject.wait("it is given up", |cache| {
                cache.pending_bytes() == 0 && cache.stats().memory_large == 0
            });
        }
    }
    assert_eq!(subject.cache.len(), 0);
}

fn a_value_longer_than_announced_is_refused(io_backend: IoBackend) {
    let subject = Subject::new(io_backend);
    let stored = random::bytes(1, LONG);
    let request = framed(&[b"SET", b"k", &stored]);
    let mut stream = subject.connect(RESP);
    let end = request.len() - 2;
    let text = b"-ERR Protocol error: expected CRLF after an argument\r\n";
    ask_slowly(&subject, &mut stream, &[&request[..end], b"xx"].concat(), text);
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    assert_eq!(subject.cache.len(), 0);
    subject.is_empty_after_all();
}

fn a_client_that_may_not_store_is_refused_and_stays_connected(io_backend: IoBackend) {
    let users = "user default on nopass ~a* +@all\nuser reader on >r ~* +get +ping +auth +flushall";
    let subject = Subject::with(Eviction::S3Fifo, users, io_backend);
    let stored = random::bytes(1, LONG);
    let mut stream = subject.connect(RESP);
    let denied =
        b"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";
    ask_slowly(&subject, &mut stream, &framed(&[b"SET", b"k", &stored]), denied);
    ask_slowly(&subject, &mut stream, &framed(&[b"SET", b"a", &stored]), b"+OK\r\n");
    ask(&mut stream, b"AUTH reader r\r\n", b"+OK\r\n");
    let denied = b"-NOPERM this user has no permissions to run the 'set' command\r\n";
    ask_slowly(&subject, &mut stream, &framed(&[b"SET", b"a", &stored]), denied);
    ask_long(&mut stream, b"GET a\r\n", &bulk(&stored));
    let mut memcache = subject.connect(MEMCACHE);
    let line = format!("set k 0 0 {}\r\n", stored.len());
    memcache.write_all(&[line.as_bytes(), &stored, b"\r\nget k\r\n"].concat()).expect("sent");
    let mut first = [0; 12];
    memcache.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"CLIENT_ERROR");
    subject.is_empty_after_all();
}

fn without_memory_long_values_are_refused_and_other_requests_executed(io_backend: IoBackend) {
    let subject = Subject::with(Eviction::None, ALL, io_backend);
    let mut stream = subject.connect(RESP);
    let stored = random::bytes(1, 12 << 20);
    let request = |key: usize| framed(&[b"SET", format!("k{key}").as_bytes(), &stored]);
    let fits = (0..10).take_while(|key| {
        stream.write_all(&request(*key)).expect("sent");
        let mut first = [0; 5];
        stream.read_exact(&mut first).expect("an answer");
        first == *b"+OK\r\n"
    });
    let fits = fits.count();
    assert!((3..5).contains(&fits), "{fits}");
    ask(&mut stream, b"", &OOM[5..]);
    for key in 0..fits {
        ask_long(&mut stream, format!("GET k{key}\r\n").as_bytes(), &bulk(&stored));
    }
    ask(&mut stream, b"DEL k0\r\n", b":1\r\n");
    ask_slowly(&subject, &mut stream, &request(0), b"+OK\r\n");
    ask_long(&mut stream, b"GET k0\r\n", &bulk(&stored));
    subject.is_empty_after_all();
}

/// Returns whether a value was stored. A refused value need not be sent to its end.
fn is_stored(mut stream: &TcpStream) -> Option<()> {
    let mut first = [0; 5];
    match stream.read_exact(&mut first) {
        Ok(()) if first == *b"+OK\r\n" => return Some(()),
        Ok(()) => assert!(first == *b"-ERR " || first == *b"-OOM ", "{first:?}"),
        Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
    }
    // The connection may be closed already.
    let _ = stream.shutdown(Shutdown::Both);
    None
}

/// More values than fit, from clients that each wait for the others: all are answered.
fn many_long_values_at_once_are_stored_or_refused(io_backend: IoBackend) {
    for threads in [1, 2] {
        let subject = Subject::with_threads(threads, (Eviction::S3Fifo, ALL), io_backend);
        many_long_values_at_once(&subject);
    }
}

fn many_long_values_at_once(subject: &Subject) {
    let stored = random::bytes(1, 18 << 20);
    let request = framed(&[b"SET", b"k", &stored]);
    for _ in 0..3 {
        let streams: Vec<_> = (0..5).map(|_| subject.connect(RESP)).collect();
        let answered = thread::scope(|scope| {
            let answers = streams.iter().map(|stream| scope.spawn(|| is_stored(stream)));
            let answers: Vec<_> = answers.collect();
            for stream in &streams {
                // This client waits for the others. The server may have closed its connection.
                scope.spawn(|| { &*stream }.write_all(&request));
            }
            answers.into_iter().filter_map(|answer| answer.join().expect("an answer")).count()
        });
        assert!(answered > 0, "not even one");
        let stats = subject.cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
        ask_long(&mut subject.connect(RESP), b"GET k\r\n", &bulk(&stored));
    }
    subject.is_empty_after_all();
}
