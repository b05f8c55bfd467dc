//! Decides which groups of keys use which dictionary.

use crate::contexts::Contexts;
use crate::dictionaries::Dictionaries;
use crate::dictionary::{Dictionary, set_dictionary_id};
use crate::error::{Error, Result};
use crate::sampler::{DueGroup, Sampler};
use crate::training::{DEFAULT_DICTIONARY_BYTES, Sizes, Split, encoded_bytes};
use std::num::NonZeroU32;
use std::sync::Arc;

/// A dictionary must make values at least this much smaller than no dictionary: 10 %.
const MIN_SAVED_PERCENT: u64 = 10;
/// A dictionary replaces another only if it makes values at least this much smaller: 5 %.
const MIN_GAIN_PERCENT: u64 = 5;
/// Maximum number of dictionaries without a group that an evaluation also considers.
const MAX_CANDIDATES: usize = 8;
/// Maximum number of times that the interval between evaluations doubles.
const MAX_DOUBLINGS: u32 = 4;

/// The settings of a trainer.
#[derive(Clone, Debug)]
pub struct TrainerOptions {
    min_samples: usize,
    min_sample_bytes: usize,
    max_dictionary_bytes: usize,
    interval_ms: u64,
}

impl Default for TrainerOptions {
    fn default() -> Self {
        Self {
            min_samples: 256,
            min_sample_bytes: 64 << 10,
            max_dictionary_bytes: DEFAULT_DICTIONARY_BYTES,
            interval_ms: 300_000,
        }
    }
}

impl TrainerOptions {
    /// Creates the default settings: 256 samples and 64 KiB of them at least, dictionaries of
    /// 32 KiB at most, and 5 minutes between the evaluations of a group.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the minimum number of samples for an evaluation, and their minimum length in bytes.
    #[must_use]
    pub fn min_samples(mut self, count: usize, bytes: usize) -> Self {
        (self.min_samples, self.min_sample_bytes) = (count, bytes);
        self
    }

    /// Sets the maximum length of a dictionary in bytes.
    #[must_use]
    pub fn max_dictionary_bytes(mut self, bytes: usize) -> Self {
        self.max_dictionary_bytes = bytes;
        self
    }

    /// Sets the time between evaluations of a group, in milliseconds. It doubles, up to 16 times as
    /// long, with each evaluation in a row that changes nothing.
    #[must_use]
    pub fn interval_ms(mut self, ms: u64) -> Self {
        self.interval_ms = ms;
        self
    }
}

/// Trains dictionaries from the samples of live values, and assigns them to groups.
///
/// The owner calls [`Self::step`] on a thread of its own, for example once a second. A step
/// evaluates one group at most:
///
/// 1. It takes the samples of the group and holds every fourth one out.
/// 2. It trains a dictionary from the others.
/// 3. It compresses the held-out samples without a dictionary, with the present one of the group,
///    with the new one, with that of the rest, and with up to 8 dictionaries that values need but
///    no group uses (after a restart, or when data changes back).
/// 4. A dictionary is adopted if the samples, headers included, are at least 10 % smaller than
///    without one. The present dictionary is replaced if another makes them at least 5 % smaller,
///    and no longer used if it saves less than 10 %. Existing dictionaries are preferred to a new
///    one within 5 %.
///
/// Old dictionaries stay in [`Dictionaries`] as long as values need them.
#[derive(Debug)]
pub struct Trainer {
    dictionaries: Arc<Dictionaries>,
    sampler: Arc<Sampler>,
    options: TrainerOptions,
    contexts: Contexts,
    buffer: Vec<u8>,
}

/// The result of the evaluation of a group.
#[derive(Debug)]
#[non_exhaustive]
pub struct Evaluation {
    /// The name of the group, such as `user:*:`. Empty for the rest.
    pub group: Vec<u8>,
    /// What was decided.
    pub decision: Decision,
    /// The sizes of the held-out samples. `dictionary_bytes` is that of the best dictionary, even
    /// if it is not worthwhile or there is no room for it.
    pub sizes: Sizes,
    /// The id of the dictionary that the group uses from now on.
    pub dictionary: Option<NonZeroU32>,
    /// The reason why no dictionary could be trained or added. The decision is then about existing
    /// dictionaries only.
    pub error: Option<Error>,
}

/// The decision about the dictionary of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The group uses its first dictionary.
    Adopted,
    /// The group uses another dictionary.
    Replaced,
    /// The group still uses its dictionary.
    Kept,
    /// The group uses no dictionary any more, because it saves less than 10 %.
    Retired,
    /// The group still uses no dictionary.
    NotWorthwhile,
}

impl Decision {
    /// Returns the decision that changes the dictionary of a group in this way.
    fn of(before: Option<NonZeroU32>, after: Option<NonZeroU32>) -> Self {
        match (before, after) {
            (Some(before), Some(after)) if before == after => Self::Kept,
            (Some(_), Some(_)) => Self::Replaced,
            (Some(_), None) => Self::Retired,
            (None, Some(_)) => Self::Adopted,
            (None, None) => Self::NotWorthwhile,
        }
    }
}

/// A dictionary and the length of the held-out samples that are compressed with it.
struct Candidate {
    dictionary: Arc<Dictionary>,
    bytes: u64,
}

