//! Pins of addresses, and metadata of objects.

use crate::Case;
use nuthatch_chunks::{Chunks, Key, Metadata};

fn version(chunks: &Chunks, validator: &str) -> Key {
    version_of(chunks, validator, 2000)
}

fn version_of(chunks: &Chunks, validator: &str, len: u64) -> Key {
    let object = chunks.blocks("https://host/a", validator, len, 1000).expect("an object");
    object.put(0, &vec![7; len as usize]).expect("a put");
    object.key().clone()
}

fn names(chunks: &Chunks) -> Vec<Key> {
    chunks.list().into_iter().map(|object| object.key).collect()
}

#[test]
fn a_pin_moves_to_a_new_version_and_the_old_one_is_evicted() {
    let case = Case::new();
    let chunks = case.open();
    // Longer records: if most of a segment is pinned, it is kept whole.
    let old = version_of(&chunks, "\"1\"", 20_000);
    chunks.put_metadata(&Metadata::new(old.clone(), 1)).expect("a put");
    chunks.pin(&old, true).expect("a pin");
    let new = version(&chunks, "\"2\"");
    chunks.put_metadata(&Metadata::new(new.clone(), 2)).expect("a put");
    chunks.clear().expect("room");
    assert_eq!(names(&chunks), std::slice::from_ref(&new));
    assert!(chunks.list()[0].pinned);
    let found = chunks.metadata("https://host/a").expect("pinned with the object");
    assert_eq!((found.key, found.checked_ms), (new, 2));
}

#[test]
fn removing_an_object_ends_its_pin_and_discarding_it_does_not() {
    let case = Case::new();
    let chunks = case.open();
    let key = version(&chunks, "\"1\"");
    chunks.pin(&key, true).expect("a pin");
    assert_eq!(chunks.discard(&key), 2);
    version(&chunks, "\"1\"");
    assert!(chunks.list()[0].pinned);
    assert_eq!(chunks.remove(&key).expect("a list of pins"), 2);
    version(&chunks, "\"1\"");
    assert!(!chunks.list()[0].pinned);
    chunks.clear().expect("room");
    assert!(names(&chunks).is_empty());
}

#[test]
fn metadata_are_replaced_and_are_no_object() {
    let case = Case::new();
    let chunks = case.open();
    let key = version(&chunks, "\"1\"");
    for checked in 1..5 {
        chunks.put_metadata(&Metadata::new(key.clone(), checked)).expect("a put");
        let found = chunks.metadata("https://host/a").map(|found| found.checked_ms);
        assert_eq!(found, Some(checked));
    }
    assert_eq!(names(&chunks), std::slice::from_ref(&key));
    chunks.remove(&key).expect("a list of pins");
    assert_eq!(chunks.metadata("https://host/a"), None);
}
