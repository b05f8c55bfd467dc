//! A slot of the index: one word that points to an item.
//!
//! | bits | contents |
//! |---|---|
//! | 0 to 39 | address of the item in the arena; 0 in an empty slot |
//! | 40 to 59 | tag: bits of the key's hash |
//! | 60 and 61 | frequency: recent reads of the item, up to 3 |
//! | 62 | overflow, in the first slot of a line: the next line contains items of this one |

use crate::hash::TAG_BITS;

const ADDRESS_BITS: u32 = 40;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
const TAG: u64 = ((1 << TAG_BITS) - 1) << ADDRESS_BITS;
const FREQUENCY_SHIFT: u32 = ADDRESS_BITS + TAG_BITS;
const FREQUENCY: u64 = 3 << FREQUENCY_SHIFT;
const OVERFLOW: u64 = 1 << (FREQUENCY_SHIFT + 2);

const _: () = assert!(ADDRESS & TAG == 0 && TAG & FREQUENCY == 0 && FREQUENCY & OVERFLOW == 0);

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

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 & ADDRESS == 0
    }

    #[inline]
    pub(crate) fn address(self) -> u64 {
        self.0 & ADDRESS
    }

    #[inline]
    pub(crate) fn tag(self) -> u32 {
        ((self.0 & TAG) >> ADDRESS_BITS) as u32
    }

    /// Returns whether the slot has this tag. An empty slot may have any tag.
    #[inline]
    pub(crate) fn has_tag(self, tag: u32) -> bool {
        (self.0 ^ u64::from(tag) << ADDRESS_BITS) & TAG == 0
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
