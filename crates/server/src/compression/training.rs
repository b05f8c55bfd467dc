//! Trains dictionaries and removes those that no value needs, on a thread of its own.
//!
//! The cache does not report the values that it removes, so the number of values that need a
//! dictionary is an upper bound. Once no group uses it and no thread can compress with it any more,
//! all values are counted from time to time, and it is removed when there is none. With a disk
//! tier, no dictionary is removed: items on disk are not counted.

use super::Compression;
use crate::log;
use nuthatch_cache::{Cache, Item};
use nuthatch_compress::{Error, Trainer, TrainerOptions, ValueInfo};
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two steps.
const STEP_TIME: Duration = Duration::from_secs(1);

/// Time between two counts of the values that need the same old dictionaries.
const RECOUNT_MS: u64 = 300_000;

/// Items that are counted under one epoch guard.
const ITEMS_PER_GUARD: usize = 256;

/// The lowest priority of a thread.
const NICE: i32 = 19;

/// The thread that trains dictionaries.
#[derive(Debug)]
pub(crate) struct TrainingThread {
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl TrainingThread {
    /// Starts the thread, if dictionaries are to be trained. It calls `changed` whenever the
    /// dictionaries have changed: then all threads must call [`Compression::refresh`].
    ///
    /// # Errors
    ///
    /// Fails if the system cannot create a thread, or has no memory for it.
    pub(crate) fn start(
        compression: &Arc<Compression>,
        cache: &Arc<Cache>,
        changed: impl Fn() + Send + 'static,
    ) -> io::Result<Option<Self>> {
        let Some(mut training) = Training::new(compression).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let cache = Arc::clone(cache);
        let (stop, stopped) = channel();
        let thread = Builder::new().name("nuthatch-train".to_owned()).spawn(move || {
            // Without permission it has the priority of the others.
            let _ = rustix::process::setpriority_process(None, NICE);
            let start = Instant::now();
            while stopped.recv_timeout(STEP_TIME) == Err(RecvTimeoutError::Timeout) {
                let now_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                if training.step(now_ms, &cache, &stopped) {
                    changed();
                }
            }
        })?;
        Ok(Some(Self { stop, thread: Some(thread) }))
    }
}

impl Drop for TrainingThread {
    /// Stops the thread after its current step.
    fn drop(&mut self) {
        // An error means that the thread has ended.
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Training {
    compression: Arc<Compression>,
    trainer: Trainer,
    /// The number of the set of dictionaries after the last step.
    generation: u64,
    /// Bytes of memory of the dictionaries that were reported.
    reported: usize,
    /// The old dictionaries at the last count, and its time.
    counted: (Vec<NonZeroU32>, u64),
}

/// The number of values that need a dictionary, and their raw and stored bytes.
type Counts = BTreeMap<NonZeroU32, [u64; 3]>;

impl Training {
    /// Returns `None` if no dictionaries are to be trained.
    fn new(compression: &Arc<Compression>) -> Result<Option<Self>, Error> {
        let Some(sampler) = &compression.sampler else { return Ok(None) };
        let dictionaries = &compression.dictionaries;
        let trainer = Trainer::new(dictionaries, sampler, TrainerOptions::new())?;
        let (generation, reported) = (dictionaries.generation(), dictionaries.memory_bytes());
        let (compression, counted) = (Arc::clone(compression), (Vec::new(), 0));
        Ok(Some(Self { compression, trainer, generation, reported, counted }))
    }

    /// Evaluates one group at most, and counts the values of old dictionaries if that is due.
    /// Returns whether the dictionaries have changed.
    fn step(&mut self, now_ms: u64, cache: &Cache, stopped: &Receiver<()>) -> bool {
        if let Some(evaluation) = self.trainer.step(now_ms) {
            log::group_evaluated(&evaluation);
            if matches!(evaluation.error, Some(Error::NoRoom { .. } | Error::File { .. })) {
                self.compression.refused_dictionaries.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count_if_due(now_ms, cache, stopped);
        let dictionaries = &self.compression.dictionaries;
        let bytes = dictionaries.memory_bytes();
        self.compression.note_memory(bytes.cast_signed() - self.reported.cast_signed());
        self.reported = bytes;
        let generation = dictionaries.generation();
        std::mem::replace(&mut self.generation, generation) != generation
    }

    fn count_if_due(&mut self, now_ms: u64, cache: &Cache, stopped: &Receiver<()>) {
        let old = self.compression.dictionaries.unassigned();
        let (counted, at_ms) = &self.counted;
        if old.is_empty() || (old == *counted && now_ms < at_ms.saturating_add(RECOUNT_MS)) {
            return;
        }
        let Some(mut counts) = count(cache, stopped) else { return };
        for id in &old {
            let [values, raw_bytes, encoded_bytes] = counts.remove(id).unwrap_or_default();
            self.compression.dictionaries.recount(*id, values, raw_bytes, encoded_bytes);
        }
        self.counted = (old, now_ms);
    }
}

/// Counts the values that need each dictionary. Returns `None` if that is unknown: there are items
/// on disk, which are not read for it, the thread is to stop, or it has no session.
fn count(cache: &Cache, stopped: &Receiver<()>) -> Option<Counts> {
    let mut session = cache.session().ok()?;
    // A request that has compressed a value before this, with a dictionary that is old now, stores
    // it under the same guard.
    let mut guard = session.guard();
    guard.begin_exclusive();
    guard.end_exclusive();
    drop(guard);
    let (mut counts, mut cursor) = (Counts::new(), 0);
    loop {
        let guard = session.guard();
        cursor = guard.scan(cursor, ITEMS_PER_GUARD, |item| add(&mut counts, item));
        if !guard.take_on_disk().is_empty() {
            return None;
        }
        drop(guard);
        if cursor == 0 {
            return Some(counts);
        }
        if stopped.try_recv() != Err(TryRecvError::Empty) {
            return None;
        }
    }
}

fn add(counts: &mut Counts, item: &Item<'_>) {
    if !item.is_compressed() {
        return;
    }
    let Ok(ValueInfo { raw_len, dictionary: Some(id) }) = ValueInfo::read(item.value()) else {
        return;
    };
    let [values, raw_bytes, encoded_bytes] = counts.entry(id).or_default();
    *values += 1;
    *raw_bytes += raw_len;
    *encoded_bytes += item.value().len() as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::{CompressionOptions, SavedByDictionary, raw_len};
    use nuthatch_cache::{Guard, Options, Write};
    use nuthatch_compress::DictionaryStats;
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::thread;

    const MEMORY: u64 = 64 << 20;

    fn old_value(number: u64) -> String {
        let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(r#"{{"id":{number},"name":"user {word:x}","is_active":true,"plan":"free"}}"#)
    }

    fn new_value(number: u64) -> String {
        let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("<user><key>{word:x}</key><email>{number}@example.org</email><paid/></user>")
    }

    fn store(compression: &Compression, guard: &Guard<'_>, number: u64, value: &str) {
        let key = format!("user:{number}");
        let encoded = compression.encode(key.as_bytes(), value.as_bytes());
        let write = Write::new().compressed(encoded.is_compressed());
        guard.set(key.as_bytes(), encoded.bytes(), &write).map(drop).expect("room");
    }

    fn read(compression: &Compression, guard: &Guard<'_>, number: u64) -> String {
        let item = guard.get(format!("user:{number}").as_bytes()).expect("an item");
        assert!(item.is_compressed());
        read_any(compression, guard, number)
    }

    fn read_any(compression: &Compression, guard: &Guard<'_>, number: u64) -> String {
        let item = guard.get(format!("user:{number}").as_bytes()).expect("an item");
        let mut buffer = Vec::new();
        let raw = compression.raw_item(item, &mut buffer).expect("a value");
        assert_eq!(raw_len(&item), raw.value().len());
        String::from_utf8(raw.value().to_vec()).expect("text")
    }

    fn ids(stats: &[DictionaryStats]) -> Vec<u32> {
        stats.iter().map(|one| one.id.get()).collect()
    }

    /// A dictionary is adopted, replaced as data changes, kept while one value needs it, and then
    /// removed.
    #[test]
    fn old_dictionaries_are_kept_while_values_need_them() {
        const VALUES: u64 = 40_000;
        let cache = Cache::new(Options::new().memory(MEMORY)).expect("a cache");
        let compression = Compression::new(&CompressionOptions::default(), MEMORY);
        let compression = Arc::new(compression.expect("no dictionary yet"));
        let mut training = Training::new(&compression).expect("memory").expect("a sampler");
        let (_stop, stopped) = channel();
        let mut step = |now_ms| {
            let changed = training.step(now_ms, &cache, &stopped);
            compression.refresh();
            changed
        };
        let stats = || compression.dictionaries.stats();
        let mut session = cache.session().expect("a session");
        // Those that are older than the first dictionary do not count.
        for number in 100..100 + VALUES {
            store(&compression, &session.guard(), number, &old_value(number));
        }
        assert!(step(0));
        assert_eq!(ids(&stats()), [1]);
        for number in 10..20 {
            store(&compression, &session.guard(), number, &old_value(number));
        }
        for number in 100..100 + VALUES {
            store(&compression, &session.guard(), number, &new_value(number));
        }
        assert!(step(RECOUNT_MS * 20));
        assert_eq!(ids(&stats()), [1, 2]);
        // All threads use the new set now, so the values of the old dictionary are counted.
        step(RECOUNT_MS * 21);
        assert_eq!(stats()[0].values, 10);
        step(RECOUNT_MS * 22);
        for number in 10..20 {
            assert_eq!(read(&compression, &session.guard(), number), old_value(number));
        }
        for number in 11..20 {
            store(&compression, &session.guard(), number, &new_value(number));
        }
        step(RECOUNT_MS * 23);
        assert_eq!((ids(&stats()), stats()[0].values), (vec![1, 2], 1));
        assert_eq!(read(&compression, &session.guard(), 10), old_value(10));
        assert!(session.guard().remove(b"user:10"));
        step(RECOUNT_MS * 24);
        assert!(step(RECOUNT_MS * 25));
        assert_eq!(ids(&stats()), [2]);
        assert_eq!(read(&compression, &session.guard(), 19), new_value(19));
    }

    /// Values of all threads can be read at any time while dictionaries are replaced and removed.
    #[test]
    fn no_thread_loses_the_dictionary_of_a_value() {
        const WRITERS: u64 = 3;
        const STEPS: u64 = 12;
        const KEYS: u64 = 500;
        let cache = Cache::new(Options::new().memory(MEMORY)).expect("a cache");
        let compression = Compression::new(&CompressionOptions::default(), MEMORY);
        let compression = Arc::new(compression.expect("no dictionary yet"));
        let mut training = Training::new(&compression).expect("memory").expect("a sampler");
        let (_stop, stopped) = channel();
        let (is_done, steps) = (AtomicBool::new(false), AtomicU64::new(0));
        let removed = thread::scope(|scope| {
            for writer in 1..=WRITERS {
                let (cache, compression) = (&cache, &compression);
                let (is_done, steps) = (&is_done, &steps);
                scope.spawn(move || {
                    let mut session = cache.session().expect("a session");
                    let mut values = HashMap::new();
                    let mut number = writer << 32;
                    while !is_done.load(Ordering::Relaxed) {
                        number += 1;
                        // The kind of values changes after some steps.
                        let is_old = (steps.load(Ordering::Relaxed) / 3).is_multiple_of(2);
                        let value = if is_old { old_value(number) } else { new_value(number) };
                        let key = writer << 32 | number % KEYS;
                        let guard = session.guard();
                        store(compression, &guard, key, &value);
                        values.insert(key, value);
                        let key = writer << 32 | (number * 7) % KEYS;
                        if let Some(value) = values.get(&key) {
                            assert_eq!(&read_any(compression, &guard, key), value);
                        }
                        drop(guard);
                        compression.refresh();
                    }
                });
            }
            let mut ids_before = Vec::new();
            let mut removed = 0;
            for step in 0..STEPS {
                // Enough samples for a decision about each kind.
                let counted = |all: &[SavedByDictionary]| -> u64 {
                    all.iter().map(|one| one.saved.values).sum::<u64>()
                        + compression.incompressible().values
                };
                let before = counted(&compression.saved());
                while counted(&compression.saved()) < before + 30_000 {
                    thread::yield_now();
                }
                // All threads use the last set, so old dictionaries are counted; the groups are not
                // due yet.
                training.step(step * RECOUNT_MS * 20, &cache, &stopped);
                training.step((step + 1) * RECOUNT_MS * 20, &cache, &stopped);
                steps.store(step, Ordering::Relaxed);
                let ids_now = ids(&compression.dictionaries.stats());
                removed += ids_before.iter().filter(|id| !ids_now.contains(id)).count();
                ids_before = ids_now;
            }
            is_done.store(true, Ordering::Relaxed);
            removed
        });
        assert!(removed > 0, "dictionaries are removed meanwhile");
    }
}
