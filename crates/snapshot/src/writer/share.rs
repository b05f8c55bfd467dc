//! Finds shared values: values of at least [`MIN_SHARED_VALUE_LEN`] bytes that several entries
//! have. Such a value is stored once, and the other entries refer to it.
//!
//! The result depends on the entries only; the memory budget decides which pairs are spilled:
//! 1. [`Candidates`] collects the value hash and the key hash of every entry with a long value.
//! 2. The pairs are sorted by value hash, so that equal values are neighbours. The entry with the
//!    lowest key hash stores the value, and the others refer to it ([`Role`]).
//! 3. The roles are sorted by key hash, to be read beside the rows of each part of the file.
//!
//! Values with equal hashes are compared when they are written.

use super::pairs::{Merge, PAIR_LEN, Pair, Run};
use super::row::{self, MIN_SHARED_VALUE_LEN, Payload, Row, RowRef};
use super::spill::SpillFile;
use crate::error::Result;
use crate::parallel;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Number of shards of the candidates, by value hash. Each has a lock.
const SHARDS: usize = 64;

/// A mask of the bits of a value hash that are used: all bits, except in tests of collisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashBits(pub(crate) u64);

impl HashBits {
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Returns the hash of a row's value, or `None` if the value is too short to be shared.
    fn of(self, row: &Row<'_>) -> Option<u64> {
        if row.value_len < MIN_SHARED_VALUE_LEN {
            return None;
        }
        let hash = match row.payload {
            Payload::Bytes(bytes) => row::value_hash(row.value_type, bytes),
            Payload::Blob(blob) => blob.hash,
        };
        Some(hash & self.0)
    }
}

/// Returns the rows, of rows sorted by key hash, whose values can be shared. Rows with equal key
/// hashes are excluded, because roles are found by key hash; they store their own values.
pub(crate) fn sharing_rows(refs: &[RowRef]) -> impl Iterator<Item = &RowRef> {
    let same = move |one: Option<&RowRef>, row: &RowRef| one.is_some_and(|o| o.hash == row.hash);
    refs.iter().enumerate().filter_map(move |(i, row)| {
        let is_unique = !same(refs.get(i.wrapping_sub(1)), row) && !same(refs.get(i + 1), row);
        (row.may_share() && is_unique).then_some(row)
    })
}

/// A spill file that is created when it is first used.
struct LazySpillFile<'a> {
    folder: &'a Path,
    file: OnceLock<SpillFile>,
}

impl<'a> LazySpillFile<'a> {
    fn new(folder: &'a Path) -> Self {
        Self { folder, file: OnceLock::new() }
    }

    fn get(&self) -> Result<&SpillFile> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = SpillFile::create(self.folder)?;
        Ok(self.file.get_or_init(|| file))
    }
}

/// The value hash and the key hash of every row whose value can be shared. Pairs beyond the memory
/// budget are spilled.
pub(crate) struct Candidates<'a> {
    shards: Vec<Mutex<Shard>>,
    bits: HashBits,
    /// Maximum number of pairs in memory.
    max_in_memory: usize,
    /// Number of pairs in memory.
    in_memory: AtomicUsize,
    spill: LazySpillFile<'a>,
}

/// The pairs of one shard.
#[derive(Default)]
struct Shard {
    /// Pairs in memory, unsorted.
    pairs: Vec<Pair>,
    /// Sorted runs in the file.
    spilled: Vec<Run>,
}

impl<'a> Candidates<'a> {
    /// Returns no candidates yet, with a memory budget in bytes and a folder for temporary files.
    pub(crate) fn new(folder: &'a Path, budget: usize, bits: HashBits) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let (max_in_memory, in_memory) = (budget / PAIR_LEN, AtomicUsize::new(0));
        Self { shards, bits, max_in_memory, in_memory, spill: LazySpillFile::new(folder) }
    }

