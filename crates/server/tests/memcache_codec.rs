//! Checks memcached's protocols against the vectors in testdata/protocol, and what the vectors
//! cannot express.

mod case;

use case::Case;
use nuthatch_server::memcache::meta_reply::{self, Item, Outcome, Renewal, Stored};
use nuthatch_server::memcache::reply::{self, LINE_END, Line};
use nuthatch_server::memcache::{
    Decoder, Direction, Error, Flags, KeyBuffer, Limits, Meta, MetaVerb, Request, Step, StoreMode,
};

const REQUESTS: &str = include_str!("../../../testdata/protocol/memcache.txt");
const REPLIES: &str = include_str!("../../../testdata/protocol/memcache-replies.txt");

/// A line of the vectors: its word and its strings.
type Said = (String, Vec<Vec<u8>>);

fn said(word: &str, strings: &[&[u8]]) -> Said {
    (word.to_owned(), strings.iter().map(|string| string.to_vec()).collect())
}

/// Returns the same line, with `noreply` if the request has it.
fn with_noreply(word: &str, strings: &[&[u8]], noreply: bool) -> Said {
    let mut said = said(word, strings);
    if noreply {
        said.1.push(b"noreply".to_vec());
    }
    said
}

fn mode_name(mode: StoreMode) -> &'static str {
    match mode {
        StoreMode::Set => "set",
        StoreMode::Add => "add",
        StoreMode::Replace => "replace",
        StoreMode::Append => "append",
        StoreMode::Prepend => "prepend",
    }
}

fn request(request: Request<'_>) -> Said {
    let number = |number: &dyn ToString| number.to_string().into_bytes();
    match request {
        Request::Get(get) => {
            let word = match (get.exptime, get.cas) {
                (None, false) => "get",
                (None, true) => "gets",
                (Some(_), false) => "gat",
                (Some(_), true) => "gats",
            };
            let exptime = get.exptime.map(|exptime| number(&exptime));
            let keys = get.keys.into_iter().map(<[u8]>::to_vec);
            (word.to_owned(), exptime.into_iter().chain(keys).collect())
        }
        Request::Store(store) => {
            let (flags, exptime) = (number(&store.flags), number(&store.exptime));
            let mut strings = vec![store.key, &flags, &exptime, store.value];
            let cas = store.cas.map(|cas| format!("cas={cas}"));
            strings.extend(cas.iter().map(String::as_bytes));
            with_noreply(mode_name(store.mode), &strings, store.noreply)
        }
        Request::Arith(arith) => {
            let up = arith.direction == Direction::Increment;
            let word = if up { "incr" } else { "decr" };
            with_noreply(word, &[arith.key, &number(&arith.delta)], arith.noreply)
        }
        Request::Touch { key, exptime, noreply } => {
            with_noreply("touch", &[key, &number(&exptime)], noreply)
        }
        Request::Delete { key, noreply } => with_noreply("delete", &[key], noreply),
        Request::FlushAll { exptime, noreply } => {
            with_noreply("flush_all", &[&number(&exptime)], noreply)
        }
        Request::Stats { args } => said("stats", &[args]),
        Request::Version => said("version", &[]),
        Request::Verbosity { level, noreply } => {
            with_noreply("verbosity", &[&number(&level)], noreply)
        }
        Request::Quit => said("quit", &[]),
        Request::Meta(meta) => meta_request(&meta),
        Request::Noop => said("mn", &[]),
        Request::TooLarge(refused) => {
            let mut room = KeyBuffer::default();
            let mut strings = vec![refused.key.bytes(&mut room)];
            strings.extend(refused.remove.then_some(b"remove".as_slice()));
            with_noreply("too-large", &strings, refused.noreply)
        }
    }
}

