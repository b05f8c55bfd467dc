//! Checks RESP against the vectors in testdata/protocol, and what the vectors cannot express.

mod case;

use case::Case;
use nuthatch_server::resp::Span;
use nuthatch_server::resp::{Decoder, Limits, Reply, Step, Version};

const REQUESTS: &str = include_str!("../../../testdata/protocol/resp.txt");
const REPLIES: &str = include_str!("../../../testdata/protocol/resp-replies.txt");

#[derive(Debug, PartialEq)]
enum Outcome {
    Request(Vec<Vec<u8>>),
    Inline(Vec<Vec<u8>>),
    Empty,
    /// The bytes that follow are a part of a request.
    More,
    /// Nothing follows.
    End,
    Error(String),
}

fn texts(spans: &[Span], bytes: &[u8]) -> Vec<Vec<u8>> {
    spans.iter().map(|span| span.of(bytes).expect("a span within the bytes").to_vec()).collect()
}

/// Decodes bytes that arrive up to the first of `ends`, then up to the next, and so on.
fn decode(limits: Limits, input: &[u8], ends: impl Iterator<Item = usize>) -> Vec<Outcome> {
    let mut decoder = Decoder::new(limits);
    let (mut outcomes, mut args, mut read) = (Vec::new(), Vec::new(), 0);
    for end in ends {
        loop {
            let bytes = &input[read..end];
            let known = args.len();
            let step = decoder.next(bytes, &mut args);
            if !matches!(step, Ok(Step::Request { .. })) {
                assert_eq!(args.len(), known, "arguments of no whole request");
            }
            let (outcome, consumed) = match step {
                Ok(Step::Request { consumed }) => {
                    (Outcome::Request(texts(&args[known..], &bytes[..consumed])), consumed)
                }
                Ok(Step::Inline { consumed, line }) => {
                    (Outcome::Inline(texts(&line.args, &line.bytes)), consumed)
                }
                Ok(Step::Empty { consumed }) => (Outcome::Empty, consumed),
                Ok(Step::More { needed }) => {
                    assert!(needed > 0);
                    break;
                }
                Err(error) => {
                    outcomes.push(Outcome::Error(error.to_string()));
                    return outcomes;
                }
            };
            assert!((1..=bytes.len()).contains(&consumed));
            outcomes.push(outcome);
            read += consumed;
        }
    }
    outcomes.push(if read == input.len() { Outcome::End } else { Outcome::More });
    outcomes
}

fn limits_of(case: &Case) -> Limits {
    let default = Limits::default();
    let number = |name, otherwise| {
        case.limit(name).map_or(otherwise, |limit| limit.parse().expect("a number"))
    };
    let limits = Limits {
        bulk_len: number("bulk", default.bulk_len),
        args: number("args", default.args),
        line_len: number("line", default.line_len),
        request_len: number("request", default.request_len),
        bulk_limit: default.bulk_limit,
        authenticated: true,
    };
    if case.limit("auth").as_deref() == Some("no") { limits.before_auth() } else { limits }
}

fn expected(case: &Case) -> Vec<Outcome> {
    let outcomes = case.lines().filter_map(|(word, strings)| match word {
        "request" => Some(Outcome::Request(strings.to_vec())),
        "inline" => Some(Outcome::Inline(strings.to_vec())),
        "empty" => Some(Outcome::Empty),
        "more" => Some(Outcome::More),
        "end" => Some(Outcome::End),
        "error" => Some(Outcome::Error(String::from_utf8(strings.concat()).expect("a text"))),
        "in" | "limits" => None,
        other => panic!("{}: the word {other}", case.name),
    });
    outcomes.collect()
}

#[test]
fn requests_match_the_vectors_however_they_arrive() {
    for case in Case::all(REQUESTS) {
        let (name, limits) = (&case.name, limits_of(&case));
        let (input, expected) = (case.joined("in"), expected(&case));
        let len = input.len();
        assert_eq!(decode(limits, &input, [len].into_iter()), expected, "{name}: whole");
        assert_eq!(decode(limits, &input, 0..=len), expected, "{name}: byte by byte");
        // Splits the input at every byte, or at fewer positions if it is as long as the longest
        // lines.
        for split in (0..=len).step_by(1 + len / 4096) {
            let outcomes = decode(limits, &input, [split, len].into_iter());
            assert!(outcomes == expected, "{name}: split at {split}: {outcomes:?}");
        }
    }
}

