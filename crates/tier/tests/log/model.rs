//! Random operations, compared with a model.

use crate::{Case, Item, load, load_by_directories};
use nuthatch_tier::{
    AlignedBuffer, FolderState, Place, ReadError, RecordId, Removals, Tier, verify,
};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Append {
        len: usize,
        expires: bool,
    },
    Flush,
    Seal,
    RemoveOldest,
    /// Removes one of the files, which may be the open one.
    Remove {
        index: usize,
    },
    /// Records in the log that one of the records is removed.
    RemoveRecord {
        index: usize,
    },
    RemoveAllRecords,
    Close,
    Die,
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![30 => 0..500_usize, 8 => 0..20_000_usize, 1 => 60_000..200_000_usize];
    prop_oneof![
        30 => (len, any::<bool>()).prop_map(|(len, expires)| Step::Append { len, expires }),
        4 => Just(Step::Flush),
        2 => Just(Step::Seal),
        1 => Just(Step::RemoveOldest),
        1 => any::<usize>().prop_map(|index| Step::Remove { index }),
        8 => any::<usize>().prop_map(|index| Step::RemoveRecord { index }),
        1 => Just(Step::RemoveAllRecords),
        1 => Just(Step::Close),
        1 => Just(Step::Die),
    ]
}

/// An appended item.
#[derive(Clone)]
struct Kept {
    item: Item,
    number: u64,
    place: Place,
    is_flushed: bool,
    is_removed: bool,
}

struct Model {
    case: Case,
    tier: Tier,
    removals: Removals,
    kept: Vec<Kept>,
    next: u64,
}

impl Model {
    fn new() -> Self {
        let case = Case::new();
        let (tier, _) = case.open();
        let removals = tier.removals().expect("a log");
        Self { case, tier, removals, kept: Vec::new(), next: 0 }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Append { len, expires } => self.append(*len, *expires),
            Step::Flush => self.tier.flush().expect("flushed"),
            Step::Seal => self.tier.seal().expect("sealed"),
            Step::RemoveOldest => {
                if let Some(removed) = self.tier.remove_oldest().expect("removed") {
                    self.forget(removed);
                }
            }
            Step::Remove { index } => {
                let files = self.tier.files();
                if let Some(file) = files.get(index % files.len().max(1)) {
                    self.tier.remove_file(file.number).expect("removed");
                    self.forget(file.number);
                }
            }
            Step::RemoveRecord { index } => {
                let index = index % self.kept.len().max(1);
                if let Some(kept) = self.kept.get_mut(index) {
                    let id = RecordId { file: kept.number, unit: kept.place.unit };
                    self.removals.append(&[id]).expect("removed");
                    kept.is_removed = true;
                }
            }
            Step::RemoveAllRecords => {
                self.removals.append_all().expect("removed");
                self.kept.iter_mut().for_each(|kept| kept.is_removed = true);
            }
            Step::Close => {
                self.reopen(true);
            }
            Step::Die => {
                self.reopen(false);
            }
        }
        if matches!(step, Step::Flush | Step::Seal) {
            self.kept.iter_mut().for_each(|kept| kept.is_flushed = true);
        }
        assert!(self.tier.used_bytes() <= self.tier.max_bytes());
    }

    fn append(&mut self, len: usize, expires: bool) {
        let expires_ms = expires.then_some(crate::NOW_MS + 1 + self.next);
        let item = Item { expires_ms, ..Item::new(self.next, len) };
        self.next += 1;
        let place = loop {
            match self.tier.append(&item.record()) {
                Ok(place) => break place,
                Err(error) => {
                    assert!(error.is_budget_reached(), "{error}");
                    let removed = self.tier.remove_oldest().expect("removed").expect("a file");
                    self.forget(removed);
                }
            }
        };
        let number = self.tier.files().last().expect("the open file").number;
        let (is_flushed, is_removed) = (false, false);
        self.kept.push(Kept { item, number, place, is_flushed, is_removed });
    }

    fn forget(&mut self, number: u64) {
        self.kept.retain(|kept| kept.number != number);
    }

    /// Opens the folder again, and compares all that is there with the model.
    fn reopen(&mut self, closes: bool) {
        let empty = Case::new().open().0;
        let tier = std::mem::replace(&mut self.tier, empty);
        if closes {
            tier.close().expect("closed");
            self.kept.iter_mut().for_each(|kept| kept.is_flushed = true);
        } else {
            drop(tier);
        }
        let verified = verify(self.case.path(), |_, _| ()).expect("verified");
        assert_eq!(verified.damage, []);
        let (mut tier, recovery) = self.case.open();
        assert_eq!(recovery.state == FolderState::Closed, closes);
        assert_eq!((recovery.damage.len(), recovery.incomplete_batch), (0, None));
        let found = load(&tier.reader());
        assert!(found == load_by_directories(&tier.reader()));
        // Batches that were full were written, too.
        let min = self.kept.iter().filter(|kept| kept.is_flushed).count();
        assert!((min..=self.kept.len()).contains(&found.len()), "{} items", found.len());
        self.kept.truncate(found.len());
        assert!(self.kept.iter().map(|kept| &kept.item).eq(&found));
        let mut places = Vec::new();
        for file in tier.files() {
            let (directory, _) = tier.reader().directory(file.number).expect("a file");
            places.extend(directory.iter().map(|entry| (file.number, entry.place)));
        }
        for (kept, (number, place)) in self.kept.iter_mut().zip(places) {
            assert_eq!(kept.number, number);
            let id = RecordId { file: number, unit: place.unit };
            assert_eq!(recovery.removed.contains(id, 0), kept.is_removed);
            kept.place = place;
            kept.is_flushed = true;
        }
        self.removals = loop {
            match tier.removals() {
                Ok(removals) => break removals,
                Err(error) => assert!(error.is_budget_reached(), "{error}"),
            }
            let removed = tier.remove_oldest().expect("removed").expect("a file");
            self.forget(removed);
        };
        self.tier = tier;
    }

    /// Reads all items by their places.
    fn check(&self) {
        let (reader, mut buffer) = (self.tier.reader(), AlignedBuffer::new(0));
        for kept in &self.kept {
            match reader.read(kept.place, &kept.item.key, &mut buffer) {
                Ok(record) => assert_eq!(Item::of(&record), kept.item),
                Err(ReadError::Missing) => assert!(!kept.is_flushed),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_tier_does_what_its_model_does(steps in vec(step(), 0..150)) {
        let mut model = Model::new();
        for step in &steps {
            model.take(step);
        }
        model.check();
        model.reopen(true);
        model.check();
    }
}
