//! Hot keys: which keys requests name most often, from a sample.
//!
//! Each worker has a [`Sampler`] and a table of 64 keys, kept by the algorithm Space-Saving
//! (Metwally, Agrawal, El Abbadi 2005): a key that is not in the full table takes the place of the
//! one with the least weight, with that weight as its error. Weights are halved every ten seconds,
//! so the table has the keys of about the last 15 seconds.
//!
//! A batch of requests costs one comparison and one subtraction, unless it has a sampled request.
//! How many requests the sampler skips follows their rate: it takes about 1,000 samples a second at
//! most, and all requests if there are few. Of a request with several keys one is chosen. Each
//! sample has the weight of the keys that it stands for: those of its request, times the mean
//! number of requests for each sample. The worker never waits for a reader of the table: it leaves
//! samples out meanwhile.
//!
//! The share of a key is its weight divided by the weight of all samples. Weights differ, so the
//! error of a share follows from the sum of the squares of the weights of its samples: one sample
//! of a request with 1,000 keys says less than 1,000 samples of requests with one key.

use super::kept_key::KeptKey;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keys of a table.
const TABLE_LEN: usize = 64;

/// Time after which weights are halved.
const HALF_LIFE: Duration = Duration::from_secs(10);

/// Length of the periods in which samples are counted, and the number of samples beyond which the
/// interval is doubled, or below which it is halved.
const PERIOD: Duration = Duration::from_secs(1);
const MAX_SAMPLES: u32 = 1024;
const MIN_SAMPLES: u32 = 256;

/// Maximum mean number of requests for each sample.
const MAX_INTERVAL: u64 = 1 << 12;

/// Minimum number of samples of a key that is reported.
const MIN_REPORTED_SAMPLES: f64 = 4.0;

/// Chooses the requests of a worker whose keys are counted.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Requests before the next one that is sampled.
    skipped: usize,
    /// The mean number of requests for each sample.
    interval: u64,
    random: u64,
    period: Instant,
    samples: u32,
    table: Arc<HotKeyTable>,
}

impl Default for Sampler {
    fn default() -> Self {
        let table = Arc::default();
        Self { skipped: 0, interval: 1, random: 1, period: Instant::now(), samples: 0, table }
    }
}

impl Sampler {
    /// Passes this many requests. Returns whether one of them is to be sampled: then
    /// [`sample`](Self::sample) must be called instead of passing them.
    #[inline(always)]
    pub(crate) fn pass(&mut self, requests: usize) -> bool {
        if requests <= self.skipped {
            self.skipped -= requests;
            return false;
        }
        true
    }

    /// Counts the keys of some of this many requests. `is_permitted` returns whether the request at
    /// this position may be counted. `keys` calls its second argument with each key of the request
    /// whose position is the first one, until it returns false.
    #[cold]
    pub(crate) fn sample(
        &mut self,
        requests: usize,
        mut is_permitted: impl FnMut(usize) -> bool,
        keys: impl Fn(usize, &mut dyn FnMut(&[u8]) -> bool),
    ) {
        let table = Arc::clone(&self.table);
        let mut weights = table.weights.try_lock().ok();
        let now = Instant::now();
        self.adapt(now);
        if let Some(weights) = &mut weights {
            weights.decay(now);
        }
        let mut at = self.skipped;
        while at < requests {
            if let Some(weights) = &mut weights
                && is_permitted(at)
            {
                self.add_one(weights, &table.hasher, |each| keys(at, each));
            }
            self.samples += 1;
            at += 1 + self.next_skipped();
        }
        self.skipped = at - requests;
    }

    /// Adds one key of a request, chosen at random, with the weight of all of them.
    fn add_one(
        &mut self,
        weights: &mut Weights,
        hasher: &RandomState,
        keys: impl Fn(&mut dyn FnMut(&[u8]) -> bool),
    ) {
        let mut count = 0;
        keys(&mut |_| {
            count += 1;
            true
        });
        if count == 0 {
            return;
        }
        let chosen = self.next_random() % count;
        let (weight, mut at) = (self.interval * count, 0);
        keys(&mut |key| {
            if at == chosen {
                weights.add(hasher.hash_one(key), key, weight);
            }
            at += 1;
            at <= chosen
        });
    }

    /// Updates the interval for the rate of requests.
    fn adapt(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.period);
        if self.samples > MAX_SAMPLES {
            self.interval = (self.interval * 2).min(MAX_INTERVAL);
        } else if elapsed < PERIOD {
            return;
        } else if self.samples < MIN_SAMPLES {
            let periods = elapsed.as_secs().min(MAX_INTERVAL.ilog2().into()) as u32;
            self.interval = (self.interval >> periods).max(1);
        }
        (self.period, self.samples) = (now, 0);
    }

    /// Returns a random number of requests to skip, whose mean is the interval less one.
    fn next_skipped(&mut self) -> usize {
        let range = 2 * self.interval - 1;
        (self.next_random() % range) as usize
    }

    /// Returns the next number of a xorshift generator.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// The keys of a worker.
