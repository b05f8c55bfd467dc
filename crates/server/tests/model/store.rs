//! The plain model: a map, a time, and the numbers that clients received.

use std::collections::{HashMap, HashSet};

/// The value of a key, and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) value: Vec<u8>,
    pub(crate) flags: u32,
    /// The time at which it expires.
    pub(crate) end_ms: Option<u64>,
    /// Distinguishes one write of the value from the next, as a number for compare-and-set does.
    pub(crate) version: u64,
}

/// What the server should hold.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) now_ms: u64,
    /// The length of the longest value.
    pub(crate) max_value_len: usize,
    entries: HashMap<Vec<u8>, Entry>,
    versions: u64,
    /// The version that each number for compare-and-set stands for, and the reverse.
    source: HashMap<u64, u64>,
    numbers: HashMap<u64, u64>,
    /// The last number that a client received for a key.
    last_received: HashMap<Vec<u8>, u64>,
    /// Keys that had expired at some time since they were written: the server may have removed
    /// them, or not.
    doubtful: HashSet<Vec<u8>>,
    /// The time at which all keys are removed.
    pub(crate) flush_at_ms: Option<u64>,
}

impl Store {
    pub(crate) fn new(now_ms: u64, max_value_len: usize) -> Self {
        Self {
            now_ms,
            max_value_len,
            entries: HashMap::new(),
            versions: 0,
            source: HashMap::new(),
            numbers: HashMap::new(),
            last_received: HashMap::new(),
            doubtful: HashSet::new(),
            flush_at_ms: None,
        }
    }

    fn is_over(&self, entry: &Entry) -> bool {
        entry.end_ms.is_some_and(|end_ms| end_ms <= self.now_ms)
    }

    /// Returns the entry of a key at the current time.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !self.is_over(entry))
    }

    /// Stores a new value. Returns its version.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8], flags: u32, end_ms: Option<u64>) -> u64 {
        self.versions += 1;
        let entry = Entry { value: value.to_vec(), flags, end_ms, version: self.versions };
        self.entries.insert(key.to_vec(), entry);
        self.doubtful.remove(key);
        self.versions
    }

    /// Replaces the value, and keeps flags and expiry time.
    pub(crate) fn alter(&mut self, key: &[u8], value: &[u8]) -> u64 {
        let (flags, end_ms) = self.get(key).map_or((0, None), |entry| (entry.flags, entry.end_ms));
        self.put(key, value, flags, end_ms)
    }

    /// Sets the expiry time of the value.
    pub(crate) fn end_at(&mut self, key: &[u8], end_ms: Option<u64>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.end_ms = end_ms;
        }
    }

    /// Removes a key for good, expired or not. Returns whether it existed.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let was_there = self.get(key).is_some();
        self.entries.remove(key);
        self.doubtful.remove(key);
        was_there
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.doubtful.clear();
    }

    /// Sets the time, in any direction.
    pub(crate) fn set_now(&mut self, now_ms: u64) {
        self.note_over();
        self.now_ms = now_ms;
        if self.flush_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.flush_at_ms = None;
            self.clear();
        }
        self.note_over();
    }

    fn note_over(&mut self) {
        let over = self.entries.iter().filter(|(_, entry)| self.is_over(entry));
        let over: Vec<_> = over.map(|(key, _)| key.clone()).collect();
        self.doubtful.extend(over);
    }

    /// Returns the keys that exist again since the time went back, if the server did not remove
    /// them.
    pub(crate) fn back_again(&self) -> Vec<Vec<u8>> {
        self.doubtful.iter().filter(|key| self.get(key).is_some()).cloned().collect()
    }

    /// Returns all existing entries.
    pub(crate) fn all(&self) -> Vec<(Vec<u8>, Entry)> {
        let there = self.entries.iter().filter(|(_, entry)| !self.is_over(entry));
        there.map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }

    /// Records that a client received this number for a version of a key's value. The number must
    /// distinguish the version from all others.
    pub(crate) fn record_number(
        &mut self,
        key: &[u8],
        version: u64,
        number: u64,
    ) -> Result<(), String> {
        let same_version = *self.source.entry(number).or_insert(version) == version;
        let same_number = *self.numbers.entry(version).or_insert(number) == number;
        self.last_received.insert(key.to_vec(), number);
        if same_version && same_number {
            return Ok(());
        }
        Err(format!("the number {number} does not distinguish this value from all others"))
    }

    /// Returns a number for compare-and-set as a client might send it: the last one that it
    /// received for a key, or one that no client received.
    pub(crate) fn cas_number(&self, key: &[u8], known: bool) -> u64 {
        let known = self.last_received.get(key).filter(|_| known);
        known.copied().unwrap_or(1 << 60)
    }

    /// Returns whether this number stands for the current value of a key.
    pub(crate) fn is_current(&self, key: &[u8], number: u64) -> bool {
        let version = self.get(key).map(|entry| entry.version);
        version.is_some() && self.source.get(&number).copied() == version
    }
}
