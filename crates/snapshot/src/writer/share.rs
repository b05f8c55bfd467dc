//! Finds the values that are stored once and referred to: those of at least [`SHARE_MIN`] bytes
//! that more than one entry has.
//!
//! Which they are depends on the entries alone. Memory only decides what waits in files:
//! 1. [`Candidates`] collects the value hash and key hash of every entry with a long value.
//! 2. Sorted by value hash, equal values lie together. The entry with the least key hash stores the
//!    value, and the others refer to it ([`Role`]).
//! 3. Sorted by key hash, the roles are read beside the rows of each part of the file.
//!
//! That values with one hash are equal is checked when they are written.

use super::pairs::{Merge, PAIR_LEN, Pair, Run};
use super::row::{self, Payload, Row, RowRef};
use super::spill::SpillFile;
use crate::error::Result;
use crate::parallel;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Shorter values are stored with each entry: a reference takes six bytes and costs the reader a
/// cache miss.
pub(crate) const SHARE_MIN: u64 = 32;

const SHARDS: usize = 64;

/// The bits of a value's hash that count: all of them, except in tests, whose values collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashBits(pub(crate) u64);

impl HashBits {
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Returns the hash of a row's value; `None` for a value that is too short to be shared.
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

/// Returns the rows that take part in sharing, of rows sorted by key hash. A row whose key hash
/// another row has stores its own value: roles are found by key hash.
pub(crate) fn sharing_rows(refs: &[RowRef]) -> impl Iterator<Item = &RowRef> {
    let same = move |one: Option<&RowRef>, row: &RowRef| one.is_some_and(|o| o.hash == row.hash);
    refs.iter().enumerate().filter_map(move |(i, row)| {
        let is_unique = !same(refs.get(i.wrapping_sub(1)), row) && !same(refs.get(i + 1), row);
        (row.may_share() && is_unique).then_some(row)
    })
}

/// A file that is created when it is first needed.
struct LazyFile<'a> {
    directory: &'a Path,
    file: OnceLock<SpillFile>,
}

impl<'a> LazyFile<'a> {
    fn new(directory: &'a Path) -> Self {
        Self { directory, file: OnceLock::new() }
    }

    fn get(&self) -> Result<&SpillFile> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = SpillFile::create(self.directory)?;
        Ok(self.file.get_or_init(|| file))
    }
}

/// The value hash and key hash of every row that may be shared, in memory up to a budget.
pub(crate) struct Candidates<'a> {
    shards: Vec<Mutex<Shard>>,
    bits: HashBits,
    /// Pairs that all shards together keep in memory.
    room: usize,
    in_memory: AtomicUsize,
    spill: LazyFile<'a>,
}

/// The pairs of some value hashes.
#[derive(Default)]
struct Shard {
    pairs: Vec<Pair>,
    spilled: Vec<Run>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(directory: &'a Path, budget: usize, bits: HashBits) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let (room, in_memory) = (budget / PAIR_LEN, AtomicUsize::new(0));
        Self { shards, bits, room, in_memory, spill: LazyFile::new(directory) }
    }

    pub(crate) fn add<'r>(&self, rows: impl Iterator<Item = Row<'r>>) -> Result<()> {
        let mut by_shard: Vec<Vec<Pair>> = vec![Vec::new(); SHARDS];
        for row in rows {
            if let Some(hash) = self.bits.of(&row) {
                by_shard[hash as usize % SHARDS].push((hash, row.hash.0));
            }
        }
        for (shard, pairs) in self.shards.iter().zip(by_shard) {
            if pairs.is_empty() {
                continue;
            }
            let mut shard = lock(shard);
            shard.pairs.extend_from_slice(&pairs);
            let all = self.in_memory.fetch_add(pairs.len(), Ordering::Relaxed) + pairs.len();
            // A shard with less than its part of the room makes way for nothing much.
            if all > self.room && shard.pairs.len() >= (self.room / SHARDS).max(256) {
                let mut pairs = std::mem::take(&mut shard.pairs);
                self.in_memory.fetch_sub(pairs.len(), Ordering::Relaxed);
                pairs.sort_unstable();
                shard.spilled.push(Run::spill(&pairs, self.spill.get()?)?);
            }
        }
        Ok(())
    }

    /// Finds the values that occur more than once, with about `budget` bytes of memory.
    pub(crate) fn shared(self, threads: usize, budget: usize) -> Result<Shared> {
        let Self { shards, spill, .. } = self;
        let roles = Roles {
            runs: Mutex::default(),
            in_memory: AtomicUsize::new(0),
            budget,
            values: AtomicU64::new(0),
            spill: LazyFile::new(spill.directory),
        };
        let each = budget / threads;
        parallel::map(threads, shards, |shard| {
            let Shard { mut pairs, spilled } =
                shard.into_inner().unwrap_or_else(PoisonError::into_inner);
            pairs.sort_unstable();
            let mut finder =
                Finder { roles: &roles, found: Vec::new(), room: each / PAIR_LEN, value: None };
            if spilled.is_empty() {
                pairs.into_iter().try_for_each(|pair| finder.visit(pair))?;
            } else {
                let runs = spilled.into_iter().chain([Run::Memory(pairs)]).collect();
                Merge::new(runs, spill.file.get(), each)?.for_each(|pair| finder.visit(pair))?;
            }
            finder.flush()
        })?;
        Ok(Shared {
            values: roles.values.into_inner(),
            runs: roles.runs.into_inner().unwrap_or_else(PoisonError::into_inner),
            spill: roles.spill.file.into_inner(),
        })
    }
}