impl Trainer {
    /// Creates a trainer for the samples of this sampler.
    ///
    /// # Errors
    ///
    /// Returns [`Error::OutOfMemory`].
    pub fn new(
        dictionaries: &Arc<Dictionaries>,
        sampler: &Arc<Sampler>,
        options: TrainerOptions,
    ) -> Result<Self> {
        let (dictionaries, sampler) = (Arc::clone(dictionaries), Arc::clone(sampler));
        Ok(Self { dictionaries, sampler, options, contexts: Contexts::new()?, buffer: Vec::new() })
    }

    /// Evaluates the group that is due for the longest time, and removes dictionaries that are not
    /// needed any more. Returns `None` if no group is due and has enough samples. `now_ms` is a
    /// time in milliseconds that never decreases.
    ///
    /// Takes time for training and compressing the samples of one group: for 512 KiB of samples at
    /// level 3, about 0.2 s.
    pub fn step(&mut self, now_ms: u64) -> Option<Evaluation> {
        let forgotten = self.sampler.take_forgotten();
        if !forgotten.is_empty() {
            self.dictionaries.forget(&forgotten);
        }
        self.dictionaries.reclaim();
        let TrainerOptions { min_samples, min_sample_bytes, .. } = self.options;
        let due = self.sampler.take_due(now_ms, min_samples, min_sample_bytes)?;
        let (id, unchanged) = (due.id, due.unchanged);
        let evaluation = self.evaluate(due);
        let unchanged = match evaluation.decision {
            Decision::Kept | Decision::NotWorthwhile => (unchanged + 1).min(MAX_DOUBLINGS),
            Decision::Adopted | Decision::Replaced | Decision::Retired => 0,
        };
        let wait_ms = self.options.interval_ms.saturating_mul(1 << unchanged);
        self.sampler.evaluated(id, now_ms.saturating_add(wait_ms), unchanged);
        Some(evaluation)
    }

    fn evaluate(&mut self, due: DueGroup) -> Evaluation {
        let DueGroup { id, name, samples, .. } = due;
        let split = Split::new(samples);
        let plain_bytes = self.encoded_bytes(&split, None);
        let max_bytes = plain_bytes - plain_bytes * MIN_SAVED_PERCENT / 100;
        let present = self.dictionaries.assigned(id);
        let present_id = present.as_ref().map(|present| present.id());
        let present = present.map(|dictionary| self.candidate(&split, dictionary));
        let (best, mut error) = self.best_candidate(&split);
        let best = match (present, best) {
            (Some(present), Some(best)) => Some(smaller(Some(present), best, MIN_GAIN_PERCENT)),
            (present, best) => present.or(best),
        };
        let best_bytes = best.as_ref().map_or(plain_bytes, |best| best.bytes);
        let chosen = best.filter(|best| best.bytes <= max_bytes).map(|best| best.dictionary);
        let mut dictionary = chosen.as_ref().map(|chosen| chosen.id());
        let mut decision = Decision::of(present_id, dictionary);
        if let Err(failed) = self.dictionaries.assign(id, &name, chosen) {
            // There is no room for the new dictionary. The group stays as it is.
            (error, dictionary) = (Some(failed), present_id);
            decision = Decision::of(present_id, present_id);
        }
        let sizes = Sizes {
            values: split.held_out.len() as u64,
            raw_bytes: split.held_out.iter().map(|value| value.len() as u64).sum(),
            plain_bytes,
            dictionary_bytes: best_bytes,
        };
        Evaluation { group: name, decision, sizes, dictionary, error }
    }

    /// Returns the best of the dictionaries that the group does not use, among them a new one, and
    /// the error if no new one can be trained.
    fn best_candidate(&mut self, split: &Split) -> (Option<Candidate>, Option<Error>) {
        let mut best = None;
        for dictionary in self.dictionaries.candidates(MAX_CANDIDATES) {
            // One after the other, since that takes memory.
            let Some(dictionary) = self.dictionaries.prepared(dictionary) else { continue };
            let candidate = self.candidate(split, dictionary);
            best = Some(smaller(best, candidate, 0));
        }
        match self.train(split) {
            Ok(trained) => {
                let candidate = self.candidate(split, trained);
                // An existing dictionary is preferred unless the new one is clearly better.
                (Some(smaller(best, candidate, MIN_GAIN_PERCENT)), None)
            }
            Err(error) => (best, Some(error)),
        }
    }

    fn train(&self, split: &Split) -> Result<Arc<Dictionary>> {
        let mut bytes = split.train(self.options.max_dictionary_bytes)?;
        let id = self.dictionaries.next_id().ok_or(Error::DuplicateId { id: u32::MAX })?;
        set_dictionary_id(&mut bytes, id)?;
        Ok(Arc::new(Dictionary::new(&bytes, self.dictionaries.level())?))
    }

    fn candidate(&mut self, split: &Split, dictionary: Arc<Dictionary>) -> Candidate {
        let bytes = self.encoded_bytes(split, Some(&dictionary));
        Candidate { dictionary, bytes }
    }

    fn encoded_bytes(&mut self, split: &Split, dictionary: Option<&Dictionary>) -> u64 {
        let level = self.dictionaries.level();
        encoded_bytes(&mut self.contexts, &split.held_out, level, dictionary, &mut self.buffer)
    }
}

/// Returns `other` if its samples are smaller than those of `best` by at least `percent`, otherwise
/// `best`.
fn smaller(best: Option<Candidate>, other: Candidate, percent: u64) -> Candidate {
    match best {
        Some(best) if other.bytes >= best.bytes - best.bytes * percent / 100 => best,
        _ => other,
    }
}