#[derive(Debug, Default)]
pub(crate) struct HotKeyTable {
    /// The same for all workers.
    hasher: RandomState,
    weights: Mutex<Weights>,
}

#[derive(Debug, Default)]
struct Weights {
    /// At most [`TABLE_LEN`].
    keys: Vec<WeightedKey>,
    total: u64,
    /// The sum of the squares of the weights of all samples, as they were when they were taken.
    /// Halved together with the weights, so that older samples make the error greater.
    squares: f64,
    samples: f64,
    decayed: Option<Instant>,
}

#[derive(Clone, Debug)]
struct WeightedKey {
    hash: u64,
    weight: u64,
    /// The part of the weight that may belong to other keys.
    error: u64,
    /// The sum of the squares of the weights of its own samples.
    squares: f64,
    /// The first bytes of the key, and its length.
    start: Vec<u8>,
    len: usize,
}

impl Weights {
    fn add(&mut self, hash: u64, key: &[u8], weight: u64) {
        self.total += weight;
        self.samples += 1.0;
        let square = (weight as f64).powi(2);
        self.squares += square;
        let (kept, len) = (KeptKey::start(key), key.len());
        if let Some(found) = self.keys.iter_mut().find(|one| one.hash == hash) {
            found.weight += weight;
            found.squares += square;
        } else if self.keys.len() < TABLE_LEN {
            self.keys.reserve_exact(TABLE_LEN - self.keys.len());
            let mut start = Vec::with_capacity(KeptKey::MAX_START_LEN);
            start.extend_from_slice(kept);
            let squares = square;
            self.keys.push(WeightedKey { hash, weight, error: 0, squares, start, len });
        } else if let Some(least) = self.keys.iter_mut().min_by_key(|one| one.weight) {
            (least.hash, least.error, least.squares) = (hash, least.weight, square);
            least.weight += weight;
            least.len = len;
            least.start.clear();
            least.start.extend_from_slice(kept);
        }
    }

    /// Divides all weights by two for each half-life that has passed.
    fn decay(&mut self, now: Instant) {
        let last = *self.decayed.get_or_insert(now);
        let halvings = now.saturating_duration_since(last).as_secs() / HALF_LIFE.as_secs();
        if halvings == 0 {
            return;
        }
        self.decayed = Some(now);
        let halvings = halvings.min(63) as u32;
        let divisor = f64::from(2_u32.saturating_pow(halvings));
        for one in &mut self.keys {
            one.weight >>= halvings;
            one.error >>= halvings;
            one.squares /= divisor;
        }
        self.keys.retain(|one| one.weight > 0);
        self.total >>= halvings;
        self.squares /= divisor;
        self.samples /= divisor;
    }

    /// Returns the maximum weight that a key may have that is not in the table.
    fn max_missing(&self) -> u64 {
        let is_full = self.keys.len() == TABLE_LEN;
        let least = self.keys.iter().map(|one| one.weight).min();
        least.filter(|_| is_full).unwrap_or_default()
    }

    /// Returns the share of a key, if its samples suffice.
    fn estimate(&self, found: WeightedKey) -> Option<HotKey> {
        let total = (self.total as f64).max(1.0);
        let half_error = found.error as f64 / total / 2.0;
        let share = found.weight as f64 / total - half_error;
        // The variance of a ratio of weighted samples (Cochran, Sampling Techniques, 1977).
        let others = (self.squares - found.squares).max(0.0);
        let variance = found.squares * (1.0 - share).powi(2) + others * share.powi(2);
        let error = half_error + 2.0 * variance.sqrt() / total;
        // The number of samples of equal weights that have this weight and these squares.
        let own = found.weight.saturating_sub(found.error) as f64;
        let samples = own.powi(2) / found.squares.max(1.0);
        let is_certain = samples >= MIN_REPORTED_SAMPLES && share > error;
        let WeightedKey { hash, start, len, .. } = found;
        is_certain.then_some(HotKey { key: KeptKey { start, len, hash }, share, error })
    }
}

/// The tables of all workers.
#[derive(Debug, Default)]
pub(crate) struct HotKeys {
    hasher: RandomState,
    tables: Mutex<Vec<Arc<HotKeyTable>>>,
}

/// A key that many requests name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HotKey {
    pub(crate) key: KeptKey,
    /// The estimated part of all keys that requests name, from 0 to 1.
    pub(crate) share: f64,
    /// The true part is within this much of `share`, with a probability of about 95 %.
    pub(crate) error: f64,
}

