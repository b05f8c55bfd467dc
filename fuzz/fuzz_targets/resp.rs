//! Parses arbitrary bytes as requests in RESP. Splitting the input must not change the requests.
//! The first byte selects the size of the pieces and the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_server::resp::{Decoder, Limits, ProtocolError, Span, Step};

/// The arguments of each request, and the error that ended the connection or the number of
/// remaining bytes.
type Decoded = (Vec<Vec<Vec<u8>>>, Result<usize, ProtocolError>);

/// Decodes the input in pieces of `piece` bytes.
fn decode(limits: Limits, input: &[u8], piece: usize) -> Decoded {
    let mut decoder = Decoder::new(limits);
    let (mut requests, mut spans, mut read, mut end) = (Vec::new(), Vec::new(), 0, 0);
    while end < input.len() {
        end = input.len().min(end + piece);
        loop {
            let bytes = &input[read..end];
            let known = spans.len();
            let consumed = match decoder.next(bytes, &mut spans) {
                Ok(Step::Request { consumed }) => {
                    requests.push(texts(&spans[known..], &bytes[..consumed]));
                    consumed
                }
                Ok(Step::Inline { consumed, line }) => {
                    requests.push(texts(&line.args, &line.bytes));
                    consumed
                }
                Ok(Step::Empty { consumed }) => {
                    requests.push(Vec::new());
                    consumed
                }
                Ok(Step::More { needed }) => {
                    assert!(needed > 0 && spans.len() == known);
                    break;
                }
                Err(error) => {
                    assert_eq!(spans.len(), known);
                    return (requests, Err(error));
                }
            };
            assert!((1..=bytes.len()).contains(&consumed));
            read += consumed;
        }
    }
    (requests, Ok(input.len() - read))
}

fn texts(spans: &[Span], bytes: &[u8]) -> Vec<Vec<u8>> {
    spans.iter().map(|span| span.of(bytes).expect("a span within the bytes").to_vec()).collect()
}

/// Returns low limits, which short inputs can reach, or the limits of a server.
fn limits(choice: u8) -> Limits {
    let few = Limits { bulk_len: 20, args: 5, line_len: 30, request_len: 60, ..Limits::default() };
    let limits = if choice & 1 == 0 { Limits::default() } else { few };
    if choice & 2 == 0 { limits } else { limits.before_auth() }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((choice, input)) = bytes.split_first() {
        let limits = limits(choice & 3);
        let whole = decode(limits, input, input.len().max(1));
        assert_eq!(decode(limits, input, 1), whole);
        assert_eq!(decode(limits, input, 2 + usize::from(choice >> 2)), whole);
    }
});