    /// Adds the rows whose values are long enough.
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
            // Spilling a shard with less than its share of the memory would free little.
            if all > self.max_in_memory
                && shard.pairs.len() >= (self.max_in_memory / SHARDS).max(256)
            {
                let mut pairs = std::mem::take(&mut shard.pairs);
                self.in_memory.fetch_sub(pairs.len(), Ordering::Relaxed);
                pairs.sort_unstable();
                shard.spilled.push(Run::spill(&pairs, self.spill.get()?)?);
            }
        }
        Ok(())
    }

    /// Finds the values that occur more than once. Uses about `budget` bytes of memory.
    pub(crate) fn shared(self, threads: usize, budget: usize) -> Result<Shared> {
        let Self { shards, spill, .. } = self;
        let roles = Roles {
            runs: Mutex::default(),
            in_memory: AtomicUsize::new(0),
            budget,
            values: AtomicU64::new(0),
            spill: LazySpillFile::new(spill.folder),
        };
        let budget_per_thread = budget / threads;
        parallel::map(threads, shards, |shard| {
            let Shard { mut pairs, spilled } =
                shard.into_inner().unwrap_or_else(PoisonError::into_inner);
            pairs.sort_unstable();
            let max_found = budget_per_thread / PAIR_LEN;
            let mut finder =
                RoleFinder { roles: &roles, found: Vec::new(), max_found, value: None };
            if spilled.is_empty() {
                pairs.into_iter().try_for_each(|pair| finder.visit(pair))?;
            } else {
                let runs = spilled.into_iter().chain([Run::Memory(pairs)]).collect();
                Merge::new(runs, spill.file.get(), budget_per_thread)?
                    .for_each(|pair| finder.visit(pair))?;
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

/// The roles that all threads have found. Those beyond the memory budget are spilled.
struct Roles<'a> {
    runs: Mutex<Vec<Run>>,
    /// Number of bytes of runs in memory.
    in_memory: AtomicUsize,
    /// Maximum number of bytes of runs in memory.
    budget: usize,
    /// Number of shared values.
    values: AtomicU64,
    spill: LazySpillFile<'a>,
}

/// Finds repeated values in sorted pairs of value hash and key hash, on one thread.
struct RoleFinder<'a, 'b> {
    roles: &'a Roles<'b>,
    /// Pairs of key hash and role.
    found: Vec<Pair>,
    /// Number of pairs in `found` at which they become a run.
    max_found: usize,
    /// The first pair of the current value hash, and the number of the value if it is repeated.
    value: Option<(Pair, Option<u64>)>,
}

impl RoleFinder<'_, '_> {
    /// Processes the next pair.
    fn visit(&mut self, pair: Pair) -> Result<()> {
        match &mut self.value {
            Some((first, number)) if first.0 == pair.0 => {
                let new = || self.roles.values.fetch_add(1, Ordering::Relaxed);
                if number.is_none() {
                    self.found.push((first.1, Role::Source(*number.insert(new())).to_number()));
                }
                let role = number.map_or(Role::Unshared, Role::Reference);
                self.found.push((pair.1, role.to_number()));
                if self.found.len() >= self.max_found.max(256) { self.flush() } else { Ok(()) }
            }
            value => {
                *value = Some((pair, None));
                Ok(())
            }
        }
    }

    /// Adds the pairs that are found so far to the roles, as a sorted run.
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

/// The part of a row in sharing its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The row stores its own value, and no other row refers to it.
    Unshared,
    /// The row stores the shared value with this number, and other rows refer to it.
    Source(u64),
    /// The row refers to the shared value with this number.
    Reference(u64),
}

impl Role {
    fn to_number(self) -> u64 {
        match self {
            Self::Unshared => 0,
            Self::Source(value) => value << 2 | 1,
            Self::Reference(value) => value << 2 | 2,
        }
    }

    fn from_number(number: u64) -> Self {
        match number & 3 {
            1 => Self::Source(number >> 2),
            2 => Self::Reference(number >> 2),
            _ => Self::Unshared,
        }
    }
}

/// The roles of all rows whose values are shared.
pub(crate) struct Shared {
    /// Number of shared values.
    values: u64,
    /// Pairs of key hash and role.
    runs: Vec<Run>,
    spill: Option<SpillFile>,
}

impl Shared {
    /// Returns the number of shared values.
    pub(crate) fn len(&self) -> u64 {
        self.values
    }

    /// Sets `out` to the roles of these rows, which must be sorted by key hash. Leaves `out` empty
    /// if no row shares its value.
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
            role.map_or(Role::Unshared, |(_, role)| Role::from_number(role))
        }));
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
