//! A slot of the index: one word that points to an item in memory, or to the record of an item on
//! disk.
//!
//! | bits | item in memory | item on disk |
//! |---|---|---|
//! | 0 to 35 | address of the item in the arena; 0 in an empty slot | place of the record |
//! | 36 to 39 | address | tag: its extra bits |
//! | 40 to 59 | tag: bits of the key's hash | tag |
//! | 60 and 61 | frequency: recent reads of the item, up to 3 | frequency |
//! | 62 | overflow, in the first slot of a line: the next line has items of this one | the same |
//! | 63 | 0 | 1 |
//!
//! A slot of an item on disk has four more bits of the hash, since its key cannot be compared
//! without a read. When a table is split, each slot needs the bit of the hash after its tag. For an
//! item in memory, the key is read. For an item on disk, the tag is shifted, so it loses one bit
//! with each split. The last known bit is followed by a bit that is 1, and by zeros.

use crate::hash::{LONG_TAG_BITS, TAG_BITS};

const ADDRESS_BITS: u32 = 40;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
const TAG: u64 = ((1 << TAG_BITS) - 1) << ADDRESS_BITS;
const FREQUENCY_SHIFT: u32 = ADDRESS_BITS + TAG_BITS;
const FREQUENCY: u64 = 3 << FREQUENCY_SHIFT;
const OVERFLOW: u64 = 1 << (FREQUENCY_SHIFT + 2);
const ON_DISK: u64 = 1 << (FREQUENCY_SHIFT + 3);

const _: () = assert!(ADDRESS & TAG == 0 && TAG & FREQUENCY == 0 && FREQUENCY & OVERFLOW == 0);

/// Bits of the place of a record.
pub(crate) const PLACE_BITS: u32 = ADDRESS_BITS + TAG_BITS - LONG_TAG_BITS;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
const LONG_TAG: u64 = ((1 << LONG_TAG_BITS) - 1) << PLACE_BITS;

/// Bits of a long tag after those of a tag.
const EXTRA_BITS: u32 = LONG_TAG_BITS - TAG_BITS;

/// Number of bits of a tag that determine the home line. A slot knows at least these.
pub(crate) const HOME_BITS: u32 = 12;

/// Maximum frequency.
pub(crate) const MAX_FREQUENCY: u32 = 3;