#[test]
fn input_is_decoded_once() {
    let first = b"*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n".as_slice();
    let rest = b"$1000\r\n".as_slice();
    let value = [b'v'; 1000];
    let mut bytes = [first, rest, &value, b"\r\n$0\r\n\r\n"].concat();
    let mut decoder = Decoder::new(Limits::default());
    let mut args = Vec::new();
    for end in [first.len(), first.len() + 4] {
        let step = decoder.next(&bytes[..end], &mut args);
        assert_eq!(step, Ok(Step::More { needed: 1 }));
    }
    bytes[..first.len()].fill(b'?');
    let consumed = bytes.len();
    assert_eq!(decoder.next(&bytes, &mut args), Ok(Step::Request { consumed }));
    let starts: Vec<_> = args.iter().map(|span| span.start).collect();
    let lens: Vec<_> = args.iter().map(|span| span.len).collect();
    assert_eq!((starts, lens), (vec![8, 17, 29, 1035], vec![3, 3, 1000, 0]));
}

#[test]
fn a_line_is_searched_once() {
    let mut decoder = Decoder::new(Limits::default());
    let mut args = Vec::new();
    assert_eq!(decoder.next(b"GET key", &mut args), Ok(Step::More { needed: 1 }));
    let Ok(Step::Inline { consumed, line }) = decoder.next(b"GET\nkey\n", &mut args) else {
        panic!("no inline request");
    };
    assert_eq!((consumed, line.args.len()), (8, 2));
}

#[test]
fn the_number_of_missing_bytes_of_a_value_is_exact() {
    let mut decoder = Decoder::new(Limits::default());
    let mut args = Vec::new();
    let step = decoder.next(b"*2\r\n$4\r\nECHO\r\n$1000000\r\nabc", &mut args);
    assert_eq!(step, Ok(Step::More { needed: 1_000_000 - 3 + 2 }));
}

#[test]
fn a_million_arguments_in_small_pieces() {
    const COUNT: usize = 1 << 20;
    let mut input = format!("*{COUNT}\r\n").into_bytes();
    for number in 0..COUNT {
        let text = number.to_string();
        input.extend_from_slice(format!("${}\r\n{text}\r\n", text.len()).as_bytes());
    }
    let mut decoder = Decoder::new(Limits::default());
    let mut args = Vec::new();
    let mut end = 0;
    let step = loop {
        end = input.len().min(end + 1024);
        match decoder.next(&input[..end], &mut args) {
            Ok(Step::More { .. }) => assert!(args.is_empty() && args.capacity() < 1024),
            step => break step,
        }
    };
    assert_eq!(step, Ok(Step::Request { consumed: input.len() }));
    assert_eq!(args.len(), COUNT);
    for (number, span) in args.iter().enumerate() {
        assert_eq!(span.of(&input), Some(number.to_string().as_bytes()));
    }
}