/// Roles found so far, in memory up to a budget.
struct Roles<'a> {
    runs: Mutex<Vec<Run>>,
    in_memory: AtomicUsize,
    budget: usize,
    values: AtomicU64,
    spill: LazyFile<'a>,
}

/// Finds repeated values in pairs that come sorted.
struct Finder<'a, 'b> {
    roles: &'a Roles<'b>,
    /// Key hashes and roles.
    found: Vec<Pair>,
    /// Number of pairs to find before they are put away.
    room: usize,
    /// The first pair of the latest value hash, and the number of the value if it is repeated.
    value: Option<(Pair, Option<u64>)>,
}

impl Finder<'_, '_> {
    fn visit(&mut self, pair: Pair) -> Result<()> {
        match &mut self.value {
            Some((first, number)) if first.0 == pair.0 => {
                let new = || self.roles.values.fetch_add(1, Ordering::Relaxed);
                if number.is_none() {
                    self.found.push((first.1, Role::Source(*number.insert(new())).to_number()));
                }
                let role = number.map_or(Role::Alone, Role::Reference);
                self.found.push((pair.1, role.to_number()));
                if self.found.len() >= self.room.max(256) { self.flush() } else { Ok(()) }
            }
            value => {
                *value = Some((pair, None));
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        let mut found = std::mem::take(&mut self.found);
        if found.is_empty() {
            return Ok(());
        }
        found.sort_unstable();
        let bytes = found.len() * PAIR_LEN;
        let in_memory = self.roles.in_memory.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let run = if in_memory <= self.roles.budget {
            found.shrink_to_fit();
            Run::Memory(found)
        } else {
            self.roles.in_memory.fetch_sub(bytes, Ordering::Relaxed);
            Run::spill(&found, self.roles.spill.get()?)?
        };
        lock(&self.roles.runs).push(run);
        Ok(())
    }
}

/// How a row takes part in sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The row stores its own value, which no other row refers to.
    Alone,
    /// The row stores the value with this number, and others refer to it.
    Source(u64),
    /// The row refers to the value with this number.
    Reference(u64),
}

impl Role {
    fn to_number(self) -> u64 {
        match self {
            Self::Alone => 0,
            Self::Source(value) => value << 2 | 1,
            Self::Reference(value) => value << 2 | 2,
        }
    }

    fn from_number(number: u64) -> Self {
        match number & 3 {
            1 => Self::Source(number >> 2),
            2 => Self::Reference(number >> 2),
            _ => Self::Alone,
        }
    }
}

/// The values that are stored once.
pub(crate) struct Shared {
    values: u64,
    /// Roles by key hash.
    runs: Vec<Run>,
    spill: Option<SpillFile>,
}

impl Shared {
    /// Returns the number of values that are stored once.
    pub(crate) fn len(&self) -> u64 {
        self.values
    }

    /// Makes `out` the roles of these rows, which are sorted by key hash; empty if no value is
    /// shared.
    pub(crate) fn roles(&self, rows: &[RowRef], out: &mut Vec<Role>) -> Result<()> {
        out.clear();
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let mut found = Vec::new();
        for run in &self.runs {
            run.read_range((first.hash, last.hash), self.spill.as_ref(), &mut found)?;
        }
        if found.is_empty() {
            return Ok(());
        }
        found.sort_unstable();
        let mut found = found.into_iter().peekable();
        out.extend(rows.iter().map(|row| {
            let role = found.next_if(|(hash, _)| *hash == row.hash);
            role.map_or(Role::Alone, |(_, role)| Role::from_number(role))
        }));
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
