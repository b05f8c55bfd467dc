//! The counters of lookups.

use nuthatch_cache::{Cache, Options, Write};

/// Regression test: the lookup that assigns a number counted two hits and two reads of the item.
#[test]
fn a_lookup_that_assigns_a_number_for_compare_and_set_counts_one_hit() {
    let cache = Cache::new(Options::new().memory(16 << 20)).expect("a cache");
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    guard.set(b"key", b"value", &Write::new()).map(drop).expect("room");
    let (item, cas) = guard.get_with_cas(b"key").expect("room").expect("the item");
    assert_eq!((item.cas(), item.frequency()), (Some(cas), 1));
    assert_eq!(cache.stats().hits, 1);
    assert_eq!(guard.get_with_cas(b"key").expect("room").expect("the item").1, cas);
    assert_eq!(guard.get_with_cas(b"missing").expect("room").map(|(_, cas)| cas), None);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses_absent), (2, 1));
}
