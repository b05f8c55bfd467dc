//! The tables that exist, and the table of each key.
//!
//! Tables split one after the other, in the order of the hashes that they cover (linear hashing:
//! Litwin, "Linear hashing: a new tool for file and table addressing", 1980). At any time, each
//! table covers the hashes with a certain prefix. The prefixes have `bits` bits, or one bit more
//! where the table was split already. When all tables have been split, `bits` increases by one.

use crate::hash::KeyHash;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bits that select one of the initial tables.
pub(crate) const INITIAL_BITS: u32 = 4;

/// The tables that exist at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Number of bits of the prefix of a table that was not split yet.
    pub(super) bits: u32,
    /// Number of tables that were split: those with the lowest prefixes.
    pub(super) split: u32,
}

/// A table: it covers the hashes with this prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableId {
    /// Number of bits of the prefix.
    pub(super) bits: u32,
    pub(super) prefix: u32,
}

impl Level {
    pub(super) const INITIAL: Self = Self { bits: INITIAL_BITS, split: 0 };

    /// Returns the table of a key.
    #[inline]
    pub(super) fn table_of(self, hash: KeyHash) -> TableId {
        let prefix = hash.prefix(self.bits);
        let bits = self.bits + u32::from(prefix < self.split);
        TableId { bits, prefix: hash.prefix(bits) }
    }

    /// Returns the number of tables.
    pub(super) fn count(self) -> u64 {
        (1 << self.bits) + u64::from(self.split)
    }

    /// Returns the table that is split next.
    pub(super) fn next_to_split(self) -> TableId {
        TableId { bits: self.bits, prefix: self.split }
    }

    /// Returns the level after the next table was split.
    pub(super) fn after_split(self) -> Self {
        let Self { bits, split } = self;
        if split + 1 == 1 << bits {
            return Self { bits: bits + 1, split: 0 };
        }
        Self { bits, split: split + 1 }
    }
}

impl TableId {
    /// Returns the number of the table among all tables of all levels, in the order in which they
    /// come into existence.
    #[inline]
    pub(super) fn number(self) -> usize {
        (1_usize << self.bits) + self.prefix as usize
    }

    /// Returns the two tables into which this one is split.
    pub(super) fn halves(self) -> [Self; 2] {
        [0, 1].map(|bit| Self { bits: self.bits + 1, prefix: self.prefix << 1 | bit })
    }

    /// Returns the first hash after those of this table, or `None` after the last table.
    pub(super) fn hash_after(self) -> Option<KeyHash> {
        KeyHash::with_prefix(self.bits, u64::from(self.prefix) + 1)
    }
}

/// The current level.
pub(super) struct CurrentLevel(AtomicU64);

impl CurrentLevel {
    pub(super) fn new(level: Level) -> Self {
        Self(AtomicU64::new(Self::pack(level)))
    }

    fn pack(level: Level) -> u64 {
        u64::from(level.bits) << 32 | u64::from(level.split)
    }

    #[inline]
    pub(super) fn load(&self) -> Level {
        let packed = self.0.load(Ordering::Acquire);
        Level { bits: (packed >> 32) as u32, split: packed as u32 }
    }

    pub(super) fn store(&self, level: Level) {
        self.0.store(Self::pack(level), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tables that exist, in the order of their hashes.
    fn all(level: Level) -> Vec<TableId> {
        let mut tables = Vec::new();
        let mut next = Some(KeyHash(0));
        while let Some(hash) = next {
            let table = level.table_of(hash);
            let first = KeyHash::with_prefix(table.bits, u64::from(table.prefix));
            assert_eq!(first, Some(hash), "no gap and no overlap");
            tables.push(table);
            next = table.hash_after();
        }
        tables
    }

    #[test]
    fn splits_replace_one_table_by_its_halves() {
        let mut level = Level { bits: 2, split: 0 };
        let mut tables = all(level);
        assert_eq!(tables.len(), 4);
        for count in 5..=64 {
            let parent = level.next_to_split();
            let at = tables.iter().position(|table| *table == parent).expect("it exists");
            tables.splice(at..=at, parent.halves());
            level = level.after_split();
            assert_eq!(all(level), tables);
            assert_eq!(level.count(), count);
        }
        assert_eq!(level, Level { bits: 6, split: 0 });
    }

    #[test]
    fn a_level_is_stored_whole() {
        let current = CurrentLevel::new(Level::INITIAL);
        assert_eq!(current.load(), Level::INITIAL);
        let level = Level { bits: 30, split: (1 << 30) - 1 };
        current.store(level);
        assert_eq!(current.load(), level);
    }
}
