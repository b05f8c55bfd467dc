//! Checks the protocol of poor-man's-cache against the vectors in testdata/protocol.

mod case;

use case::Case;
use nuthatch_server::{pmc, resp};
use pmc::{Request, Step};

const REQUESTS: &str = include_str!("../../../testdata/protocol/pmc.txt");
const REPLIES: &str = include_str!("../../../testdata/protocol/pmc-replies.txt");

/// A line of the vectors: its word and its strings.
type Outcome = (&'static str, Vec<Vec<u8>>);

fn outcome(request: Request, message: &[u8]) -> Outcome {
    let text = |span: pmc::Span| span.of(message).expect("a span within the message").to_vec();
    match request {
        Request::Get { key } => ("get", vec![text(key)]),
        Request::Set { key, value } => ("set", vec![text(key), text(value)]),
        Request::Del { key } => ("del", vec![text(key)]),
        Request::Fault(fault) => ("fault", vec![fault.text().as_bytes().to_vec()]),
    }
}

/// A connection to a listener that accepts messages of both protocols.
struct Connection {
    pmc: pmc::Decoder,
    resp: resp::Decoder,
    outcomes: Vec<Outcome>,
}

impl Connection {
    /// Returns the length of the next message, or nothing while it is incomplete.
    fn next(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        match self.pmc.next(bytes) {
            Ok(Step::Request { request, consumed }) => {
                self.outcomes.push(outcome(request, &bytes[..consumed]));
                Ok(Some(consumed))
            }
            Ok(Step::Empty { consumed }) => Ok(Some(consumed)),
            Ok(Step::More) => Ok(None),
            Ok(Step::Resp) => self.next_resp(bytes),
            Err(too_long) => Err(format!("ERROR: {too_long}")),
        }
    }

    fn next_resp(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let mut args = Vec::new();
        match self.resp.next(bytes, &mut args).map_err(|error| error.to_string())? {
            resp::Step::Request { consumed } => {
                let texts = args.iter().map(|span| span.of(bytes).expect("a span").to_vec());
                self.outcomes.push(("request", texts.collect()));
                Ok(Some(consumed))
            }
            resp::Step::Empty { consumed } => Ok(Some(consumed)),
            resp::Step::More { .. } => Ok(None),
            resp::Step::Inline { .. } => panic!("an inline request begins with no `*`"),
        }
    }
}

/// Decodes bytes that arrive up to the first of `ends`, then up to the next, and so on.
fn decode(max: Option<u32>, input: &[u8], ends: impl Iterator<Item = usize>) -> Vec<Outcome> {
    let mut connection = Connection {
        pmc: max.map_or_else(pmc::Decoder::default, pmc::Decoder::new),
        resp: resp::Decoder::new(resp::Limits::default()),
        outcomes: Vec::new(),
    };
    let mut read = 0;
    for end in ends {
        loop {
            match connection.next(&input[read..end]) {
                Ok(Some(consumed)) => {
                    assert!((1..=end - read).contains(&consumed));
                    read += consumed;
                }
                Ok(None) => break,
                Err(text) => {
                    connection.outcomes.push(("error", vec![text.into_bytes()]));
                    return connection.outcomes;
                }
            }
        }
    }
    let last = if read == input.len() { "end" } else { "more" };
    connection.outcomes.push((last, Vec::new()));
    connection.outcomes
}

#[test]
fn requests_match_the_vectors_however_they_arrive() {
    for case in Case::all(REQUESTS) {
        let name = &case.name;
        let max = case.limit("message").map(|max| max.parse().expect("a number"));
        let lines = case.lines().filter(|line| !["in", "limits"].contains(&line.0));
        let expected: Vec<_> = lines.map(|(word, strings)| (word, strings.to_vec())).collect();
        let input = case.joined("in");
        let len = input.len();
        assert_eq!(decode(max, &input, [len].into_iter()), expected, "{name}: whole");
        assert_eq!(decode(max, &input, 0..=len), expected, "{name}: byte by byte");
        for split in 0..=len {
            let outcomes = decode(max, &input, [split, len].into_iter());
            assert_eq!(outcomes, expected, "{name}: split at {split}");
        }
    }
}

#[test]
fn a_message_is_searched_once() {
    let mut decoder = pmc::Decoder::default();
    assert_eq!(decoder.next(b"SET key value"), Ok(Step::More));
    let Ok(Step::Request { request, consumed }) = decoder.next(b"SET key va\x1fue\x1fGET") else {
        panic!("no request");
    };
    assert_eq!(
        outcome(request, b"SET key va\x1fue"),
        ("set", vec![b"key".into(), b"va\x1fue".into()])
    );
    assert_eq!(consumed, 14);
}

#[test]
fn replies_match_the_vectors() {
    for case in Case::all(REPLIES) {
        let mut out = Vec::new();
        for line in case.lines().filter(|line| line.0 == "reply") {
            write(&mut out, line.1);
        }
        let expected = case.joined("bytes");
        assert_eq!(
            out.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{}",
            case.name
        );
    }
}

/// Calls the method that the first string names, with the second string.
fn write(out: &mut Vec<u8>, call: &[Vec<u8>]) {
    let (method, args) = call.split_first().expect("the name of a reply");
    let first = args.first().map_or(b"".as_slice(), Vec::as_slice);
    let mut reply = pmc::Reply::new(out);
    match method.as_slice() {
        b"value" if reply.takes(first) => {
            out.extend_from_slice(first);
            pmc::Reply::new(out).value_end();
        }
        b"value" => {}
        b"miss" => reply.miss(),
        b"ok" => reply.ok(),
        b"no_such_key" => reply.no_such_key(),
        b"error" => reply.error(&String::from_utf8_lossy(first)),
        other => panic!("no reply {}", other.escape_ascii()),
    }
}