/// The word of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    /// Returns the slot of an item that was not read yet.
    #[inline]
    pub(crate) fn new(address: u64, tag: u32) -> Self {
        debug_assert!(address != 0 && address <= ADDRESS);
        Self(address | u64::from(tag) << ADDRESS_BITS)
    }

    /// Returns the slot of an item on disk. The last bit of the long tag is not kept.
    pub(crate) fn on_disk(place: u64, long_tag: u32) -> Self {
        debug_assert!(place != 0 && place <= PLACE);
        Self(ON_DISK | place | u64::from(long_tag | 1) << PLACE_BITS)
    }

    /// Returns whether the item is on disk.
    #[inline]
    pub(crate) fn is_on_disk(self) -> bool {
        self.0 & ON_DISK != 0
    }

    /// Returns the place of the record of an item on disk.
    pub(crate) fn place(self) -> u64 {
        self.0 & PLACE
    }

    /// Returns the bits of the hash that the slot contains, as a long tag that is 0 where they are
    /// unknown.
    pub(crate) fn known_bits(self) -> u32 {
        let bits = ((self.0 & LONG_TAG) >> PLACE_BITS) as u32;
        if self.is_on_disk() { bits & bits.wrapping_sub(1) } else { self.tag() << EXTRA_BITS }
    }

    /// Returns whether this is the slot of an item on disk whose known bits are those of a long
    /// tag. The item probably has the key then.
    #[inline]
    pub(crate) fn may_have_long_tag(self, long_tag: u32) -> bool {
        let known = ((self.0 & LONG_TAG) >> PLACE_BITS) as u32;
        // The lowest 1 follows the known bits.
        let unknown = known ^ known.wrapping_sub(1);
        self.is_on_disk() && (known ^ long_tag) & !unknown == 0
    }

    /// Returns the slot of an item on disk after its table was split, and the half in which it is.
    /// The slot is `None` if too few bits would be known.
    pub(crate) fn after_split(self) -> (usize, Option<Self>) {
        let known = (self.0 & LONG_TAG) >> PLACE_BITS;
        let half = (known >> (LONG_TAG_BITS - 1)) as usize & 1;
        let shifted = known << 1 & (LONG_TAG >> PLACE_BITS);
        let has_enough = shifted.trailing_zeros() < LONG_TAG_BITS - HOME_BITS;
        let slot = Self(self.0 & !(LONG_TAG | OVERFLOW) | shifted << PLACE_BITS);
        (half, has_enough.then_some(slot))
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 & ADDRESS == 0
    }

    /// Returns the address of an item in memory.
    #[inline]
    pub(crate) fn address(self) -> u64 {
        debug_assert!(!self.is_on_disk());
        self.0 & ADDRESS
    }

    #[inline]
    pub(crate) fn tag(self) -> u32 {
        ((self.0 & TAG) >> ADDRESS_BITS) as u32
    }

    /// Returns a value and a mask: [`has_tag`](Self::has_tag) is true for the slots whose upper
    /// half, masked, is the value.
    #[inline]
    pub(crate) fn upper_half_of(tag: u32) -> (u32, u32) {
        const { assert!(ADDRESS_BITS >= 32) };
        (tag << (ADDRESS_BITS - 32), ((TAG | ON_DISK) >> 32) as u32)
    }

    /// Returns whether this is the slot of an item in memory with this tag. An empty slot may have
    /// any tag.
    #[inline]
    pub(crate) fn has_tag(self, tag: u32) -> bool {
        (self.0 ^ u64::from(tag) << ADDRESS_BITS) & (TAG | ON_DISK) == 0
    }

    /// Returns whether this slot points to the same item as another one, which is that of an item
    /// in memory.
    #[inline]
    pub(crate) fn has_item_of(self, other: Self) -> bool {
        (self.0 ^ other.0) & (ADDRESS | TAG | ON_DISK) == 0
    }

    #[inline]
    pub(crate) fn frequency(self) -> u32 {
        (self.0 >> FREQUENCY_SHIFT) as u32 & 3
    }

    #[inline]
    pub(crate) fn with_frequency(self, frequency: u32) -> Self {
        Self(self.0 & !FREQUENCY | u64::from(frequency) << FREQUENCY_SHIFT)
    }

    #[inline]
    pub(crate) fn overflows(self) -> bool {
        self.0 & OVERFLOW != 0
    }

    #[inline]
    pub(crate) fn with_overflow(self, overflows: bool) -> Self {
        Self(if overflows { self.0 | OVERFLOW } else { self.0 & !OVERFLOW })
    }

    /// Returns this slot with the overflow bit of the slot that it replaces, as the bit belongs to
    /// the line.
    #[inline]
    pub(crate) fn in_place_of(self, other: Self) -> Self {
        self.with_overflow(other.overflows())
    }

    /// Returns an empty slot with the overflow bit of this one.
    #[inline]
    pub(crate) fn vacated(self) -> Self {
        Self(self.0 & OVERFLOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::KeyHash;

    #[test]
    fn an_item_on_disk_keeps_the_bits_that_follow_the_prefix() {
        let hash = KeyHash(0xb5ad_4ece_da1c_e2a9);
        let mut slot = Slot::on_disk((1 << PLACE_BITS) - 1, hash.long_tag(4)).with_frequency(2);
        for bits in 4..15 {
            assert_eq!((slot.place(), slot.frequency()), ((1 << PLACE_BITS) - 1, 2));
            assert!(slot.is_on_disk() && !slot.is_empty() && !slot.has_tag(hash.tag(bits)));
            assert!(slot.may_have_long_tag(hash.long_tag(bits)), "{bits} bits");
            for known in 0..27 - bits {
                let other = hash.long_tag(bits) ^ 1 << (LONG_TAG_BITS - 1 - known);
                assert!(!slot.may_have_long_tag(other), "bit {known} of {bits}");
            }
            let (half, halved) = slot.after_split();
            assert_eq!(half as u32, hash.prefix(bits + 1) & 1);
            slot = halved.expect("enough bits");
        }
        assert_eq!(slot.after_split().1, None, "the home line would be unknown");
    }

    #[test]
    fn an_item_in_memory_is_not_on_disk() {
        let hash = KeyHash(0xb5ad_4ece_da1c_e2a9);
        let slot = Slot::new(ADDRESS, hash.tag(4));
        assert!(slot.has_tag(hash.tag(4)) && !slot.may_have_long_tag(hash.long_tag(4)));
        assert!(!Slot(0).may_have_long_tag(0));
    }
}
