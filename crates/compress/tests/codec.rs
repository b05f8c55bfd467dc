//! Values through a codec: what comes back, what is refused, and how long dictionaries live.

use nuthatch_compress::{
    Codec, Dictionaries, Encoded, Error, MAX_HEADER_LEN, MAX_LEN_WITH_DICTIONARY, ValueInfo,
    set_dictionary_id, train,
};
use nuthatch_testing::random::{Random, bytes};
use proptest::prelude::*;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

/// Returns a JSON document of about 200 bytes.
fn document(n: u64) -> Vec<u8> {
    let mut random = Random::new(n);
    let mut pick = |names: &[&'static str]| names[random.below(names.len() as u64) as usize];
    let city = pick(&["Bern", "Zürich", "Basel", "Genève", "Lugano", "Chur"]);
    let plan = pick(&["free", "team", "enterprise"]);
    let theme = pick(&["light", "dark", "system"]);
    let number = random.next_u64() % 1_000_000;
    let text = format!(
        "{{\"id\":{n},\"type\":\"customer\",\"city\":\"{city}\",\"subscription\":{{\"plan\":\
         \"{plan}\",\"renews\":true}},\"preferences\":{{\"theme\":\"{theme}\",\"newsletter\":\
         false}},\"number\":{number}}}"
    );
    text.into_bytes()
}

fn documents(range: std::ops::Range<u64>) -> Vec<Box<[u8]>> {
    range.map(|n| document(n).into_boxed_slice()).collect()
}

static DICTIONARY: LazyLock<Vec<u8>> =
    LazyLock::new(|| train(documents(0..2000), 8 << 10, 3, id(7)).expect("samples").bytes);

fn id(id: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(id)
}

fn with_dictionary() -> (Arc<Dictionaries>, Codec) {
    let dictionaries = Arc::new(Dictionaries::new(3, 64 << 20));
    dictionaries.use_for_all(&DICTIONARY).expect("a dictionary");
    let codec = Codec::new(&dictionaries).expect("memory").min_len(0);
    (dictionaries, codec)
}

/// Compresses a value, which must become smaller.
#[track_caller]
fn compressed(codec: &mut Codec, raw: &[u8]) -> Vec<u8> {
    match codec.compress(b"a:1", raw, &mut Vec::new()) {
        Encoded::Compressed(encoded) => encoded.to_vec(),
        Encoded::Raw => panic!("{} bytes are stored raw", raw.len()),
    }
}

#[test]
fn documents_become_several_times_smaller_with_a_dictionary() {
    let dictionaries = Arc::new(Dictionaries::new(3, 64 << 20));
    let mut plain = Codec::new(&dictionaries).expect("memory");
    let (_dictionaries, mut codec) = with_dictionary();
    let (mut plain_len, mut dictionary_len) = (0, 0);
    for n in 3000..3100 {
        let raw = document(n);
        let encoded = compressed(&mut codec, &raw);
        let info = ValueInfo::read(&encoded).expect("a header");
        assert_eq!(info, ValueInfo { raw_len: raw.len() as u64, dictionary: id(7) });
        let mut out = b"before ".to_vec();
        assert_eq!(codec.decompress(&encoded, raw.len(), &mut out).expect("a value"), raw.len());
        assert_eq!(out, [&b"before "[..], &raw].concat());
        plain_len += compressed(&mut plain, &raw).len();
        dictionary_len += encoded.len();
    }
    assert!(dictionary_len * 2 < plain_len, "{dictionary_len} of {plain_len}");
}

#[test]
fn a_value_is_never_longer_than_it_came() {
    let (_dictionaries, mut codec) = with_dictionary();
    let mut buffer = Vec::new();
    for len in (0..600).chain([4096, 65_536, 65_537, 1 << 20]) {
        for raw in [bytes(len as u64, len), vec![b'a'; len], document(len as u64)] {
            if let Encoded::Compressed(encoded) = codec.compress(b"a", &raw, &mut buffer) {
                assert!(encoded.len() + raw.len() / 16 <= raw.len());
                let mut out = Vec::new();
                codec.decompress(encoded, raw.len(), &mut out).expect("a value");
                assert!(out == raw, "{len}");
            }
        }
        let random = bytes(len as u64, len);
        assert_eq!(codec.compress(b"a", &random, &mut buffer), Encoded::Raw, "{len}");
    }
}

#[test]
fn short_values_are_not_compressed_and_long_ones_need_no_dictionary() {
    let (_dictionaries, codec) = with_dictionary();
    let mut codec = codec.min_len(100);
    assert_eq!(codec.compress(b"a", &[b'a'; 99], &mut Vec::new()), Encoded::Raw);
    for (len, dictionary) in [
        (100, id(7)),
        (MAX_LEN_WITH_DICTIONARY, id(7)),
        (MAX_LEN_WITH_DICTIONARY + 1, None),
        // Longer than the window of level 3.
        (5 << 20, None),
    ] {
        let raw = b"abcdefghij".repeat(len / 10 + 1)[..len].to_vec();
        let encoded = compressed(&mut codec, &raw);
        let info = ValueInfo::read(&encoded).expect("a header");
        assert_eq!(info, ValueInfo { raw_len: len as u64, dictionary });
        let mut out = Vec::new();
        codec.decompress(&encoded, len, &mut out).expect("a value");
        assert!(out == raw);
    }
}

/// The header of zstd is longer: magic number, and the id of the dictionary in 1, 2 or 4 bytes.
#[test]
fn headers_are_shorter_than_those_of_zstd() {
    let raw = document(5000);
    for (number, header_len) in
        [(1, 3), (127, 3), (128, 4), (300, 4), (70_000, 5), (1 << 27, 6), (u32::MAX, 7)]
    {
        let dictionaries = Arc::new(Dictionaries::new(3, 64 << 20));
        let mut dictionary = DICTIONARY.clone();
        set_dictionary_id(&mut dictionary, id(number).expect("an id")).expect("room");
        dictionaries.use_for_all(&dictionary).expect("a dictionary");
        let mut codec = Codec::new(&dictionaries).expect("memory");
        let encoded = compressed(&mut codec, &raw);
        let mut zstd = zstd::bulk::Compressor::with_dictionary(3, &dictionary).expect("zstd");
        let frame = zstd.compress(&raw).expect("zstd");
        let id_len = if number < 256 {
            1
        } else if number < 65_536 {
            2
        } else {
            4
        };
        assert_eq!(frame.len() - (4 + 1 + id_len + 1), encoded.len() - header_len, "{number}");
        let mut out = Vec::new();
        codec.decompress(&encoded, 1000, &mut out).expect("a value");
        assert_eq!(out, raw);
        assert!(header_len <= MAX_HEADER_LEN);
    }
}

#[test]
fn damaged_values_are_errors_that_say_what_was_expected() {
    let (_dictionaries, mut codec) = with_dictionary();
    let raw = document(6000);
    let encoded = compressed(&mut codec, &raw);
    let mut out = b"kept".to_vec();
    let mut fails = |encoded: &[u8], limit| {
        let error = codec.decompress(encoded, limit, &mut out).expect_err("damage").to_string();
        assert_eq!(out, b"kept", "{error}");
        error
    };
    let len = raw.len();
    assert_eq!(
        fails(&encoded, len - 1),
        format!(
            "compressed value: expected a value of at most {} bytes, found one of {len}",
            len - 1
        )
    );
    let unknown = [&[9], &encoded[1..]].concat();
    assert_eq!(
        fails(&unknown, len),
        "compressed value: expected a known dictionary, found the id 9"
    );
    for end in 0..encoded.len() {
        let error = fails(&encoded[..end], len);
        assert!(error.contains("expected at least"), "{end}: {error}");
    }
    let trailing = [&encoded[..], &encoded[1..]].concat();
    assert!(fails(&trailing, len * 2).contains("expected its end after"));
    // Another length of the raw value.
    let mut other = encoded.clone();
    other[2] = other[2].wrapping_add(1);
    assert!(fails(&other, 1 << 20).contains("found damage"));
    assert!(fails(&[0, 0x20, 0], 0).contains("expected at least 6 bytes"));
    // Without the dictionary that it needs.
    let plain = [&[0], &encoded[1..]].concat();
    assert!(fails(&plain, 1 << 20).contains("found damage"));
}

/// A few bytes that claim 512 MiB reserve nothing, if their blocks cannot have so many.
#[test]
fn a_short_value_that_claims_a_great_length_reserves_nothing() {
    let (_dictionaries, mut codec) = with_dictionary();
    let mut encoded = vec![0, 0xa0];
    encoded.extend_from_slice(&(512_u32 << 20).to_le_bytes());
    encoded.extend_from_slice(&[0x15, 0, 0, 1, 2]);
    let mut out = Vec::new();
    let error = codec.decompress(&encoded, 512 << 20, &mut out).expect_err("a claim");
    assert!(error.to_string().contains("blocks that expand to the raw length"), "{error}");
    assert_eq!(out.capacity(), 0);
}

#[test]
fn dictionaries_stay_while_values_need_them() {
    let (dictionaries, mut codec) = with_dictionary();
    let one = compressed(&mut codec, &document(1));
    let two = compressed(&mut codec, &document(2));
    assert!(codec.retain(&two).expect("a header"));
    let live = &dictionaries.stats()[0];
    assert_eq!((live.values, live.groups.len()), (3, 1));
    let raw: usize = [1, 2, 2].iter().map(|n| document(*n).len()).sum();
    assert_eq!(live.raw_bytes, raw as u64);
    assert_eq!(live.encoded_bytes, (one.len() + two.len() * 2) as u64);
    dictionaries.use_none();
    codec.refresh();
    for value in [&one, &two] {
        assert!(dictionaries.reclaim().is_empty());
        assert!(codec.release(value).expect("a header"));
        let mut out = Vec::new();
        codec.decompress(&two, 1000, &mut out).expect("a value");
        codec.refresh();
    }
    assert!(dictionaries.reclaim().is_empty());
    assert!(codec.release(&two).expect("a header"));
    assert_eq!(dictionaries.reclaim(), [id(7).expect("an id")]);
    assert_eq!(dictionaries.memory_bytes(), 0);
    codec.refresh();
    assert!(!codec.retain(&one).expect("a header"));
    assert!(matches!(
        codec.decompress(&one, 1000, &mut Vec::new()),
        Err(Error::UnknownDictionary { id: 7 })
    ));
    let new = compressed(&mut codec, &document(2));
    assert_eq!(ValueInfo::read(&new).expect("a header").dictionary, None);
}

/// A thread that has not noticed a change may still compress with a dictionary that no group uses.
#[test]
fn a_dictionary_stays_while_a_codec_can_still_use_it() {
    let (dictionaries, mut codec) = with_dictionary();
    dictionaries.use_none();
    assert!(dictionaries.reclaim().is_empty());
    codec.refresh();
    assert_eq!(dictionaries.reclaim(), [id(7).expect("an id")]);
}

/// An application that does not report removed values counts those that are left.
#[test]
fn values_of_an_old_dictionary_can_be_counted_again() {
    let (dictionaries, mut codec) = with_dictionary();
    let seven = id(7).expect("an id");
    let value = compressed(&mut codec, &document(1));
    compressed(&mut codec, &document(2));
    assert!(dictionaries.unassigned().is_empty(), "a group uses it");
    dictionaries.recount(seven, 0, 0, 0);
    dictionaries.use_none();
    assert!(dictionaries.unassigned().is_empty(), "the codec can still use it");
    codec.refresh();
    assert_eq!(dictionaries.unassigned(), [seven]);
    dictionaries.recount(seven, 1, document(1).len() as u64, value.len() as u64);
    assert!(dictionaries.reclaim().is_empty());
    let stats = &dictionaries.stats()[0];
    assert_eq!((stats.values, stats.encoded_bytes), (1, value.len() as u64));
    assert_eq!((stats.compressed_values, stats.compressed_raw_bytes > stats.raw_bytes), (2, true));
    dictionaries.recount(seven, 0, 0, 0);
    assert!(dictionaries.unassigned().is_empty());
    assert_eq!(dictionaries.reclaim(), [seven]);
}

#[test]
fn values_that_were_recovered_are_counted() {
    let (dictionaries, _codec) = with_dictionary();
    let seven = id(7).expect("an id");
    assert!(dictionaries.retain(seven, 1000, 250_000, 60_000));
    assert!(!dictionaries.retain(id(8).expect("an id"), 1, 1, 1));
    assert_eq!(dictionaries.stats()[0].values, 1000);
    assert_eq!(dictionaries.find(seven).expect("it").values(), 1000);
}

#[test]
fn dictionaries_are_checked_and_limited() {
    let small = Dictionaries::new(3, 10 << 10);
    assert!(matches!(small.add(&DICTIONARY), Err(Error::NoRoom { limit: 10_240, .. })));
    let dictionaries = Dictionaries::new(3, 64 << 20);
    let first = dictionaries.add(&DICTIONARY).expect("a dictionary");
    assert!(Arc::ptr_eq(&first, &dictionaries.add(&DICTIONARY).expect("the same")));
    let mut other = train(documents(0..1000), 4 << 10, 3, id(7)).expect("samples").bytes;
    assert!(matches!(dictionaries.add(&other), Err(Error::DuplicateId { id: 7 })));
    other[4..8].fill(0);
    let error = dictionaries.add(&other).expect_err("no id").to_string();
    assert_eq!(error, "dictionary: expected an id of 1 or more, found none");
    let error = dictionaries.add(b"{}").expect_err("no dictionary").to_string();
    assert!(error.contains("magic number 37 a4 30 ec"), "{error}");
    for end in [0, 4, 7, 8, 20, 100] {
        assert!(matches!(dictionaries.add(&DICTIONARY[..end]), Err(Error::NotADictionary { .. })));
    }
    let error = dictionaries.add(&vec![0; (16 << 20) + 1]).expect_err("too long").to_string();
    assert_eq!(error, "dictionary: expected at most 16777216 bytes, found 16777217");
}

#[test]
fn too_few_samples_are_an_error() {
    for samples in [Vec::new(), documents(0..3), vec![Box::from(&b""[..]); 100]] {
        let error = train(samples, 8 << 10, 3, None).expect_err("too few").to_string();
        assert!(error.contains(": expected at least 8 samples with 1024 bytes"), "{error}");
    }
}

/// Threads compress, replace and remove values while dictionaries change.
#[test]
fn threads_share_dictionaries_that_change() {
    let (dictionaries, codec) = with_dictionary();
    drop(codec);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4_u64)
            .map(|worker| {
                let dictionaries = &dictionaries;
                scope.spawn(move || {
                    let mut codec = Codec::new(dictionaries).expect("memory");
                    let mut stored: Vec<(u64, Vec<u8>)> = Vec::new();
                    for n in 0..3000 {
                        let n = worker << 32 | n;
                        stored.push((n, compressed(&mut codec, &document(n))));
                        if stored.len() > 50 {
                            let (n, encoded) = stored.swap_remove((n % 50) as usize);
                            let mut out = Vec::new();
                            codec.decompress(&encoded, 1000, &mut out).expect("a value");
                            assert_eq!(out, document(n));
                            assert!(codec.release(&encoded).expect("a header"));
                        }
                    }
                    for (_, encoded) in stored {
                        assert!(codec.release(&encoded).expect("a header"));
                    }
                })
            })
            .collect();
        let mut next = 100;
        while workers.iter().any(|worker| !worker.is_finished()) {
            next += 1;
            let mut dictionary = DICTIONARY.clone();
            set_dictionary_id(&mut dictionary, id(next).expect("an id")).expect("room");
            dictionaries.use_for_all(&dictionary).expect("a dictionary");
            dictionaries.reclaim();
        }
    });
    dictionaries.use_none();
    dictionaries.reclaim();
    assert!(dictionaries.stats().is_empty(), "{:?}", dictionaries.stats());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_value_comes_back(
        parts in proptest::collection::vec((0..6_u8, any::<u8>(), 1..80_usize), 0..60),
    ) {
        let mut raw = Vec::new();
        for (kind, byte, len) in parts {
            match kind {
                0 => raw.extend(std::iter::repeat_n(byte, len)),
                1 => raw.extend(bytes(u64::from(byte), len)),
                _ => raw.extend_from_slice(&document(u64::from(byte))[..len]),
            }
        }
        let (_dictionaries, mut codec) = with_dictionary();
        if let Encoded::Compressed(encoded) = codec.compress(b"k", &raw, &mut Vec::new()) {
            prop_assert!(encoded.len() < raw.len());
            let mut out = Vec::new();
            codec.decompress(encoded, raw.len(), &mut out).expect("a value");
            prop_assert_eq!(out, raw);
        }
    }

    #[test]
    fn damage_never_yields_more_than_the_limit(
        n in 0..100_u64,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (_dictionaries, mut codec) = with_dictionary();
        let mut encoded = compressed(&mut codec, &document(n));
        for (at, byte) in changes {
            let at = at.index(encoded.len());
            encoded[at] = byte;
        }
        let mut out = Vec::new();
        let result = codec.decompress(&encoded, 1000, &mut out);
        prop_assert_eq!(out.len(), result.unwrap_or_default());
        prop_assert!(out.len() <= 1000);
    }
}
