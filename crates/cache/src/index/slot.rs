//! One slot of the index: a word that tells where an item lies.
//!
//! | bits | what |
//! |---|---|
//! | 0 to 39 | where the item lies, in bytes from the start of the arena; 0 in an empty slot |
//! | 40 to 59 | tag: bits of the key's hash |
//! | 60 and 61 | how often the item was asked for lately, up to 3 |
//! | 62 | in a line's first slot: items of the line lie in the next one |

use crate::hash::TAG_BITS;

const PLACE_BITS: u32 = 40;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
const TAG: u64 = ((1 << TAG_BITS) - 1) << PLACE_BITS;
const FREQUENCY_SHIFT: u32 = PLACE_BITS + TAG_BITS;
const FREQUENCY: u64 = 3 << FREQUENCY_SHIFT;
const OVERFLOW: u64 = 1 << (FREQUENCY_SHIFT + 2);

const _: () = assert!(PLACE & TAG == 0 && TAG & FREQUENCY == 0 && FREQUENCY & OVERFLOW == 0);

/// The greatest frequency.
pub(crate) const FREQUENT: u32 = 3;

/// A slot's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    /// A slot of an item that nobody has asked for yet.
    #[inline]
    pub(crate) fn new(place: u64, tag: u32) -> Self {
        debug_assert!(place != 0 && place <= PLACE);
        Self(place | u64::from(tag) << PLACE_BITS)
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 & PLACE == 0
    }

    #[inline]
    pub(crate) fn place(self) -> u64 {
        self.0 & PLACE
    }

    #[inline]
    pub(crate) fn tag(self) -> u32 {
        ((self.0 & TAG) >> PLACE_BITS) as u32
    }

    /// Whether the tag is this one. An empty slot may have any.
    #[inline]
    pub(crate) fn has_tag(self, tag: u32) -> bool {
        (self.0 ^ u64::from(tag) << PLACE_BITS) & TAG == 0
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

    /// This item in the place of another slot, whose line keeps what it knows.
    #[inline]
    pub(crate) fn in_place_of(self, other: Self) -> Self {
        self.with_overflow(other.overflows())
    }

    /// Nothing in the place of this slot.
    #[inline]
    pub(crate) fn vacated(self) -> Self {
        Self(self.0 & OVERFLOW)
    }
}
