//! The words of the index: eight bytes that point to a part.

use crate::layout::{GRAIN, word};

/// The location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) offset: u64,
}

/// Maximum of the use count of a part.
pub(crate) const MAX_USES: u64 = (1 << word::USES_BITS) - 1;
pub(super) const TAG_MASK: u64 = (1 << word::TAG_BITS) - 1;
pub(super) const TAG_IN_WORD: u64 = TAG_MASK << word::TAG_SHIFT;
pub(super) const AWAY: u64 = 1 << word::AWAY_SHIFT;

pub(super) fn encode(tag: u64, place: Place, uses: u64) -> u64 {
    uses << word::USES_SHIFT
        | tag << word::TAG_SHIFT
        | u64::from(place.slot) << word::SLOT_SHIFT
        | place.offset / GRAIN
}

pub(super) fn place_of(found: u64) -> Place {
    let slot = (found >> word::SLOT_SHIFT) & ((1 << word::SLOT_BITS) - 1);
    let offset = (found & ((1 << word::OFFSET_BITS) - 1)) * GRAIN;
    Place { slot: slot as u32, offset }
}

pub(super) fn tag_of(found: u64) -> u64 {
    (found >> word::TAG_SHIFT) & TAG_MASK
}

pub(super) fn uses_of(found: u64) -> u64 {
    found >> word::USES_SHIFT
}

/// Returns the position of the counter for a tag in the word of counters. There are eight counters
/// of eight bits. Growth of the index does not use the bits of the tag that choose the counter.
#[inline]
pub(super) fn count_shift(tag: u64) -> u32 {
    (tag >> (word::TAG_BITS - 3) << 3) as u32
}
