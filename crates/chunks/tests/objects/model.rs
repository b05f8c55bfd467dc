//! Random sequences of operations on a cache, compared with a map. Evicted chunks may be missing;
//! all bytes that are found are right.

use crate::{Case, pattern};
use nuthatch_chunks::{Chunks, Error, Key, Lookup};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

const CHUNKS: u64 = 12;

#[derive(Clone, Debug)]
enum Step {
    Put { object: u64, range: Range<u64>, other: bool },
    Get { object: u64, range: Range<u64> },
    Remove { object: u64 },
    Pin { object: u64, pinned: bool },
    Prune { share: u64 },
    Verify,
    Clear,
    Reopen,
}

fn range() -> impl Strategy<Value = Range<u64>> {
    (0..CHUNKS, 1..6_u64).prop_map(|(start, len)| start..(start + len).min(CHUNKS))
}

fn step() -> impl Strategy<Value = Step> {
    let object = 0..6_u64;
    prop_oneof![
        10 => (object.clone(), range(), prop::bool::weighted(0.05))
            .prop_map(|(object, range, other)| Step::Put { object, range, other }),
        10 => (object.clone(), range()).prop_map(|(object, range)| Step::Get { object, range }),
        1 => object.clone().prop_map(|object| Step::Remove { object }),
        1 => (object, any::<bool>()).prop_map(|(object, pinned)| Step::Pin { object, pinned }),
        1 => (1..4_u64).prop_map(|share| Step::Prune { share }),
        1 => Just(Step::Verify),
        1 => Just(Step::Clear),
        2 => Just(Step::Reopen),
    ]
}

fn len_of(object: u64, chunk: u64) -> u64 {
    1 + (object * 31 + chunk * 77) % 70 * 1000
}

fn bytes(object: u64, range: &Range<u64>) -> (Vec<u64>, Vec<u8>) {
    let (mut offsets, mut data) = (vec![0], Vec::new());
    for chunk in range.clone() {
        data.extend(pattern(object * 100 + chunk, 0..len_of(object, chunk)));
        offsets.push(data.len() as u64);
    }
    (offsets, data)
}

/// A cache, and a map of the chunks that were stored and not removed.
struct Pair {
    case: Case,
    chunks: Chunks,
    put: BTreeSet<(u64, u64)>,
    /// Nothing was evicted yet, so every stored chunk must be found.
    whole: bool,
}

impl Pair {
    fn key(object: u64) -> Key {
        Key::named(format!("object {object}")).expect("a key")
    }

    fn missing(&self, object: u64, range: &Range<u64>) -> Vec<u64> {
        range.clone().filter(|chunk| !self.put.contains(&(object, *chunk))).collect()
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Put { object, range, other } => self.put(object, range, other)?,
            Step::Get { object, range } => self.get(object, &range)?,
            Step::Remove { object } => {
                self.chunks.remove(&Self::key(object)).expect("a list of pins");
                self.put.retain(|(put, _)| *put != object);
            }
            Step::Pin { object, pinned } => {
                self.chunks.pin(&Self::key(object), pinned).expect("a pin");
            }
            Step::Prune { share } => {
                self.chunks.prune(Some((8 << 20) / share)).expect("room");
                self.whole = false;
            }
            Step::Verify => prop_assert_eq!(self.chunks.verify().damaged, 0),
            Step::Clear => {
                self.chunks.clear().expect("room");
                self.whole = false;
            }
            Step::Reopen => self.chunks = self.case.open(),
        }
        self.whole &= self.chunks.stat().evicted == 0;
        Ok(())
    }

    fn put(&mut self, object: u64, range: Range<u64>, other: bool) -> Result<(), TestCaseError> {
        let (offsets, mut data) = bytes(object, &range);
        if other {
            data[0] ^= 1;
        }
        match self.chunks.put(&Self::key(object), range.clone(), &offsets, &data) {
            Ok(stored) => {
                prop_assert_eq!(stored.not_kept, None);
                if other {
                    // The chunk was missing, so the wrong bytes were stored. Removes them again.
                    prop_assert!(!self.whole || !self.put.contains(&(object, range.start)));
                    self.chunks.remove(&Self::key(object)).expect("a list of pins");
                    self.put.retain(|(put, _)| *put != object);
                } else {
                    self.put.extend(range.map(|chunk| (object, chunk)));
                }
            }
            Err(Error::Conflict { chunk }) => {
                prop_assert!(other && chunk == range.start);
                prop_assert!(self.put.contains(&(object, chunk)));
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
        Ok(())
    }

    fn get(&self, object: u64, range: &Range<u64>) -> Result<(), TestCaseError> {
        let never_put = self.missing(object, range);
        let (offsets, data) = bytes(object, range);
        let found = self.chunks.get(&Self::key(object), range.clone()).expect("a get");
        match found {
            Lookup::Found(read) => {
                prop_assert_eq!(never_put, Vec::<u64>::new());
                prop_assert_eq!((read.data, read.offsets), (data.clone(), offsets));
                let view = self.chunks.view(&Self::key(object), range.clone()).expect("a view");
                prop_assert_eq!(view.found().expect("it was there").to_vec(), data);
            }
            Lookup::Missing(missing) => {
                let missing: Vec<_> = missing.into_iter().flatten().collect();
                prop_assert!(never_put.iter().all(|chunk| missing.contains(chunk)));
                prop_assert!(!self.whole || missing == never_put, "{missing:?}, {never_put:?}");
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..<_>::default() })]

    #[test]
    fn a_cache_is_a_map_that_forgets(steps in prop::collection::vec(step(), 1..80)) {
        let case = Case::new();
        let chunks = case.open();
        let mut pair = Pair { case, chunks, put: BTreeSet::new(), whole: true };
        for step in steps {
            pair.step(step)?;
        }
    }
}
