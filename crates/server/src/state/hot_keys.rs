//! Hot keys: which keys requests name most often, from a sample.
//!
//! Each worker has a [`Sampler`] and a table of 64 keys, kept by the algorithm Space-Saving
//! (Metwally, Agrawal, El Abbadi 2005): a key that is not in the full table takes the place of the
//! one with the least weight, with that weight as its error. Weights are halved every ten seconds,
//! so the table has the keys of about the last 15 seconds.
//!
//! A batch of requests costs one comparison and one subtraction, unless it has a sampled request.
//! How many requests the sampler skips follows their rate: it takes about 1,000 samples a second at
//! most, and all requests if there are few. Each sample has the weight of the requests that it
//! stands for. The worker never waits for a reader of the table: it leaves samples out meanwhile.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keys of a table.
const TABLE_LEN: usize = 64;

/// Maximum bytes of a key that a table keeps. Longer keys are told apart by their hash.
const MAX_KEPT_LEN: usize = 256;

/// Maximum keys of a request from which one is chosen.
const MAX_KEYS: usize = 64;

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

    /// Counts the keys of some of this many requests. `keys` calls its second argument with each
    /// key of the request whose position is the first one, until it returns false.
    #[cold]
    pub(crate) fn sample(
        &mut self,
        requests: usize,
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
            if let Some(weights) = &mut weights {
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
            count < MAX_KEYS
        });
        if count == 0 {
            return;
        }
        let chosen = (self.next_random() % count as u64) as usize;
        let (weight, mut at) = (self.interval * count as u64, 0);
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
    samples: f64,
    decayed: Option<Instant>,
}

#[derive(Clone, Debug)]
struct WeightedKey {
    hash: u64,
    weight: u64,
    /// The part of the weight that may belong to other keys.
    error: u64,
    /// The first bytes of the key.
    key: Vec<u8>,
}

impl Weights {
    fn add(&mut self, hash: u64, key: &[u8], weight: u64) {
        self.total += weight;
        self.samples += 1.0;
        let kept = &key[..key.len().min(MAX_KEPT_LEN)];
        if let Some(found) = self.keys.iter_mut().find(|one| one.hash == hash) {
            found.weight += weight;
        } else if self.keys.len() < TABLE_LEN {
            self.keys.reserve_exact(TABLE_LEN - self.keys.len());
            let mut text = Vec::with_capacity(MAX_KEPT_LEN);
            text.extend_from_slice(kept);
            self.keys.push(WeightedKey { hash, weight, error: 0, key: text });
        } else if let Some(least) = self.keys.iter_mut().min_by_key(|one| one.weight) {
            (least.hash, least.error) = (hash, least.weight);
            least.weight += weight;
            least.key.clear();
            least.key.extend_from_slice(kept);
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
        for one in &mut self.keys {
            one.weight >>= halvings;
            one.error >>= halvings;
        }
        self.keys.retain(|one| one.weight > 0);
        self.total >>= halvings;
        self.samples /= f64::from(2_u32.saturating_pow(halvings));
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
    /// Its first bytes.
    pub(crate) key: Vec<u8>,
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
        let (mut all, mut total, mut samples) = (HashMap::<u64, WeightedKey>::new(), 0, 0.0);
        for table in lock(&self.tables).iter() {
            let mut weights = lock(&table.weights);
            weights.decay(now);
            (total, samples) = (total + weights.total, samples + weights.samples);
            for one in &weights.keys {
                let sum = all.entry(one.hash);
                let sum = sum.or_insert_with(|| WeightedKey { weight: 0, error: 0, ..one.clone() });
                sum.weight += one.weight;
                sum.error += one.error;
            }
        }
        let mut keys: Vec<_> = all.into_values().collect();
        keys.sort_by(|one, other| other.weight.cmp(&one.weight).then(one.key.cmp(&other.key)));
        let part = |weight: u64| weight as f64 / (total as f64).max(1.0);
        let min_part = MIN_REPORTED_SAMPLES / samples.max(MIN_REPORTED_SAMPLES);
        let keys = keys.into_iter().filter_map(|one| {
            let half_error = part(one.error) / 2.0;
            let share = part(one.weight) - half_error;
            let error = half_error + 2.0 * (share * (1.0 - share) / samples).max(0.0).sqrt();
            let is_certain = share - half_error >= min_part && share > error;
            is_certain.then_some(HotKey { key: one.key, share, error })
        });
        HotKeyReport { keys: keys.collect(), samples }
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
                sampler.sample(16, |at, each| {
                    each(&key(16 * batch + at as u64));
                });
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
        assert_eq!((&hot.key[..], &warm.key[..]), (&b"hot"[..], &b"warm"[..]));
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
        sampler.sample(400, |at, each| {
            // Half of the requests name one key, and half of them four.
            let names: &[&[u8]] = if at % 2 == 0 { &[b"x"] } else { &[b"a", b"b", b"c", b"d"] };
            let _ = names.iter().all(|name| each(name));
        });
        let report = hot_keys.report(Instant::now());
        assert_eq!(report.keys.len(), 5);
        assert!(report.keys.iter().all(|one| (one.share - 0.2).abs() < 0.1), "{report:?}");
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
