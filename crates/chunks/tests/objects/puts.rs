use crate::{Case, pattern};
use nuthatch_chunks::{Chunks, Description, Error, Key, Lookup, Options};

#[test]
fn a_put_stores_only_what_is_not_there() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let stored = chunks.put(&key, 1..3, &[0, 2, 4], b"bbcc").expect("a put");
    assert_eq!((stored.stored, stored.present), (2, 0));
    let stored = chunks.put(&key, 0..5, &[0, 2, 4, 6, 8, 10], b"aabbccddee").expect("a put");
    assert_eq!((stored.stored, stored.present), (3, 2));
    let before = chunks.stat().written_bytes;
    let stored = chunks.put(&key, 0..5, &[0, 2, 4, 6, 8, 10], b"aabbccddee").expect("a put");
    assert_eq!((stored.stored, stored.present), (0, 5));
    assert_eq!(chunks.stat().written_bytes, before, "nothing is written twice");
    let read = chunks.get(&key, 0..5).expect("a get").found().expect("all of it");
    assert_eq!(read.data, b"aabbccddee");
}

/// Stores chunks of one length, a thousand at a time. Returns the number of displaced chunks.
fn put_many(chunks: &Chunks, numbers: std::ops::Range<u64>, len: u64) -> u64 {
    let key = Key::named("many").expect("a key");
    let offsets: Vec<_> = (0..=1000).map(|number| number * len).collect();
    let data = pattern(1, 0..1000 * len);
    let put = |first| {
        let stored = chunks.put(&key, first..first + 1000, &offsets, &data).expect("a put");
        assert_eq!((stored.stored, stored.not_kept), (1000, None));
        stored.displaced
    };
    numbers.step_by(1000).map(put).sum()
}

#[test]
fn chunks_that_an_index_at_its_limit_displaces_are_counted_by_put_and_stat() {
    let case = Case::new();
    let chunks = case.open_with(&Options::new().limit(4 << 20));
    // An index that takes up to a quarter of this limit has 4096 sets of 15 words.
    let count = 80_000;
    let displaced = put_many(&chunks, 0..count, 10);
    // A few chunks of a record share a word, because their hashes have the same bits in the index.
    let expected = count - 4096 * 15;
    assert!(displaced.abs_diff(expected) < 20, "{displaced}, not about {expected}");
    let (stat, key) = (chunks.stat(), Key::named("many").expect("a key"));
    assert_eq!((stat.displaced, stat.evicted), (displaced, 0));
    let is_missing =
        |number: &u64| !chunks.missing(&key, *number..number + 1).expect("a look").is_empty();
    let missing = (0..count).filter(is_missing).count() as u64;
    assert!(missing.abs_diff(displaced) < 20, "{missing} missing, {displaced} displaced");
    // A long range is read from records of which any chunk is in the index.
    let missing = chunks.missing(&key, 0..count).expect("a look");
    let missing: u64 = missing.iter().map(|range| range.end - range.start).sum();
    assert!(missing < displaced, "{missing} missing, {displaced} displaced");
}

#[test]
fn chunks_of_56_bytes_fill_a_folder_and_none_is_displaced() {
    // For chunks of 10 bytes, more than half are displaced: decision 0036 has the calculation.
    let case = Case::new();
    let chunks = case.open_with(&Options::new().limit(4 << 20));
    let mut count = 0;
    while chunks.stat().evicted < 3 {
        assert_eq!(put_many(&chunks, count..count + 1000, 56), 0, "after {count}");
        count += 1000;
    }
    assert!(count > 40_000, "{count} of 56 bytes fill the folder");
    assert_eq!(chunks.stat().displaced, 0);
}

