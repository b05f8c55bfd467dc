//! Parses arbitrary bytes as requests of mrcache. Splitting the input must not change the requests.
//! The first byte selects the size of the pieces and the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_server::mrcache::{Decoder, Error, Limits, Request, Step};

/// The requests with their end offsets, and the error that ended the connection or the number of
/// remaining bytes.
type Decoded<'b> = (Vec<(Request<'b>, usize)>, Result<usize, Error>);

/// Decodes the input in pieces of `piece` bytes.
fn decode(limits: Limits, input: &[u8], piece: usize) -> Decoded<'_> {
    let decoder = Decoder::new(limits);
    let (mut requests, mut read, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = input.len().min(end + piece);
        loop {
            let bytes = &input[read..end];
            match decoder.next(bytes) {
                Step::Request { request, consumed } => {
                    assert!((1..=bytes.len()).contains(&consumed));
                    read += consumed;
                    requests.push((request, read));
                }
                Step::Error { error } => return (requests, Err(error)),
                Step::More { needed } => {
                    assert!(needed > 0);
                    break;
                }
            }
        }
    }
    (requests, Ok(input.len() - read))
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((choice, input)) = bytes.split_first() {
        let few = Limits { key_len: 10, value_len: 20 };
        let limits = if choice & 1 == 0 { Limits::default() } else { few };
        let whole = decode(limits, input, input.len().max(1));
        assert_eq!(decode(limits, input, 1), whole);
        assert_eq!(decode(limits, input, 2 + usize::from(choice >> 1)), whole);
    }
});
