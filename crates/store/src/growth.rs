//! Tests of reads while the map has to move.

use crate::options::Options;
use crate::read::Read;
use crate::store::Store;
use std::time::{Duration, Instant};

#[test]
fn gets_go_on_while_a_write_waits_for_the_map_to_grow() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::new().reserve(1 << 20).growth_patience(Duration::from_hours(1));
    let store = Store::open(folder.path().join("store"), &options).expect("a store");
    let table = store.table("rows").expect("a table");
    store.put(&table, b"key", b"value").expect("a put");
    for round in 0..3 {
        let stays = store.read_owned().expect("a transaction");
        std::thread::scope(|scope| {
            let map_bytes = store.stat().expect("figures").map_bytes;
            let value = vec![round; usize::try_from(map_bytes).expect("a length")];
            let (store, table) = (&store, &table);
            let writing = scope.spawn(move || store.put(table, b"long", &value));
            let deadline = Instant::now() + Duration::from_mins(1);
            while !store.0.environment.waits_to_grow() {
                assert!(Instant::now() < deadline, "no write waits");
                std::thread::yield_now();
            }
            let readers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            let found = store.get(table, b"key").expect("a get");
                            assert_eq!(found.as_deref(), Some(&b"value"[..]));
                            store.read_owned().expect("a transaction");
                        }
                    })
                })
                .collect();
            for reader in readers {
                reader.join().expect("no panic");
            }
            assert!(!writing.is_finished(), "the map moved under a transaction");
            assert!(stays.contains(table, b"key").expect("a lookup"));
            drop(stays);
            writing.join().expect("no panic").expect("the map grows");
        });
    }
}
