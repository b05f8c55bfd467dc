//! Samples of live values for each group of keys.

use crate::group::{GroupId, group_name};
use crate::random::Random;
use crate::samples::Reservoir;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Maximum of a group's credit. A group without values for this many samples can be replaced.
const MAX_CREDIT: u32 = 256;

/// Collects samples of the values that codecs compress, for a [`Trainer`](crate::Trainer).
///
/// A codec offers one of about `interval` values. Only then it takes a lock, and it drops the
/// sample if another thread has the lock. Memory is bounded by the maximum number of bytes.
///
/// At most `max_groups` groups are tracked. If there are more, those with the most samples are kept
/// (a variant of the algorithm of Misra and Gries), and the others belong to the rest.
#[derive(Debug)]
pub struct Sampler {
    interval: u32,
    groups: Mutex<Groups>,
}

#[derive(Debug)]
struct Groups {
    tracked: Vec<Group>,
    rest: Group,
    max_tracked: usize,
    max_bytes_of_group: usize,
    /// Replaced groups that have been evaluated.
    forgotten: Vec<GroupId>,
    random: Random,
}

#[derive(Debug)]
struct Group {
    id: GroupId,
    name: Vec<u8>,
    reservoir: Reservoir,
    /// How many samples of untracked groups this group survives.
    credit: u32,
    /// When the group can be evaluated next.
    due_ms: u64,
    /// How often in a row an evaluation changed nothing.
    unchanged: u32,
    is_evaluated: bool,
}

impl Group {
    fn new(id: GroupId, name: Vec<u8>, max_bytes: usize, seed: u64) -> Self {
        let reservoir = Reservoir::new(max_bytes, seed);
        Self { id, name, reservoir, credit: 1, due_ms: 0, unchanged: 0, is_evaluated: false }
    }
}

/// The samples of a group that is due for an evaluation.
pub(crate) struct DueGroup {
    pub(crate) id: GroupId,
    pub(crate) name: Vec<u8>,
    pub(crate) samples: Vec<Box<[u8]>>,
    /// How often in a row an evaluation changed nothing.
    pub(crate) unchanged: u32,
}

impl Sampler {
    /// Creates a sampler. A codec offers one of about `interval` values; 0 is the same as 1. The
    /// samples of all groups have at most `max_bytes` bytes. The same seed and values of one thread
    /// yield the same samples.
    pub fn new(interval: u32, max_groups: usize, max_bytes: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let max_bytes_of_group = max_bytes / (max_groups + 1);
        let rest =
            Group::new(GroupId::REST, Vec::new(), max_bytes_of_group, random.below(u64::MAX));
        let (tracked, forgotten) = (Vec::new(), Vec::new());
        let groups = Groups {
            tracked,
            rest,
            max_tracked: max_groups,
            max_bytes_of_group,
            forgotten,
            random,
        };
        Self { interval: interval.max(1), groups: Mutex::new(groups) }
    }

    /// Adds a value to the samples of its group, unless another thread has the lock. Returns how
    /// many values the codec skips before the next sample: between 0 and twice the interval, at
    /// random, so that no pattern in the writes is always or never sampled.
    pub(crate) fn offer(&self, key: &[u8], value: &[u8]) -> u32 {
        let mut groups = match self.groups.try_lock() {
            Ok(groups) => groups,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.interval - 1,
        };
        groups.find(key).reservoir.offer(value);
        groups.random.below(u64::from(self.interval) * 2 - 1) as u32
    }

    /// Returns the samples of the group that has been due for the longest time and has at least
    /// `min_samples` samples and `min_bytes` bytes, and starts new samples for it.
    pub(crate) fn take_due(
        &self,
        now_ms: u64,
        min_samples: usize,
        min_bytes: usize,
    ) -> Option<DueGroup> {
        let mut groups = self.lock();
        let due = groups.all().filter(|group| {
            group.due_ms <= now_ms
                && group.reservoir.samples().len() >= min_samples
                && group.reservoir.bytes() >= min_bytes
        });
        let group = due.min_by_key(|group| group.due_ms)?;
        let samples = group.reservoir.take();
        let unchanged = group.unchanged;
        Some(DueGroup { id: group.id, name: group.name.clone(), samples, unchanged })
    }

    /// Records an evaluation of a group. The group is due again at `due_ms`.
    pub(crate) fn evaluated(&self, id: GroupId, due_ms: u64, unchanged: u32) {
        let mut groups = self.lock();
        let found = groups.all().find(|group| group.id == id);
        match found {
            Some(group) => {
                (group.due_ms, group.unchanged) = (due_ms, unchanged);
                group.is_evaluated = true;
            }
            // It was replaced during the evaluation.
            None => groups.forgotten.push(id),
        }
    }

