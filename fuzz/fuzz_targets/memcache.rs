//! Parses arbitrary bytes as requests of memcached's protocols. Splitting the input must not change
//! the requests, and the reply to each meta request is one line. The first byte selects the size of
//! the pieces and the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_server::memcache::meta_reply::{Item, Outcome, debug, reply};
use nuthatch_server::memcache::{
    Decoder, Error, KeyBuffer, Limits, MAX_KEY_LEN, Meta, MetaVerb, Request, Step,
};

/// The parsed requests and errors with their end offsets, and the error that ended the connection
/// or the number of remaining bytes. Skipped bytes are not recorded.
type Decoded<'b> = (Vec<(Result<Request<'b>, Error>, usize)>, Result<usize, Error>);

/// Decodes the input in pieces of `piece` bytes.
fn decode(limits: Limits, input: &[u8], piece: usize) -> Decoded<'_> {
    let mut decoder = Decoder::new(limits);
    let (mut all, mut read, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = input.len().min(end + piece);
        loop {
            let bytes = &input[read..end];
            let (said, consumed) = match decoder.next(bytes) {
                Step::Request { request, consumed } => (Some(Ok(request)), consumed),
                Step::Error { error, close: true, .. } => return (all, Err(error)),
                Step::Error { error, consumed, .. } => (Some(Err(error)), consumed),
                Step::Skip { consumed } => (None, consumed),
                Step::More { needed } => {
                    assert!(needed > 0);
                    break;
                }
            };
            assert!((1..=bytes.len()).contains(&consumed));
            read += consumed;
            all.extend(said.map(|said| (said, read)));
        }
    }
    (all, Ok(input.len() - read))
}

/// Checks the invariants of a request.
fn check(request: &Request<'_>) {
    let is_key = |key: &[u8]| {
        let plain = key.iter().all(|&byte| byte > b' ' && byte != 0x7f);
        assert!(plain && (1..=MAX_KEY_LEN).contains(&key.len()));
    };
    match request {
        Request::Get(get) => get.keys.into_iter().for_each(is_key),
        Request::Store(store) => is_key(store.key),
        Request::Arith(arith) => is_key(arith.key),
        Request::Touch { key, .. } | Request::Delete { key, .. } => is_key(key),
        Request::Meta(meta) => {
            is_key(meta.key.text());
            assert!(!meta.key.bytes(&mut KeyBuffer::default()).is_empty());
            check_replies(meta);
        }
        Request::TooLarge(refused) => is_key(refused.key.text()),
        _ => {}
    }
}

fn check_replies(meta: &Meta<'_>) {
    let item = Item::default();
    let mut out = Vec::new();
    if meta.verb == MetaVerb::Debug {
        debug(&mut out, meta, None);
        return;
    }
    let done = Outcome::Done(&item);
    for outcome in [done, Outcome::NotFound, Outcome::NotStored, Outcome::Exists] {
        out.clear();
        let value = reply(&mut out, meta, outcome);
        assert_eq!(out.starts_with(b"VA "), value);
        assert!(meta.flags.quiet() || !out.is_empty());
        let line = out.strip_suffix(b"\r\n").unwrap_or_default();
        assert!(out.is_empty() || line.len() >= 2 && !line.contains(&b'\n'));
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((choice, input)) = bytes.split_first() {
        let few = Limits { object_len: 10, many_keys_len: 0 };
        let limits = if choice & 1 == 0 { Limits::default() } else { few };
        let whole = decode(limits, input, input.len().max(1));
        whole.0.iter().filter_map(|(said, _)| said.as_ref().ok()).for_each(check);
        assert_eq!(decode(limits, input, 1), whole);
        assert_eq!(decode(limits, input, 2 + usize::from(choice >> 1)), whole);
    }
});
