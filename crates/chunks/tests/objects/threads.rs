use crate::{Case, pattern};
use nuthatch_chunks::{Check, Key, Lookup, Options};

#[test]
fn threads_read_write_and_evict_at_once() {
    let case = Case::new();
    for check in [Check::Never, Check::Once, Check::Always] {
        let chunks = case.open_with(&Options::new().limit(8 << 20).check(check));
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let chunks = &chunks;
                scope.spawn(move || {
                    let mut state = thread + 1;
                    for _ in 0..400 {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let object = state >> 33 & 31;
                        let chunk = state >> 40 & 15;
                        let key = Key::named(object.to_le_bytes()).expect("a key");
                        let data = pattern(object * 16 + chunk, 0..40_000);
                        if state >> 60 < 6 {
                            chunks.put(&key, chunk..chunk + 1, &[0, 40_000], &data).expect("a put");
                        } else if state >> 60 < 11 {
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