    /// Returns the evaluated groups that were replaced by others since the last call.
    pub(crate) fn take_forgotten(&self) -> Vec<GroupId> {
        std::mem::take(&mut self.lock().forgotten)
    }

    /// Returns the length of all samples in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.lock().all().map(|group| group.reservoir.bytes()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Groups {
    fn all(&mut self) -> impl Iterator<Item = &mut Group> {
        self.tracked.iter_mut().chain([&mut self.rest])
    }

    /// Returns the group of a key. Tracks it if there is room, or if a tracked group has no credit
    /// left; otherwise returns the rest.
    fn find(&mut self, key: &[u8]) -> &mut Group {
        let id = GroupId::of(key);
        if id == GroupId::REST {
            return &mut self.rest;
        }
        if let Some(at) = self.tracked.iter().position(|group| group.id == id) {
            let group = &mut self.tracked[at];
            group.credit = (group.credit + 1).min(MAX_CREDIT);
            return group;
        }
        if self.tracked.len() < self.max_tracked {
            let group = self.create(id, key);
            return self.tracked.push_mut(group);
        }
        let weakest = (0..self.tracked.len()).min_by_key(|at| self.tracked[*at].credit);
        let Some(at) = weakest else { return &mut self.rest };
        if self.tracked[at].credit > 0 {
            self.tracked[at].credit -= 1;
            return &mut self.rest;
        }
        let group = self.create(id, key);
        let replaced = std::mem::replace(&mut self.tracked[at], group);
        if replaced.is_evaluated {
            self.forgotten.push(replaced.id);
        }
        &mut self.tracked[at]
    }

    fn create(&mut self, id: GroupId, key: &[u8]) -> Group {
        Group::new(id, group_name(key), self.max_bytes_of_group, self.random.below(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sampler: &Sampler) -> Vec<String> {
        let mut groups = sampler.lock();
        let names = groups.all().map(|group| String::from_utf8_lossy(&group.name).into_owned());
        names.collect()
    }

    #[test]
    fn the_groups_with_the_most_samples_are_tracked() {
        let sampler = Sampler::new(1, 3, 1 << 20, 1);
        for round in 0..1000_u32 {
            sampler.offer(b"user:1:a", b"value");
            sampler.offer(b"order:1", b"value");
            // A group for each key: none of them has a second sample.
            let letters: String = round.to_string().bytes().map(|b| char::from(b + 50)).collect();
            sampler.offer(format!("name:{letters}:x").as_bytes(), b"value");
        }
        let names = names(&sampler);
        for name in ["user:*:", "order:", ""] {
            assert!(names.iter().any(|found| found == name), "{names:?}");
        }
        assert_eq!(names.len(), 4);
        let due = sampler.take_due(0, 1000, 0).expect("a group with all samples");
        assert!(["user:*:", "order:"].contains(&&*String::from_utf8_lossy(&due.name)));
    }

    #[test]
    fn a_tracked_group_without_values_is_replaced_and_reported() {
        let sampler = Sampler::new(1, 1, 1 << 20, 1);
        for _ in 0..2000 {
            sampler.offer(b"old:1", b"value");
        }
        let due = sampler.take_due(0, 1, 1).expect("the group");
        sampler.evaluated(due.id, 1000, 0);
        for _ in 0..=MAX_CREDIT {
            assert!(sampler.take_forgotten().is_empty());
            sampler.offer(b"new:1", b"value");
        }
        assert_eq!(sampler.take_forgotten(), [due.id]);
        assert_eq!(names(&sampler)[0], "new:");
    }

    #[test]
    fn the_bytes_of_all_samples_are_limited() {
        let sampler = Sampler::new(1, 9, 100_000, 1);
        for key in 0..20_000 {
            let group = char::from(b'a' + (key % 20_u32) as u8);
            sampler.offer(format!("{group}:{key}").as_bytes(), &[7; 300]);
        }
        let bytes = sampler.memory_bytes();
        assert!((80_000..=100_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn about_one_of_interval_values_is_offered() {
        let sampler = Sampler::new(64, 3, 1 << 20, 1);
        let skipped: u32 = (0..1000).map(|_| sampler.offer(b"a:1", b"value")).sum();
        assert!((58_000..68_000).contains(&skipped), "{skipped}");
    }
}
