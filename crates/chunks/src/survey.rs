//! All of a cache: what is in it, whether it is whole, and taking much of it away. Others go on
//! reading and writing meanwhile.

use crate::chunks::Chunks;
use crate::error::Result;
use crate::key::Key;
use nuthatch_segments::{Stat, Verified};
use std::collections::{BTreeMap, BTreeSet};

/// An object of which chunks are there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Its key.
    pub key: Key,
    /// How many of its chunks are there.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first of them expires, in milliseconds since 1970; zero if none does.
    pub expiry: u64,
    /// Whether it is pinned.
    pub pinned: bool,
}

impl Chunks {
    /// How things stand.
    pub fn stat(&self) -> Stat {
        self.segments.stat()
    }

    /// The objects of which chunks are there, in the order of their keys.
    pub fn list(&self) -> Vec<Object> {
        let pinned = self.segments.pinned();
        let mut objects: BTreeMap<Key, (BTreeMap<u64, u64>, u64)> = BTreeMap::new();
        self.segments.list(|listed| {
            let (chunks, expiry) = objects.entry(Key::found(&listed.label)).or_default();
            // A chunk that was moved meanwhile may be seen twice.
            chunks.extend(listed.parts);
            if listed.expiry != 0 && (*expiry == 0 || listed.expiry < *expiry) {
                *expiry = listed.expiry;
            }
        });
        let object = |(key, (chunks, expiry)): (Key, (BTreeMap<u64, u64>, u64))| Object {
            chunks: chunks.len() as u64,
            bytes: chunks.values().sum(),
            expiry,
            pinned: pinned.contains(&key.name),
            key,
        };
        objects.into_iter().map(object).collect()
    }

    /// Looks at every byte. What is damaged is missing afterwards.
    pub fn verify(&self) -> Verified {
        self.segments.verify()
    }

    /// Evicts what has expired, then what is worth least until no more than so many bytes are used.
    /// Answers how many are.
    pub fn prune(&self, to: Option<u64>) -> Result<u64> {
        Ok(self.segments.prune(to)?)
    }

    /// Evicts everything but what is pinned and what other processes are writing to. Answers how
    /// many bytes are still used.
    pub fn clear(&self) -> Result<u64> {
        Ok(self.segments.clear()?)
    }

    /// Removes the chunks of an object; others with the same address and another validator stay.
    /// Answers how many there were.
    pub fn remove(&self, key: &Key) -> u64 {
        let mut numbers = BTreeSet::new();
        self.segments.list(|listed| {
            if *listed.label == *key.label {
                numbers.extend(listed.parts.iter().map(|(number, _)| *number));
            }
        });
        for &number in &numbers {
            self.segments.remove(&key.id(number));
        }
        numbers.len() as u64
    }

    /// Has the chunks of an object stay when others are evicted, those that come later too, or no
    /// longer.
    pub fn pin(&self, key: &Key, pinned: bool) -> Result<()> {
        Ok(self.segments.pin(key.name, pinned)?)
    }

    /// Changes the limit for all processes.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        Ok(self.segments.set_limit(bytes)?)
    }
}