fn meta_request(meta: &Meta<'_>) -> Said {
    let mut room = KeyBuffer::default();
    let key = meta.key.bytes(&mut room);
    let (word, mut strings) = match meta.verb {
        MetaVerb::Get => ("mg", vec![key]),
        MetaVerb::Set(mode) => ("ms", vec![mode_name(mode).as_bytes(), key, meta.value]),
        MetaVerb::Delete => ("md", vec![key]),
        MetaVerb::Arith(Direction::Increment) => ("ma", vec![b"increment", key]),
        MetaVerb::Arith(Direction::Decrement) => ("ma", vec![b"decrement", key]),
        MetaVerb::Debug => ("me", vec![key]),
    };
    let flags: Vec<String> = (b'A'..=b'z').filter_map(|letter| flag(&meta.flags, letter)).collect();
    strings.extend(flags.iter().map(String::as_bytes));
    said(word, &strings)
}

fn flag(flags: &Flags<'_>, letter: u8) -> Option<String> {
    let number = match letter {
        b'T' => flags.exptime().map(i128::from),
        b'N' => flags.vivify().map(i128::from),
        b'R' => flags.recache().map(i128::from),
        b'C' => flags.compare_cas().map(i128::from),
        b'E' => flags.new_cas().map(i128::from),
        b'F' => flags.has(b'F').then(|| flags.client_flags().into()),
        b'J' => flags.has(b'J').then(|| flags.initial().into()),
        b'D' => flags.has(b'D').then(|| flags.delta().into()),
        _ => None,
    };
    let number = number.map_or_else(String::new, |number| number.to_string());
    flags.has(letter).then(|| format!("{}{number}", char::from(letter)))
}

/// Decodes bytes that arrive up to the first of `ends`, then up to the next, and so on.
fn decode(limits: Limits, input: &[u8], ends: impl Iterator<Item = usize>) -> Vec<Said> {
    let mut decoder = Decoder::new(limits);
    let (mut all, mut read, mut skipped) = (Vec::new(), 0, 0);
    for end in ends {
        loop {
            let (outcome, consumed) = match decoder.next(&input[read..end]) {
                Step::Request { request: found, consumed } => (Some(request(found)), consumed),
                Step::Error { error, consumed, close } => {
                    let word = if close { "close" } else { "error" };
                    (Some(said(word, &[error.text().as_bytes()])), consumed)
                }
                Step::Skip { consumed } => (None, consumed),
                Step::More { needed } => {
                    assert!(needed > 0);
                    break;
                }
            };
            assert!((1..=end - read).contains(&consumed));
            read += consumed;
            let Some(outcome) = outcome else {
                skipped += consumed;
                continue;
            };
            say_skipped(&mut all, &mut skipped);
            all.push(outcome);
            if all.last().is_some_and(|last| last.0 == "close") {
                return all;
            }
        }
    }
    say_skipped(&mut all, &mut skipped);
    all.push(said(if read == input.len() { "end" } else { "more" }, &[]));
    all
}

/// Reports adjacent skips as one, however the bytes arrived.
fn say_skipped(all: &mut Vec<Said>, skipped: &mut usize) {
    if *skipped > 0 {
        all.push(said("skip", &[skipped.to_string().as_bytes()]));
        *skipped = 0;
    }
}

fn limits_of(case: &Case) -> Limits {
    let default = Limits::default();
    let number = |name, otherwise| {
        case.limit(name).map_or(otherwise, |limit| limit.parse().expect("a number"))
    };
    Limits {
        object_len: number("object", default.object_len),
        many_keys_len: number("many", default.many_keys_len),
    }
}

fn legible(all: &[Said]) -> String {
    let line = |said: &Said| {
        let strings = said.1.iter().map(|string| format!(" \"{}\"", string.escape_ascii()));
        format!("{}{}\n", said.0, strings.collect::<String>())
    };
    all.iter().map(line).collect()
}