#[test]
fn a_put_of_other_bytes_is_an_error_and_the_stored_bytes_are_kept() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    chunks.put(&key, 1..3, &[0, 2, 4], b"bbcc").expect("a put");
    for (range, offsets, data) in [
        (0..3, &[0, 2, 4, 6][..], &b"aabbcX"[..]),
        (2..4, &[0, 1, 4], b"cddd"),
        (1..2, &[0, 3], b"bbb"),
    ] {
        let refused = chunks.put(&key, range.clone(), offsets, data);
        let Err(Error::Conflict { chunk }) = refused else { panic!("{range:?}: {refused:?}") };
        assert!((1..3).contains(&chunk));
    }
    assert_eq!(chunks.missing(&key, 0..4).expect("a look"), [0..1, 3..4], "nothing was stored");
    assert_eq!(chunks.get(&key, 1..3).expect("a get").found().expect("both").data, b"bbcc");
}

#[test]
fn what_does_not_fit_is_refused_with_an_error() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let most = chunks.max_chunk_len();
    let large = vec![1; most as usize + 1];
    let refused = chunks.put(&key, 0..1, &[0, most + 1], &large);
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    let half: Vec<u64> = (0..=chunks.max_put_len() + 1).step_by(1 << 20).collect();
    let larger = vec![1; chunks.max_put_len() as usize + 1];
    let offsets = [&half[..half.len() - 1], &[larger.len() as u64]].concat();
    let refused = chunks.put(&key, 0..offsets.len() as u64 - 1, &offsets, &larger);
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    for (range, offsets, data) in [
        (0..2, &[0, 2][..], &b"aa"[..]),
        (0..1, &[0, 1, 2], b"aa"),
        (0..1, &[1, 2], b"aa"),
        (0..2, &[0, 2, 2], b"aa"),
        (0..2, &[0, 2, 1], b"a"),
        (0..1, &[0, 3], b"aa"),
        (0..1, &[0, 1], b"aa"),
    ] {
        let refused = chunks.put(&key, range, offsets, data);
        assert!(matches!(refused, Err(Error::Offsets { .. })), "{offsets:?}: {refused:?}");
    }
    let refused = chunks.put(&key, 3..3, &[0], b"");
    assert!(matches!(refused, Err(Error::Range { .. })), "{refused:?}");
    let mut short = [0; 3];
    chunks.put(&key, 0..2, &[0, 2, 4], b"aabb").expect("a put");
    let refused = chunks.get_into(&key, 0..2, &mut short);
    assert!(matches!(refused, Err(Error::Buffer { expected: 4, found: 3 })), "{refused:?}");
}

#[test]
fn a_put_larger_than_a_segment_is_split_and_spliced() {
    let case = Case::new();
    let chunks = case.open();
    let object = chunks.blocks("file:///a", "1", 6_500_000, 300_000).expect("an object");
    let data = pattern(3, 0..6_500_000);
    let stored = object.put(0, &data).expect("a put");
    assert_eq!((stored.stored, stored.not_kept), (22, None));
    let view = object.view(0..6_500_000).expect("a view").found().expect("all of it");
    assert!(view.slices().count() > 1 && view.is_intact());
    assert_eq!(view.to_vec(), data);
    for range in [0..1, 299_999..300_001, 1_000_000..6_400_000, 6_499_999..6_500_000] {
        let found = object.get(range.clone()).expect("a get").found().expect("all of it");
        assert_eq!(found, data[range.start as usize..range.end as usize]);
        let view = object.view(range.clone()).expect("a view").found().expect("all of it");
        assert_eq!(view.to_vec(), found);
        assert_eq!(view.len(), range.end - range.start);
    }
}

#[test]
fn blocks_that_are_not_whole_are_not_stored() {
    let case = Case::new();
    let chunks = case.open();
    let object = chunks.blocks("a", "1", 35, 10).expect("an object");
    assert_eq!(object.put(5, &pattern(2, 5..18)).expect("a put").stored, 0);
    assert_eq!(object.put(5, &pattern(2, 5..25)).expect("a put").stored, 1);
    assert_eq!(object.missing(0..35).expect("a look"), [0..10, 20..35]);
    assert_eq!(object.put(29, &pattern(2, 29..35)).expect("a put").stored, 1);
    assert_eq!(object.get(31..35).expect("a get"), Lookup::Found(pattern(2, 31..35)));
    assert!(matches!(object.put(30, &[0; 6]), Err(Error::Range { .. })), "beyond the end");
}

