//! Decodes arbitrary bytes as a compressed value. The first byte selects whether the dictionary of
//! the test data is known. The result is a value within the limit, or an error that leaves the
//! buffer unchanged. The bytes as a raw value survive a round trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nuthatch_compress::{Codec, Dictionaries, Encoded, ValueInfo};
use std::cell::RefCell;
use std::sync::Arc;

const LIMIT: usize = 1 << 20;
const DICTIONARY: &[u8] = include_bytes!("../../testdata/compress/7.zdict");

thread_local! {
    static CODECS: RefCell<[Codec; 2]> = RefCell::new([false, true].map(|is_known| {
        let dictionaries = Arc::new(Dictionaries::new(3, 64 << 20));
        if is_known {
            dictionaries.use_for_all(DICTIONARY).expect("a dictionary");
        }
        Codec::new(&dictionaries).expect("memory").min_len(0)
    }));
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, encoded)) = input.split_first() else { return };
    CODECS.with_borrow_mut(|codecs| {
        let codec = &mut codecs[usize::from(choice & 1)];
        let mut out = b"before".to_vec();
        match codec.decompress(encoded, LIMIT, &mut out) {
            Ok(len) => {
                assert_eq!(out.len(), 6 + len);
                assert!(len <= LIMIT);
                let info = ValueInfo::read(encoded).expect("a header");
                assert_eq!(info.raw_len, len as u64);
            }
            Err(error) => {
                assert_eq!(out, b"before", "{error}");
                assert!(!error.to_string().is_empty());
            }
        }
        // Any bytes are a raw value, too.
        let mut buffer = Vec::new();
        if let Encoded::Compressed(compressed) = codec.compress(b"key:1", encoded, &mut buffer) {
            assert!(compressed.len() < encoded.len());
            let mut out = Vec::new();
            codec.decompress(compressed, encoded.len(), &mut out).expect("its own value");
            assert_eq!(out, encoded);
            assert!(codec.release(compressed).expect("a header"));
        }
    });
});