#[test]
fn requests_match_the_vectors_however_they_arrive() {
    for case in Case::all(REQUESTS) {
        let (name, limits) = (&case.name, limits_of(&case));
        let lines = case.lines().filter(|line| !["in", "limits"].contains(&line.0));
        let expected: Vec<_> = lines.map(|(word, said)| (word.to_owned(), said.to_vec())).collect();
        let input = case.joined("in");
        let len = input.len();
        let check = |outcomes: &[Said], how: &str| {
            assert!(outcomes == expected, "{name}, {how}:\n{}", legible(outcomes));
        };
        check(&decode(limits, &input, [len].into_iter()), "whole");
        check(&decode(limits, &input, 0..=len), "byte by byte");
        for split in (0..=len).step_by(1 + len / 8192) {
            let outcomes = decode(limits, &input, [split, len].into_iter());
            check(&outcomes, &format!("split at {split}"));
        }
    }
}

#[test]
fn a_line_is_searched_once() {
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(decoder.next(b"get a b"), Step::More { needed: 1 });
    // A caller that discards bytes that the decoder has not read.
    let step = decoder.next(b"get a\nb c\r\n");
    assert_eq!(step, Step::Error { error: Error::BadFormat, consumed: 11, close: false });
}

#[test]
fn the_number_of_missing_bytes_of_a_value_is_exact() {
    let mut decoder = Decoder::new(Limits::default());
    let step = decoder.next(b"set a 0 0 1000000\r\nabc");
    assert_eq!(step, Step::More { needed: 1_000_000 - 3 + 2 });
    let step = decoder.next(b"set a 0 0 1000000\r\nabcde");
    assert_eq!(step, Step::More { needed: 1_000_000 - 5 + 2 });
}

#[test]
fn object_limits_are_at_most_that_of_the_protocol() {
    let limits = Limits { object_len: usize::MAX, ..Limits::default() };
    let step = Decoder::new(limits).next(b"set a 0 0 2147483645\r\n");
    assert_eq!(step, Step::More { needed: 2_147_483_647 });
}

#[test]
fn every_error_is_one_line() {
    for error in Error::ALL {
        let text = error.text();
        let starts = ["ERROR", "CLIENT_ERROR ", "SERVER_ERROR "];
        assert!(starts.iter().any(|start| text.starts_with(start)), "{text}");
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
        assert_eq!(error.to_string(), text);
        let mut out = Vec::new();
        reply::error(&mut out, *error);
        assert_eq!(out, [text.as_bytes(), LINE_END].concat());
    }
}

#[test]
fn replies_match_the_vectors() {
    for case in Case::all(REPLIES) {
        let mut out = Vec::new();
        for line in case.lines().filter(|line| line.0 == "reply") {
            let (kind, args) = line.1.split_first().expect("what to reply");
            write(&mut out, text(kind), args);
        }
        let (out, expected) = (out.escape_ascii(), case.joined("out"));
        assert_eq!(out.to_string(), expected.escape_ascii().to_string(), "{}", case.name);
    }
}

fn text(string: &[u8]) -> &str {
    std::str::from_utf8(string).expect("a text")
}

fn number<N: std::str::FromStr>(string: &[u8]) -> N {
    text(string).parse().unwrap_or_else(|_| panic!("{} is no number", text(string)))
}

fn write(out: &mut Vec<u8>, kind: &str, args: &[Vec<u8>]) {
    let line = match kind {
        "end" => Line::End,
        "stored" => Line::Stored,
        "not-stored" => Line::NotStored,
        "exists" => Line::Exists,
        "not-found" => Line::NotFound,
        "deleted" => Line::Deleted,
        "touched" => Line::Touched,
        "ok" => Line::Ok,
        "reset" => Line::Reset,
        "noop" => Line::Noop,
        _ => return write_other(out, kind, args),
    };
    reply::line(out, line);
}

fn write_other(out: &mut Vec<u8>, kind: &str, args: &[Vec<u8>]) {
    match (kind, args) {
        ("value", [key, flags, value]) => reply::value(out, key, number(flags), value, None),
        ("value", [key, flags, value, cas]) => {
            reply::value(out, key, number(flags), value, Some(number(cas)));
        }
        ("number", [value]) => reply::number(out, number(value)),
        ("version", [version]) => reply::version(out, text(version)),
        ("stat", [name, value]) => reply::stat(out, text(name), text(value)),
        ("meta", [outcome, line, item @ ..]) => write_meta(out, text(outcome), line, item),
        _ => panic!("a reply {kind} with {} strings", args.len()),
    }
}