#[test]
fn another_validator_never_mixes_with_the_first() {
    let case = Case::new();
    let chunks = case.open();
    let old = chunks.blocks("a", "\"1\"", 2000, 1000).expect("an object");
    let new = chunks.blocks("a", "\"2\"", 2000, 1000).expect("an object");
    old.put(0, &[1; 2000]).expect("a put");
    assert_eq!(new.missing(0..2000).expect("a look"), [0..2000]);
    new.put(1000, &[2; 1000]).expect("a put");
    assert_eq!(new.get(0..2000).expect("a get"), Lookup::Missing(vec![0..1000]));
    assert_eq!(old.get(0..2000).expect("a get"), Lookup::Found(vec![1; 2000]));
}

#[test]
fn objects_are_listed_pinned_verified_and_removed() {
    let case = Case::new();
    let chunks = case.open();
    let object = chunks.blocks("https://host/a b", "\"x\"", 2500, 1000).expect("an object");
    object.put(1000, &[7; 1500]).expect("a put");
    let named = Key::named("n").expect("a key");
    chunks.put_until(&named, 0..1, &[0, 3], b"abc", u64::MAX - 5).expect("a put");
    chunks.pin(&named, true).expect("a pin");
    let list = chunks.list();
    let message: Vec<_> =
        list.iter().map(|o| (o.key.clone(), o.chunks, o.bytes, o.expiry, o.pinned)).collect();
    let mut expected =
        vec![(object.key().clone(), 2, 1500, 0, false), (named.clone(), 1, 3, u64::MAX - 5, true)];
    expected.sort();
    assert_eq!(message, expected);
    let Description::Blocks { address, validator, .. } = object.key().describe() else {
        panic!("blocks")
    };
    assert_eq!((&address[..], &validator[..]), ("https://host/a b", "\"x\""));
    let verified = chunks.verify();
    assert_eq!((verified.good, verified.good_bytes, verified.damaged), (3, 1503, 0));
    assert_eq!(chunks.remove(object.key()).expect("a list of pins"), 2);
    assert_eq!(object.missing(0..2500).expect("a look"), [0..2500]);
    assert_eq!(chunks.list().len(), 1);
    chunks.clear().expect("room");
    assert_eq!(chunks.list().len(), 1, "what is pinned stays");
    chunks.pin(&named, false).expect("a pin");
    chunks.clear().expect("room");
    assert!(chunks.list().is_empty());
}

#[test]
fn the_last_limit_that_any_process_set_applies() {
    let case = Case::new();
    drop(case.open());
    let chunks = case.open_with(&Options::new());
    assert_eq!(chunks.stat().limit, 16 << 20);
    chunks.set_limit(32 << 20).expect("a limit");
    assert_eq!(case.open_with(&Options::new()).stat().limit, 32 << 20);
}

#[cfg(feature = "blake3")]
#[test]
fn content_is_named_by_its_hash() {
    let case = Case::new();
    let chunks = case.open();
    let (hash, stored) = chunks.put_content(b"some bytes").expect("a put");
    assert_eq!(stored.stored, 1);
    assert_eq!(chunks.get_content(&hash).expect("a get").as_deref(), Some(&b"some bytes"[..]));
    assert!(matches!(chunks.put_content_as(&hash, b"others"), Err(Error::Content)));
    assert_eq!(chunks.put_content_as(&hash, b"some bytes").expect("a put").present, 1);
    assert_eq!(chunks.get_content(&[0; 32]).expect("a get"), None);
}