#[test]
fn limits_change_when_a_client_authenticates() {
    let mut decoder = Decoder::new(Limits::default().before_auth());
    let mut args = Vec::new();
    decoder.next(b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n", &mut args).expect("a request");
    decoder.set_limits(Limits::default());
    let (head, announced) = (b"*11\r\n".as_slice(), b"*11\r\n$8193\r\n".as_slice());
    assert_eq!(decoder.next(head, &mut args), Ok(Step::More { needed: 1 }));
    assert_eq!(decoder.next(announced, &mut args), Ok(Step::More { needed: 8195 }));
}

#[test]
fn replies_match_the_vectors() {
    for case in Case::all(REPLIES) {
        for (version, word) in [(Version::Resp2, "resp2"), (Version::Resp3, "resp3")] {
            let mut out = Vec::new();
            let mut reply = Reply::new(&mut out, version);
            for line in case.lines().filter(|line| line.0 == "reply") {
                write(&mut reply, line.1);
            }
            let expected = [case.joined("both"), case.joined(word)].concat();
            let (out, expected) = (out.escape_ascii(), expected.escape_ascii());
            assert_eq!(out.to_string(), expected.to_string(), "{}: {word}", case.name);
        }
    }
}

/// Calls the method that the first string names, with the other strings.
fn write(reply: &mut Reply<'_>, call: &[Vec<u8>]) {
    let (method, args) = call.split_first().expect("the name of a reply");
    let first = args.first().map_or(b"".as_slice(), Vec::as_slice);
    let text = String::from_utf8_lossy(first);
    let len = || text.parse::<usize>().expect("a length");
    match method.as_slice() {
        b"ok" => reply.ok(),
        b"queued" => reply.queued(),
        b"pong" => reply.pong(),
        b"null" => reply.null(),
        b"null_array" => reply.null_array(),
        b"simple" => reply.simple(first),
        b"error" => reply.error(first),
        b"bulk" => reply.bulk(first),
        b"verbatim" => reply.verbatim(first),
        b"big_number" => reply.big_number(first),
        b"array" => reply.array(len()),
        b"map" => reply.map(len()),
        b"set" => reply.set(len()),
        b"push" => reply.push(len()),
        b"integer" => reply.integer(text.parse().expect("an integer")),
        b"double" => reply.double(text.parse().expect("a double")),
        b"boolean" => reply.boolean(text.parse().expect("a boolean")),
        b"pieces" => {
            reply.bulk_header(args.iter().map(Vec::len).sum());
            for piece in args {
                reply.append(piece);
            }
            reply.bulk_end();
        }
        other => panic!("no reply {}", other.escape_ascii()),
    }
}

/// An argument that is received elsewhere has the announced length, wherever the request is split.
#[test]
fn an_argument_may_be_received_elsewhere() {
    let value = [b'v'; 1000];
    let request = [b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n", &value[..], b"\r\n$2\r\nNX\r\n"];
    let request = request.concat();
    let start = request.iter().position(|byte| *byte == b'v').expect("a value");
    for cut in start..start + value.len() {
        let (mut decoder, mut args) = (Decoder::new(Limits::default()), Vec::new());
        assert!(matches!(decoder.next(&request[..cut], &mut args), Ok(Step::More { .. })));
        assert_eq!(decoder.pending_value(), Some((start, value.len())));
        decoder.elide();
        assert_eq!(decoder.pending_value(), None);
        let without = [&request[..start], &request[start + value.len()..]].concat();
        for end in start..without.len() {
            let step = decoder.next(&without[..end], &mut args);
            assert!(matches!(step, Ok(Step::More { .. })), "{step:?} up to {end}");
            assert_eq!(decoder.pending_value(), None, "once for each request");
        }
        let consumed = without.len();
        let all = [&without[..], b"*1\r\n$4\r\nPING\r\n"].concat();
        assert_eq!(decoder.next(&all, &mut args), Ok(Step::Request { consumed }));
        let found: Vec<_> = args.iter().map(|span| span.of(&without)).collect();
        assert_eq!(found, [Some(&b"SET"[..]), Some(b"k"), None, Some(b"NX")]);
        assert_eq!(args[2].len as usize, value.len());
        args.clear();
        let consumed = all.len() - consumed;
        let step = decoder.next(&all[without.len()..], &mut args);
        assert_eq!((step, args.len()), (Ok(Step::Request { consumed }), 1));
    }
    // As always, the end of the line must follow it, and the whole must be no longer than allowed.
    let limits = Limits { request_len: 1050, ..Limits::default() };
    let wrong = [(limits, &b"\rx"[..]), (limits, b"\r\n$100\r\n"), (Limits::default(), b"x")];
    for (limits, rest) in wrong {
        let (mut decoder, mut args) = (Decoder::new(limits), Vec::new());
        decoder.next(&request[..=start], &mut args).expect("a part");
        decoder.elide();
        let step = decoder.next(&[&request[..start], rest, b"\n\n"].concat(), &mut args);
        assert!(step.is_err(), "{step:?}");
    }
}
