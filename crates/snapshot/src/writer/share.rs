//! Which values are stored once and referred to: found by hash, confirmed byte by byte later.

use super::row::{self, Payload, Row};
use super::spill::SpillFile;
use crate::error::Result;
use crate::parallel;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

/// Shorter values are stored with each entry: a reference takes six bytes and costs the reader a
/// cache miss.
pub(crate) const SHARE_MIN: u64 = 32;

const SHARDS: usize = 64;
const PAIR_LEN: usize = 16;

/// The bits of a value's hash that count: all of them, but in tests, whose values collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashBits(pub(crate) u64);

impl HashBits {
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Hash of the value of a row that may be shared; `None` for a value too short for it.
    fn of(self, row: &Row<'_>) -> Option<u64> {
        if row.value_len < SHARE_MIN {
            return None;
        }
        let hash = match row.payload {
            Payload::Bytes(bytes) => row::value_hash(row.value_type, bytes),
            Payload::Blob(blob) => blob.hash,
        };
        Some(hash & self.0)
    }
}

/// The value hash and key hash of every row that may share, in memory up to a budget.
pub(crate) struct Candidates<'a> {
    shards: Vec<Mutex<Shard>>,
    bits: HashBits,
    /// Pairs that a shard keeps in memory.
    room: usize,
    directory: &'a Path,
    spill: OnceLock<SpillFile>,
}

#[derive(Default)]
struct Shard {
    pairs: Vec<(u64, u64)>,
    /// Where spilled pairs lie, and how many.
    spilled: Vec<(u64, usize)>,
}

impl Shard {
    fn len(&mut self) -> usize {
        self.pairs.len() + self.spilled.iter().map(|(_, count)| count).sum::<usize>()
    }

    /// All pairs, those in the file included.
    fn read(mut self, spill: Option<&SpillFile>) -> Result<Vec<(u64, u64)>> {
        let room = self.len() - self.pairs.len();
        self.pairs.reserve_exact(room);
        let mut bytes = Vec::new();
        for (offset, count) in self.spilled {
            bytes.resize(count * PAIR_LEN, 0);
            spill.map_or(Ok(()), |file| file.read_at(&mut bytes, offset))?;
            self.pairs.extend(
                bytes
                    .as_chunks::<8>()
                    .0
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|[value, key]| (u64::from_le_bytes(*value), u64::from_le_bytes(*key))),
            );
        }
        Ok(self.pairs)
    }
}

/// How often a value occurs, its hash, and the least hash of its keys.
type Frequent = (Reverse<usize>, (u64, u64));

/// The values that occur most often, as many as there is room for.
struct MostFrequent {
    values: Vec<Frequent>,
    room: usize,
}

impl MostFrequent {
    fn add(&mut self, value: Frequent) {
        self.values.push(value);
        if self.values.len() >= 2 * self.room {
            self.drop_rare();
        }
    }

    fn drop_rare(&mut self) {
        if self.values.len() > self.room {
            self.values.select_nth_unstable(self.room);
            self.values.truncate(self.room);
        }
    }

    fn take(mut self) -> Vec<Frequent> {
        self.drop_rare();
        self.values
    }
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(directory: &'a Path, budget: usize, bits: HashBits) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let room = (budget / SHARDS / PAIR_LEN).max(256);
        Self { shards, bits, room, directory, spill: OnceLock::new() }
    }

    pub(crate) fn add<'r>(&self, rows: impl Iterator<Item = Row<'r>>) -> Result<()> {
        let mut by_shard: Vec<Vec<(u64, u64)>> = vec![Vec::new(); SHARDS];
        for row in rows {
            if let Some(hash) = self.bits.of(&row) {
                by_shard[hash as usize % SHARDS].push((hash, row.hash.0));
            }
        }
        for (shard, pairs) in self.shards.iter().zip(by_shard) {
            if pairs.is_empty() {
                continue;
            }
            let mut shard = shard.lock().expect("no panic while a shard is held");
            shard.pairs.extend_from_slice(&pairs);
            if shard.pairs.len() > self.room {
                self.spill(&mut shard)?;
            }
        }
        Ok(())
    }

    fn spill(&self, shard: &mut Shard) -> Result<()> {
        let file = if let Some(file) = self.spill.get() {
            file
        } else {
            let file = SpillFile::create(self.directory)?;
            self.spill.get_or_init(|| file)
        };
        let bytes: Vec<u8> = shard
            .pairs
            .iter()
            .flat_map(|(value, key)| [value.to_le_bytes(), key.to_le_bytes()])
            .flatten()
            .collect();
        shard.spilled.push((file.append(&bytes)?, shard.pairs.len()));
        shard.pairs.clear();
        Ok(())
    }

    /// The values that occur more than once: at most as many as fit the budget, those that occur
    /// most often. A function of the entries and the budget alone.
    pub(crate) fn shared(mut self, threads: usize, budget: usize) -> Result<Shared> {
        let spill = self.spill.into_inner();
        let longest = self.shards.iter_mut().map(|shard| shard.get_mut().map_or(0, Shard::len));
        let shard_bytes = longest.max().unwrap_or(0) * PAIR_LEN;
        let threads = threads.min(budget / shard_bytes.max(1)).max(1);
        let most = Mutex::new(MostFrequent { values: Vec::new(), room: (budget / 64).max(1) });
        parallel::map(threads, self.shards, |shard| {
            let shard = shard.into_inner().expect("no panic while a shard is held");
            let mut pairs = shard.read(spill.as_ref())?;
            pairs.sort_unstable();
            let runs = pairs.chunk_by(|a, b| a.0 == b.0).filter(|run| run.len() > 1);
            let mut most = most.lock().expect("no panic while values are added");
            runs.for_each(|run| most.add((Reverse(run.len()), run[0])));
            Ok(())
        })?;
        let mut values = most.into_inner().expect("no panic while values are added").take();
        values.sort_unstable();
        let numbers = values.iter().enumerate().map(|(i, (_, pair))| (pair.0, i as u32)).collect();
        let sources = values.into_iter().map(|(_, pair)| pair.1).collect();
        Ok(Shared { bits: self.bits, numbers, sources })
    }
}

/// The values to be stored once.
pub(crate) struct Shared {
    bits: HashBits,
    numbers: HashMap<u64, u32, BuildHasherDefault<AlreadyHashed>>,
    /// The hash of the key with which each value is stored: the least, so the first in the file.
    sources: Vec<u64>,
}

/// How a row takes part in sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It stores its own value, which nobody else has.
    Alone,
    /// It stores the value with this number, and others refer to it.
    Source(u32),
    /// It refers to the value with this number.
    Reference(u32),
}

impl Shared {
    pub(crate) fn len(&self) -> usize {
        self.sources.len()
    }

    pub(crate) fn role(&self, row: &Row<'_>) -> Role {
        if self.sources.is_empty() {
            return Role::Alone;
        }
        match self.bits.of(row).and_then(|hash| self.numbers.get(&hash)) {
            Some(&number) if self.sources[number as usize] == row.hash.0 => Role::Source(number),
            Some(&number) => Role::Reference(number),
            None => Role::Alone,
        }
    }
}

/// Value hashes need no hashing again.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys of this map are u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
