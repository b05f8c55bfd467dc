//! Tests of the sets: lookups, growth, and a comparison with a map.

use super::*;
use crate::layout::GRAIN;
use nuthatch_testing::random::Random;
use std::collections::HashMap;
use std::fs::File;

fn words(sets: usize) -> Words {
    let file: File = tempfile::tempfile().expect("a file");
    file.set_len((sets * index::SET_LEN) as u64).expect("a length");
    Words::map(&file, sets * index::SET_LEN, false, true).expect("a map")
}

fn hash_of(number: u64) -> u64 {
    crate::Id::new([7; 16], number).hash()
}

fn place(number: u64) -> Place {
    Place { slot: number as u32 & 0xFF, offset: (number + 1) * GRAIN }
}

fn found(sets: &Sets<'_>, number: u64) -> bool {
    sets.lookup(hash_of(number)).any(|(_, found)| found == place(number))
}

fn counted_away(sets: &Sets<'_>) -> u64 {
    let counts = (0..=sets.shape.mask).map(|set| &sets.all(set)[index::WAYS]);
    counts.flat_map(|count| count.load(Ordering::Relaxed).to_le_bytes()).map(u64::from).sum()
}

#[test]
fn five_words_of_six_are_used_before_one_finds_no_room() {
    let words = words(1 << 12);
    let shape = Shape::new(0, 12, 0);
    let sets = Sets::new(&words, &shape);
    let finds_no_space = |number: &u64| {
        sets.insert(hash_of(*number), place(*number), 0, |_| false) == Inserted::Full
    };
    let first = (0..1 << 16).find(finds_no_space).expect("one that is too many");
    let (used, all) = sets.used_and_total_words();
    assert_eq!(used, first);
    assert!(used * 6 >= all * 5, "{used} of {all}");
    assert!((0..first).all(|number| found(&sets, number)));
    for number in 0..first {
        assert!(sets.remove(hash_of(number), place(number)), "{number}");
    }
    assert_eq!((sets.used_and_total_words().0, counted_away(&sets)), (0, 0));
}

#[test]
fn words_are_found_again_after_each_doubling() {
    let numbers = 0..60 * 13;
    let mut old = words(1 << 6);
    for grown in 0..=index::MAX_GROWN {
        let shapes = [grown, grown + 1].map(|grown| Shape::new(0, 6, grown));
        let sets = Sets::new(&old, &shapes[0]);
        if grown == 0 {
            for number in numbers.clone() {
                let inserted = sets.insert(hash_of(number), place(number), 2, |_| false);
                assert_eq!(inserted, Inserted::Done);
            }
            assert!(counted_away(&sets) > 0, "some are away");
        }
        for number in numbers.clone() {
            assert_eq!(sets.uses(hash_of(number), place(number)), Some(2), "{number}, {grown}");
        }
        let next = words(1 << (7 + grown));
        let doubled = Sets::new(&next, &shapes[1]);
        assert_eq!(sets.copy_into(&doubled, |_| false), 0);
        old = next;
    }
}

#[test]
fn sets_behave_like_a_map() {
    let words = words(1 << 5);
    let shape = Shape::new(0, 5, 0);
    let sets = Sets::new(&words, &shape);
    let mut model: HashMap<u64, Place> = HashMap::new();
    let mut random = Random::new(1);
    for step in 0..100_000 {
        let number = random.below(512);
        let hash = hash_of(number);
        match (random.below(8), model.get(&number).copied()) {
            (0..4, None) if sets.insert(hash, place(number), 0, |_| false) == Inserted::Done => {
                model.insert(number, place(number));
            }
            (4, Some(old)) => {
                let new = Place { slot: 300, offset: (step + 1) * GRAIN };
                assert!(sets.redirect(hash, old, new));
                model.insert(number, new);
            }
            (5, Some(old)) => sets.count_use(hash, old),
            (6, Some(old)) => {
                assert!(sets.remove(hash, old));
                model.remove(&number);
            }
            _ => {}
        }
        assert_eq!(sets.uses(hash, place(number)).is_some(), {
            model.get(&number) == Some(&place(number))
        });
    }
    for (number, place) in &model {
        assert!(sets.uses(hash_of(*number), *place).is_some(), "{number}");
    }
    assert_eq!(sets.used_and_total_words().0, model.len() as u64);
    assert_eq!(sets.sweep(|_| true), model.len() as u64);
    assert_eq!(counted_away(&sets), 0, "no count has drifted");
}
