//! Parses arbitrary bytes as requests of poor-man's-cache. Splitting the input must not change the
//! requests. The first byte selects the size of the pieces and the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_server::pmc::{Decoder, Request, Span, Step, TooLong};

/// The parts of each request, and the error that ended the connection or the number of remaining
/// bytes.
type Decoded = (Vec<(&'static str, Vec<Vec<u8>>)>, Result<usize, TooLong>);

/// Decodes the input in pieces of `piece` bytes, until a message in RESP.
fn decode(most: u32, input: &[u8], piece: usize) -> Decoded {
    let mut decoder = Decoder::new(most);
    let (mut requests, mut read, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = input.len().min(end + piece);
        loop {
            let bytes = &input[read..end];
            let consumed = match decoder.next(bytes) {
                Ok(Step::Request { request, consumed }) => {
                    requests.push(parts(request, &bytes[..consumed]));
                    consumed
                }
                Ok(Step::Empty { consumed }) => consumed,
                Ok(Step::Resp) => {
                    assert_eq!(bytes[0], b'*');
                    return (requests, Ok(input.len() - read));
                }
                Ok(Step::More) => break,
                Err(error) => return (requests, Err(error)),
            };
            assert!((1..=bytes.len()).contains(&consumed));
            read += consumed;
        }
    }
    (requests, Ok(input.len() - read))
}

fn parts(request: Request, message: &[u8]) -> (&'static str, Vec<Vec<u8>>) {
    let part = |span: Span| span.of(message).expect("a span within the message").to_vec();
    match request {
        Request::Get { key } => ("GET", vec![part(key)]),
        Request::Set { key, value } => ("SET", vec![part(key), part(value)]),
        Request::Del { key } => ("DEL", vec![part(key)]),
        Request::Fault(fault) => (fault.text(), Vec::new()),
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((choice, input)) = bytes.split_first() {
        let most = if choice & 1 == 0 { u32::MAX } else { 10 };
        let whole = decode(most, input, input.len().max(1));
        assert_eq!(decode(most, input, 1), whole);
        assert_eq!(decode(most, input, 2 + usize::from(choice >> 1)), whole);
    }
});
