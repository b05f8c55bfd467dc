//! Cursors over the keys of snapshots, for `SCAN`.
//!
//! A cursor has bit 52 set, which no cursor of the cache has, and is below 2^53, as those are. It
//! contains the number of the snapshot, bits that identify the seed of its key hash, and the first
//! hash that was not examined. So it stays valid when a new generation replaces the snapshot: the
//! keys of both have the same hashes. If the new one has another seed, the scan of this snapshot
//! begins again, and returns keys twice instead of leaving some out.

use super::read::is_list;
use super::routes::{MAX_SNAPSHOTS, Snapshots};
use nuthatch_snapshot::Snapshot;

/// Marks a cursor of snapshots.
const MARK: u64 = 1 << 52;
const NUMBER_BITS: u32 = 6;
/// Two different seeds have the same bits with a chance of one in a million.
const SEED_BITS: u32 = 20;
/// Bits of a hash.
const HASH_BITS: u32 = 52 - NUMBER_BITS - SEED_BITS;
/// The number of hash positions, and the one after the last.
const POSITIONS: u64 = 1 << HASH_BITS;

const _: () = assert!(MAX_SNAPSHOTS == 1 << NUMBER_BITS, "a cursor has the number of a snapshot");

/// Entries of each shard that a step examines at least, since it reads an index line of each.
const MIN_ENTRIES_PER_SHARD: u64 = 4;

/// Maximum number of entries that the choice of a random key examines.
const MAX_RANDOM_ENTRIES: usize = 4096;

/// Mixes the bits of a seed. An odd number close to the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns whether this is a cursor of snapshots.
pub(crate) fn is_snapshot_cursor(cursor: u64) -> bool {
    (MARK..2 * MARK).contains(&cursor)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    number: usize,
    seed: u64,
    /// The first position that was not examined.
    position: u64,
}

impl Cursor {
    fn decode(cursor: u64) -> Self {
        let number = (cursor >> (HASH_BITS + SEED_BITS)) as usize % MAX_SNAPSHOTS;
        let seed = cursor >> HASH_BITS & ((1 << SEED_BITS) - 1);
        Self { number, seed, position: cursor & (POSITIONS - 1) }
    }

    fn encode(self) -> u64 {
        let Self { number, seed, position } = self;
        MARK | (number as u64) << (HASH_BITS + SEED_BITS) | seed << HASH_BITS | position
    }
}

fn seed_bits(snapshot: &Snapshot) -> u64 {
    snapshot.hash_seed().wrapping_mul(SPREAD) >> (64 - SEED_BITS)
}

impl Snapshots {
    /// Returns the cursor at which the scan of all snapshots begins.
    pub(crate) fn first_cursor(&self) -> u64 {
        if self.served.is_empty() { 0 } else { MARK }
    }

    /// Calls `each` with the next keys of one snapshot, about `count` of them, and whether each is
    /// a list. Returns the cursor to continue with, and how many entries were examined. The scan is
    /// complete when the cursor is 0.
    ///
    /// Keys that exist in all generations of a scan are found at least once. Damaged records are
    /// left out, counted and logged.
    pub(crate) fn scan(
        &self,
        cursor: u64,
        count: usize,
        mut each: impl FnMut(&[u8], bool),
    ) -> (u64, usize) {
        let Cursor { number, seed, mut position } = Cursor::decode(cursor);
        let Some(served) = self.served.get(number) else { return (0, 0) };
        let mut key = served.source.prefix.clone();
        let mut examined = 0;
        let (seed, end) = self.with_thread(|thread| {
            let (reader, counts) = &thread.readers[number];
            let snapshot = reader.last();
            let current = seed_bits(snapshot);
            if seed != current {
                position = 0;
            }
            let end = end_of_step(snapshot, position, count);
            let shift = 64 - HASH_BITS;
            let last = if end == POSITIONS { u64::MAX } else { (end << shift) - 1 };
            snapshot.each_in_hashes(position << shift..=last, |entry| {
                examined += 1;
                match entry {
                    Ok(entry) => {
                        key.truncate(served.source.prefix.len());
                        key.extend_from_slice(entry.key);
                        if self.is_of(number, &key) {
                            each(&key, is_list(entry.value.value_type()));
                        }
                    }
                    Err(error) => self.note_damage(number, counts, &error),
                }
            });
            (current, end)
        });
        let next = match end {
            POSITIONS if number + 1 == self.served.len() => return (0, examined),
            POSITIONS => Cursor { number: number + 1, seed: 0, position: 0 },
            position => Cursor { number, seed, position },
        };
        (next.encode(), examined)
    }

    /// Returns whether a key belongs to the snapshot with this number, and not to one with a longer
    /// prefix.
    fn is_of(&self, number: usize, key: &[u8]) -> bool {
        !self.has_nested || self.key(key).is_some_and(|found| found.number == number)
    }

    /// Returns a random key, chosen by `random`; `None` if there are none, or if none was found
    /// among [`MAX_RANDOM_ENTRIES`] entries, because longer prefixes hide them.
    pub(crate) fn random_key(&self, random: u64) -> Option<Vec<u8>> {
        let entries = |number| self.with_last(number, |snapshot: &Snapshot| snapshot.len());
        let all = (0..self.served.len()).map(entries).sum::<u64>();
        let mut left = random.checked_rem(all)?;
        let number = (0..self.served.len()).find(|number| {
            let entries = entries(*number);
            let is_here = left < entries;
            left = left.saturating_sub(entries);
            is_here
        })?;
        let seed = self.with_last(number, seed_bits);
        let start = Cursor { number, seed, position: random % POSITIONS };
        let (mut cursor, mut found) = (start.encode(), None);
        let mut examined = 0;
        // From a random position to the end, then from the start.
        for _ in 0..2 {
            while found.is_none() && is_snapshot_cursor(cursor) {
                if Cursor::decode(cursor).number != number || examined > MAX_RANDOM_ENTRIES {
                    break;
                }
                // Each step has twice as many entries, so that few steps examine all.
                let step = self.scan(cursor, examined.max(1), |key, _| found = Some(key.to_vec()));
                (cursor, examined) = (step.0, examined + step.1.max(1));
            }
            cursor = Cursor { number, seed, position: 0 }.encode();
        }
        found
    }
}

/// Returns the position after a step of about `count` entries.
fn end_of_step(snapshot: &Snapshot, position: u64, count: usize) -> u64 {
    let stats = snapshot.stats();
    let min = u64::from(stats.shards) * MIN_ENTRIES_PER_SHARD;
    let wanted = u128::from((count as u64).max(min).max(1)) * u128::from(POSITIONS);
    let width = wanted / u128::from(stats.entries.max(1));
    let width = u64::try_from(width).unwrap_or(POSITIONS).clamp(1, POSITIONS);
    position.saturating_add(width).min(POSITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_floating_point_numbers_without_loss() {
        for (number, seed, position) in
            [(0, 0, 0), (63, (1 << SEED_BITS) - 1, POSITIONS - 1), (5, 77, 12345)]
        {
            let cursor = Cursor { number, seed, position };
            let encoded = cursor.encode();
            assert_eq!(Cursor::decode(encoded), cursor);
            assert!(is_snapshot_cursor(encoded) && encoded < 1 << 53);
        }
        assert!(!is_snapshot_cursor(0) && !is_snapshot_cursor((1 << 50) - 1));
    }
}
