//! Entries of a removal log: eight bytes each.
//!
//! The last byte has the kind and the check. It is never zero, so an entry whose write was not
//! completed differs from a complete one. The check depends on the id, in a way that a flipped bit
//! always changes it, and on all entries before it. So damage is also found by the entries after
//! it, each of which has a chance of 31 in 32.

use crate::layout::removal::{ALL_BEFORE, CHECK_BITS, HASH_BITS, ID_BITS, OTHER, RECORD};
use crate::layout::{MAX_NUMBER, PARTITION_BITS, UNIT_BITS};

/// The first id above all ids.
pub(crate) const MAX_BOUND: u64 = (MAX_NUMBER + 1) << UNIT_BITS;

/// The upper bits of the id of an entry for a changed key.
const CHANGED: u64 = 0b11 << HASH_BITS;

/// Bits of a shortened hash that are of the partition.
const SHORTENED_PARTITION_BITS: u32 = PARTITION_BITS - (u64::BITS - HASH_BITS);

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The record with this id.
    Record(u64),
    /// All records with lower ids.
    AllBefore(u64),
    /// All records with lower ids are complete: later entries remove those that are out of date.
    /// After a crash, records with higher ids are not recovered.
    Committed(u64),
    /// All committed records of the key with this shortened hash are removed.
    Changed(u64),
}

/// Returns the part of a hash that an entry contains: the bits that do not depend on the partition
/// of the key, which the next process may not know.
pub(crate) fn shortened(hash: u64) -> u64 {
    without_partition(hash >> (u64::BITS - HASH_BITS))
}

/// Returns the part of a shortened hash that is compared. Earlier versions stored more bits.
pub(crate) fn without_partition(shortened: u64) -> u64 {
    shortened >> SHORTENED_PARTITION_BITS << SHORTENED_PARTITION_BITS
}

impl Removal {
    /// Returns the first id above all ids that the entry removes, if all records below `committed`
    /// are committed.
    pub(crate) fn bound(self, committed: u64) -> u64 {
        match self {
            Self::Record(id) => id + 1,
            Self::AllBefore(bound) => bound,
            Self::Committed(_) => 0,
            Self::Changed(_) => committed,
        }
    }

    fn is_valid(self) -> bool {
        match self {
            Self::Record(id) => id < MAX_BOUND,
            Self::AllBefore(bound) | Self::Committed(bound) => bound <= MAX_BOUND,
            Self::Changed(_) => true,
        }
    }
}

/// Summarizes the entries before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain(u64);

impl Chain {
    /// Begins a chain with the salt of the log.
    pub(crate) fn new(salt: u64) -> Self {
        Self(salt)
    }

    /// Returns a stored chain.
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Returns the chain as a number.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// Encodes the next entry.
    pub(crate) fn encode(&mut self, removal: Removal) -> u64 {
        let (kind, id) = match removal {
            Removal::Record(id) => (RECORD, id),
            Removal::AllBefore(bound) => (ALL_BEFORE, bound),
            Removal::Committed(bound) => (OTHER, bound),
            Removal::Changed(hash) => (OTHER, CHANGED | hash),
        };
        let check = self.check(id);
        self.add(kind, id);
        kind << (ID_BITS + CHECK_BITS) | check << ID_BITS | id
    }

    /// Decodes the next entry. Returns `None`, and leaves the chain as it is, if it is damaged.
    pub(crate) fn decode(&mut self, word: u64) -> Option<Removal> {
        let (kind, id) = (word >> (ID_BITS + CHECK_BITS), word & ((1 << ID_BITS) - 1));
        let removal = match kind {
            RECORD => Removal::Record(id),
            ALL_BEFORE => Removal::AllBefore(id),
            OTHER if id & CHANGED == CHANGED => Removal::Changed(id & !CHANGED),
            OTHER => Removal::Committed(id),
            _ => return None,
        };
        let is_valid = word >> ID_BITS & ((1 << CHECK_BITS) - 1) == self.check(id);
        if !is_valid || !removal.is_valid() {
            return None;
        }
        self.add(kind, id);
        Some(removal)
    }

    /// Returns the check of an entry. Each bit of the id is a part of one bit of the check.
    fn check(self, id: u64) -> u64 {
        let pieces = (0..ID_BITS).step_by(CHECK_BITS as usize);
        let folded = pieces.fold(0, |folded, shift| folded ^ id >> shift);
        (folded ^ self.0 >> (u64::BITS - CHECK_BITS)) & ((1 << CHECK_BITS) - 1)
    }

    fn add(&mut self, kind: u64, id: u64) {
        // An odd factor: different entries lead to different chains. The golden ratio spreads the
        // bits, as in Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4).
        let product = (self.0 ^ kind << ID_BITS ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }
}

/// Returns whether the write of an entry was not completed.
pub(crate) fn is_incomplete(word: u64) -> bool {
    word >> ID_BITS == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_ID: u64 = MAX_BOUND - 1;

    fn removals() -> Vec<Removal> {
        let ids = [1, 260, (1 << 22) + 260, (77 << 22) + 1234, MAX_ID, MAX_ID - 1];
        let records = ids.into_iter().map(Removal::Record);
        let others = [
            Removal::AllBefore(78 << 22),
            Removal::Committed(78 << 22),
            Removal::Committed(MAX_BOUND),
            Removal::Changed(0),
            Removal::Changed(shortened(u64::MAX)),
            Removal::Record(5),
        ];
        records.chain(others).collect()
    }

    #[test]
    fn entries_are_decoded_as_they_were_encoded() {
        let (mut encoder, mut decoder) = (Chain::new(9), Chain::new(9));
        for removal in removals() {
            let word = encoder.encode(removal);
            assert!(!is_incomplete(word));
            assert_eq!(decoder.decode(word), Some(removal));
        }
        assert_eq!(encoder, decoder);
    }

    /// The numbers come from another implementation of `docs/formats/tier.md`.
    #[test]
    fn entries_are_encoded_as_on_the_page() {
        let mut chain = Chain::new(0x0123_4567_89AB_CDEF);
        let removals = [
            Removal::Record((1 << 22) + 260),
            Removal::Record((1 << 22) + 269),
            Removal::AllBefore(2 << 22),
        ];
        let expected = [0x6800_0000_0040_0104, 0x7A00_0000_0040_010D, 0xB500_0000_0080_0000];
        assert_eq!(removals.map(|removal| chain.encode(removal)), expected);
        assert_eq!(chain.word(), 0xC4B3_FE3C_6469_E112);
    }

    #[test]
    fn any_flipped_bit_is_found_and_no_entry_becomes_an_incomplete_one() {
        for salt in 0..40 {
            let mut chain = Chain::new(salt);
            for removal in removals() {
                let before = chain;
                let word = chain.encode(removal);
                for bit in 0..u64::BITS {
                    let flipped = word ^ 1 << bit;
                    assert!(!is_incomplete(flipped), "bit {bit}");
                    assert_eq!(before.clone().decode(flipped), None, "bit {bit} of {removal:?}");
                }
            }
        }
    }

    #[test]
    fn other_entries_before_an_entry_change_its_check() {
        let mut found = 0;
        for id in 0..1000 {
            let (mut written, mut damaged) = (Chain::new(3), Chain::new(3));
            written.encode(Removal::Record(id));
            damaged.encode(Removal::Record(id + 1));
            let later: Vec<_> = (0..4).map(|id| written.encode(Removal::Record(id))).collect();
            let is_found = later.iter().any(|word| damaged.decode(*word).is_none());
            found += u32::from(is_found);
        }
        assert!(found > 995, "{found} of 1000");
    }
}