/// Writes the reply to a line. A value in the reply has as many `v` as the item is long.
fn write_meta(out: &mut Vec<u8>, outcome: &str, line: &[u8], item: &[Vec<u8>]) {
    let mut decoder = Decoder::new(Limits::default());
    let Step::Request { request: Request::Meta(meta), .. } = decoder.next(line) else {
        panic!("no meta request: {}", text(line));
    };
    let stored = stored(item);
    let outcome = match outcome {
        "done" => Outcome::Done(&stored.item),
        "not-found" => Outcome::NotFound,
        "not-stored" => Outcome::NotStored,
        "exists" => Outcome::Exists,
        "debug" => return meta_reply::debug(out, &meta, Some(&stored)),
        "debug-nothing" => return meta_reply::debug(out, &meta, None),
        other => panic!("an outcome {other}"),
    };
    if meta_reply::reply(out, &meta, outcome) {
        out.extend(std::iter::repeat_n(b'v', stored.item.len));
        out.extend_from_slice(LINE_END);
    }
}

fn stored(fields: &[Vec<u8>]) -> Stored {
    let mut stored = Stored::default();
    let item: &mut Item = &mut stored.item;
    for field in fields.iter().map(|field| text(field)) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let value = value.as_bytes();
        match name {
            "len" => item.len = number(value),
            "cas" => item.cas = number(value),
            "flags" => item.client_flags = number(value),
            "ttl" => item.ttl_secs = Some(number(value)),
            "idle" => item.idle_secs = number(value),
            "hit" => item.hit_before = true,
            "stale" => item.stale = true,
            "won" => item.renewal = Renewal::Won,
            "taken" => item.renewal = Renewal::Taken,
            "class" => stored.class = number(value),
            "stored" => stored.stored_len = number(value),
            other => panic!("a field {other}"),
        }
    }
    stored
}

/// A value that is received elsewhere is not in the buffer, and `was_elided` returns true for its
/// request.
#[test]
fn a_value_may_be_received_elsewhere() {
    let lines = [&b"set k 7 0 1000\r\n"[..], b"ms k 1000 T0\r\n", b"append k 0 0 1000 noreply\n"];
    for line in lines {
        let mut decoder = Decoder::new(Limits::default());
        assert_eq!(decoder.next(&[line, b"vv"].concat()), Step::More { needed: 1000 });
        assert_eq!(decoder.pending_value(), Some((line.len(), 1000)));
        decoder.elide();
        assert_eq!(decoder.pending_value(), None);
        for rest in [&b""[..], b"\r"] {
            let needed = 2 - rest.len();
            assert_eq!(decoder.next(&[line, rest].concat()), Step::More { needed });
        }
        let all = [line, b"\r\nmn\r\n"].concat();
        match decoder.next(&all) {
            Step::Request { request: Request::Store(store), consumed } => {
                assert_eq!((store.value, consumed), (&b""[..], line.len() + 2));
            }
            Step::Request { request: Request::Meta(meta), consumed } => {
                assert_eq!((meta.value, consumed), (&b""[..], line.len() + 2));
            }
            other => panic!("{other:?}"),
        }
        assert!(decoder.was_elided() && !decoder.was_elided());
        let next = decoder.next(b"mn\r\n");
        assert_eq!(next, Step::Request { request: Request::Noop, consumed: 4 });
        assert!(!decoder.was_elided());
        // The line does not end after the value.
        decoder.next(line);
        decoder.elide();
        let wrong = [line, b"xx"].concat();
        match decoder.next(&wrong) {
            Step::Error { error: Error::BadChunk, consumed, close: true } => {
                assert_eq!(consumed, wrong.len());
            }
            other => panic!("{other:?}"),
        }
        assert!(decoder.was_elided());
    }
}
