//! Checks the protocol of mrcache against the vectors in testdata/protocol.

mod case;

use case::Case;
use nuthatch_server::mrcache::{Decoder, Framing, Limits, Request, Step};

const REQUESTS: &str = include_str!("../../../testdata/protocol/mrcache.txt");
const REPLIES: &str = include_str!("../../../testdata/protocol/mrcache-replies.txt");

/// A line of the vectors: its word and its strings.
type Said = (&'static str, Vec<Vec<u8>>);

fn said(request: Request<'_>) -> Said {
    let (word, strings) = match request {
        Request::Get { key } => ("get", vec![key]),
        Request::Set { key, value } => ("set", vec![key, value]),
        Request::GetZ { key } => ("getz", vec![key]),
        Request::SetZ { key, value } => ("setz", vec![key, value]),
        Request::Stat => ("stat", vec![]),
    };
    (word, strings.into_iter().map(<[u8]>::to_vec).collect())
}

/// Decodes bytes that arrive up to the first of `ends`, then up to the next, and so on.
fn decode(limits: Limits, input: &[u8], ends: impl Iterator<Item = usize>) -> Vec<Said> {
    let decoder = Decoder::new(limits);
    let (mut all, mut read) = (Vec::new(), 0);
    for end in ends {
        loop {
            match decoder.next(&input[read..end]) {
                Step::Request { request, consumed } => {
                    assert!((1..=end - read).contains(&consumed));
                    all.push(said(request));
                    read += consumed;
                }
                Step::Error { error } => {
                    all.push(("error", vec![error.to_string().into_bytes()]));
                    return all;
                }
                Step::More { needed } => {
                    assert!(needed > 0);
                    break;
                }
            }
        }
    }
    all.push((if read == input.len() { "end" } else { "more" }, Vec::new()));
    all
}

#[test]
fn requests_match_the_vectors_however_they_arrive() {
    for case in Case::all(REQUESTS) {
        let name = &case.name;
        let mut limits = Limits::default();
        for (field, limit) in [("key", &mut limits.key_len), ("value", &mut limits.value_len)] {
            *limit = case.limit(field).map_or(*limit, |max| max.parse().expect("a number"));
        }
        let lines = case.lines().filter(|line| !["in", "limits"].contains(&line.0));
        let expected: Vec<_> = lines.map(|(word, strings)| (word, strings.to_vec())).collect();
        let input = case.joined("in");
        let len = input.len();
        assert_eq!(decode(limits, &input, [len].into_iter()), expected, "{name}: whole");
        assert_eq!(decode(limits, &input, 0..=len), expected, "{name}: byte by byte");
        for split in (0..=len).step_by(1 + len / 8192) {
            let outcomes = decode(limits, &input, [split, len].into_iter());
            assert!(outcomes == expected, "{name}: split at {split}");
        }
    }
}

/// With as many more bytes as a step requests, the decoder can take another step.
#[test]
fn the_number_of_missing_bytes_is_exact() {
    let decoder = Decoder::new(Limits::default());
    let request = [&b"\0\x02\x01\0\xe8\x03\0\0k"[..], &[b'v'; 1000]].concat();
    let (mut len, mut lens) = (0, Vec::new());
    while let Step::More { needed } = decoder.next(&request[..len]) {
        len += needed;
        lens.push(len);
    }
    assert_eq!(lens, [2, 8, 1009]);
}

#[test]
fn replies_match_the_vectors() {
    for case in Case::all(REPLIES) {
        for (framing, word) in [(Framing::Len4, "len4"), (Framing::Ver6, "ver6")] {
            let mut out = Vec::new();
            for line in case.lines().filter(|line| line.0 == "reply") {
                match line.1 {
                    [kind] if kind == b"miss" => framing.miss(&mut out),
                    [kind, value] if kind == b"value" => {
                        framing.value_header(&mut out, value.len()).expect("a short value");
                        out.extend_from_slice(value);
                    }
                    other => panic!("{}: a reply {other:?}", case.name),
                }
            }
            let (out, expected) = (out.escape_ascii(), case.joined(word));
            let expected = expected.escape_ascii().to_string();
            assert_eq!(out.to_string(), expected, "{}: {word}", case.name);
        }
    }
}

#[test]
fn a_value_whose_length_does_not_fit_is_refused_at_once() {
    let mut out = Vec::new();
    let max = i32::MAX as usize;
    assert_eq!(Framing::Ver6.value_header(&mut out, max + 1), None);
    assert!(out.is_empty());
    assert_eq!(Framing::Ver6.value_header(&mut out, max), Some(()));
    assert_eq!(out, b"\0\x01\xff\xff\xff\x7f");
}