/// The hot keys of a server, the hottest one first.
#[derive(Clone, Debug, Default)]
pub(crate) struct HotKeyReport {
    pub(crate) keys: Vec<HotKey>,
    /// Samples that they are estimated from, older ones counted less.
    pub(crate) samples: f64,
}

impl HotKeys {
    /// Creates tables whose keys are told apart by this hasher.
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self { hasher, ..Self::default() }
    }

    /// Registers the table of a worker and returns its sampler.
    pub(crate) fn sampler(&self) -> Sampler {
        let table = HotKeyTable { hasher: self.hasher.clone(), weights: Mutex::default() };
        let table = Arc::new(table);
        let mut tables = lock(&self.tables);
        tables.push(Arc::clone(&table));
        let random = self.hasher.hash_one(tables.len()) | 1;
        Sampler { random, table, ..Sampler::default() }
    }

    /// Returns the keys that most requests name now.
    pub(crate) fn report(&self, now: Instant) -> HotKeyReport {
        let mut all = HashMap::<u64, (WeightedKey, u64)>::new();
        let (mut sum, mut max_missing) = (Weights::default(), 0);
        for table in lock(&self.tables).iter() {
            let mut weights = lock(&table.weights);
            weights.decay(now);
            sum.total += weights.total;
            sum.squares += weights.squares;
            sum.samples += weights.samples;
            let table_missing = weights.max_missing();
            max_missing += table_missing;
            for one in &weights.keys {
                let none = || (WeightedKey { weight: 0, error: 0, squares: 0.0, ..one.clone() }, 0);
                let (key, key_missing) = all.entry(one.hash).or_insert_with(none);
                key.weight += one.weight;
                key.error += one.error;
                key.squares += one.squares;
                *key_missing += table_missing;
            }
        }
        let mut keys: Vec<_> = all.into_values().collect();
        for (key, key_missing) in &mut keys {
            // Full tables without the key may have displaced it.
            key.weight += max_missing - *key_missing;
            key.error += max_missing - *key_missing;
        }
        let keys = keys.into_iter().filter_map(|(key, _)| sum.estimate(key));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_by(|one, other| other.share.total_cmp(&one.share).then(one.key.cmp(&other.key)));
        HotKeyReport { keys, samples: sum.samples }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes batches of requests, each of which names one key of `key`.
    fn pass(sampler: &mut Sampler, batches: u64, key: impl Fn(u64) -> Vec<u8>) {
        for batch in 0..batches {
            if sampler.pass(16) {
                sampler.sample(
                    16,
                    |_| true,
                    |at, each| {
                        each(&key(16 * batch + at as u64));
                    },
                );
            }
        }
    }

    fn numbered(number: u64) -> Vec<u8> {
        number.to_string().into_bytes()
    }

    #[test]
    fn few_requests_are_all_counted() {
        let hot_keys = HotKeys::default();
        let mut sampler = hot_keys.sampler();
        pass(&mut sampler, 4, |number| numbered(number % 4));
        let report = hot_keys.report(Instant::now());
        assert!((report.samples - 64.0).abs() < 1e-9, "{report:?}");
        assert_eq!(report.keys.len(), 4);
        assert!(report.keys.iter().all(|one| (one.share - 0.25).abs() < 1e-9), "{report:?}");
    }

    #[test]
    fn hot_keys_are_found_among_many_within_the_error() {
        let hot_keys = HotKeys::default();
        let (mut one, mut other) = (hot_keys.sampler(), hot_keys.sampler());
        // One request in five names "hot", one in ten "warm"; the rest names other keys.
        let key = |number: u64| match number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 {
            random if random % 10 < 2 => b"hot".to_vec(),
            random if random % 10 == 2 => b"warm".to_vec(),
            _ => numbered(number),
        };
        pass(&mut one, 50_000, key);
        pass(&mut other, 50_000, key);
        let report = hot_keys.report(Instant::now());
        let [hot, warm] = report.keys.as_slice() else { panic!("{report:?}") };
        assert_eq!((&hot.key.start[..], &warm.key.start[..]), (&b"hot"[..], &b"warm"[..]));
        for (found, expected) in [(hot, 0.2), (warm, 0.1)] {
            // Twice the error of 95 %, so that a seed that is unlucky passes, too.
            assert!((found.share - expected).abs() <= 2.0 * found.error, "{report:?}");
            assert!(found.error < 0.1, "{report:?}");
        }
        assert!(report.samples < 100_000.0, "{report:?}");
    }

    #[test]
    fn uniform_requests_have_no_hot_keys() {
        let hot_keys = HotKeys::default();
        pass(&mut hot_keys.sampler(), 20_000, numbered);
        assert_eq!(hot_keys.report(Instant::now()).keys, []);
    }

    #[test]
    fn old_keys_fade() {
        let hot_keys = HotKeys::default();
        let mut sampler = hot_keys.sampler();
        pass(&mut sampler, 40, |_| b"old".to_vec());
        let now = Instant::now();
        let later = hot_keys.report(now + 2 * HALF_LIFE + PERIOD);
        assert!(later.samples > 100.0 && later.samples < 200.0, "{later:?}");
        assert_eq!(hot_keys.report(now + Duration::from_hours(1)).keys, []);
    }

    #[test]
    fn requests_with_several_keys_count_each() {
        let hot_keys = HotKeys::default();
        let mut sampler = hot_keys.sampler();
        let keys = |at: usize, each: &mut dyn FnMut(&[u8]) -> bool| {
            // Half of the requests name one key, and half of them four.
            let names: &[&[u8]] =
                if at.is_multiple_of(2) { &[b"x"] } else { &[b"a", b"b", b"c", b"d"] };
            let _ = names.iter().all(|name| each(name));
        };
        sampler.sample(400, |_| true, keys);
        let report = hot_keys.report(Instant::now());
        assert_eq!(report.keys.len(), 5);
        assert!(report.keys.iter().all(|one| (one.share - 0.2).abs() < 0.1), "{report:?}");
    }

    #[test]
    fn the_error_holds_for_requests_with_many_keys() {
        // One request in 20 names 16 times each of two keys; the others name one key.
        let keys = |at: usize, each: &mut dyn FnMut(&[u8]) -> bool| {
            if at.is_multiple_of(20) {
                let _ = (0..32).all(|number| each(if number & 1 == 0 { b"a" } else { b"b" }));
            } else {
                each(b"x");
            }
        };
        let true_share = 160.0 / 510.0;
        let is_right = |seed: &u64| {
            let hot_keys = HotKeys::default();
            let mut sampler = hot_keys.sampler();
            sampler.random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            sampler.sample(200, |_| true, keys);
            let report = hot_keys.report(Instant::now());
            let found = report.keys.iter().find(|one| one.key.start == b"a");
            found.is_none_or(|it| (it.share - true_share).abs() <= it.error)
        };
        let right = (1..=400).filter(is_right).count();
        assert!(right >= 360, "{right} of 400 within the error");
    }

    #[test]
    fn all_keys_of_a_long_request_are_counted() {
        let hot_keys = HotKeys::default();
        let mut sampler = hot_keys.sampler();
        sampler.random = 7;
        for _ in 0..40 {
            sampler.sample(
                1,
                |_| true,
                |_, each| {
                    let _ =
                        (0..400).all(|number| each(if number < 100 { b"first" } else { b"rest" }));
                },
            );
        }
        let report = hot_keys.report(Instant::now());
        assert_eq!(report.keys[0].key.start, b"rest", "{report:?}");
        assert!((report.keys[0].share - 0.75).abs() <= 2.0 * report.keys[0].error, "{report:?}");
    }

    #[test]
    fn a_key_that_another_worker_may_have_displaced_has_a_greater_error() {
        let hot_keys = HotKeys::default();
        let (mut one, mut other) = (hot_keys.sampler(), hot_keys.sampler());
        pass(&mut one, 4, |_| b"hot".to_vec());
        assert!(hot_keys.report(Instant::now()).keys[0].error < 1e-9);
        // 128 keys, in a table of 64: each may have been there once before.
        pass(&mut other, 8, numbered);
        let report = hot_keys.report(Instant::now());
        let share = 65.0 / 192.0;
        assert!((report.keys[0].share - share).abs() < 1e-9, "{report:?}");
        assert!(report.keys[0].error >= 1.0 / 192.0, "{report:?}");
    }

    #[test]
    fn requests_that_are_not_permitted_are_not_counted() {
        let hot_keys = HotKeys::default();
        let mut sampler = hot_keys.sampler();
        sampler.sample(
            32,
            |at| at % 2 == 0,
            |at, each| {
                each(if at.is_multiple_of(2) { b"open" } else { b"hidden" });
            },
        );
        let report = hot_keys.report(Instant::now());
        assert!((report.samples - 16.0).abs() < 1e-9, "{report:?}");
        assert_eq!(report.keys.len(), 1);
        assert_eq!(report.keys[0].key.start, b"open");
    }

    #[test]
    fn the_table_is_not_awaited() {
        let hot_keys = HotKeys::default();
        let mut sampler = hot_keys.sampler();
        let table = Arc::clone(&sampler.table);
        let guard = lock(&table.weights);
        pass(&mut sampler, 10, numbered);
        assert_eq!(guard.total, 0);
    }
}
