use crate::{Case, pattern};
use nuthatch_chunks::{Check, Key, Lookup, Options};
use nuthatch_testing::random::Random;

#[test]
fn threads_read_write_and_evict_at_once() {
    let case = Case::new();
    for check in [Check::Never, Check::Once, Check::Always] {
        let chunks = case.open_with(&Options::new().limit(8 << 20).check(check));
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let chunks = &chunks;
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    for _ in 0..400 {
                        let object = random.below(32);
                        let chunk = random.below(16);
                        let key = Key::named(object.to_le_bytes()).expect("a key");
                        let data = pattern(object * 16 + chunk, 0..40_000);
                        let operation = random.below(16);
                        if operation < 6 {
                            chunks.put(&key, chunk..chunk + 1, &[0, 40_000], &data).expect("a put");
                        } else if operation < 11 {
                            let read = chunks.get(&key, chunk..chunk + 1).expect("a get");
                            assert!(read.found().is_none_or(|read| read.data == data));
                        } else if let Lookup::Found(view) =
                            chunks.view(&key, chunk..chunk + 1).expect("a view")
                        {
                            assert_eq!(view.to_vec(), data);
                        }
                    }
                });
            }
        });
        assert!(chunks.stat().evicted > 0, "the folder was full");
        let verified = chunks.verify();
        assert!(verified.good > 0 && verified.damaged == 0, "{verified:?}");
    }
}
