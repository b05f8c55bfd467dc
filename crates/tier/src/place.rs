//! Places of records.

use crate::layout::{BLOCK, UNIT, UNIT_BITS};

/// The place of a record: the slot of its item file, its offset, and the blocks that it occupies.
///
/// A slot is a small number that identifies an item file while the tier is open. It is used for
/// another file after the first one was removed. So a place that is kept longer than its file may
/// lead to another record, and a reader compares the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The slot of the item file.
    pub slot: u32,
    /// The offset of the record in its file, in units of 16 bytes.
    pub unit: u32,
    /// The number of blocks of 4 KiB from the one in which the record begins to the one in which it
    /// ends; 0 if it is unknown.
    pub blocks: u32,
}

impl Place {
    /// Bits of the offset in a packed place. The slot is in the bits above.
    pub const UNIT_BITS: u32 = UNIT_BITS;

    /// Returns slot and offset as one number: 36 bits for 1 TiB of item files of 64 MiB.
    #[must_use]
    pub fn pack(self) -> u64 {
        u64::from(self.slot) << UNIT_BITS | u64::from(self.unit)
    }

    /// Returns the place of a packed number and a number of blocks, which is not in the packed
    /// number.
    #[must_use]
    pub fn unpack(packed: u64, blocks: u32) -> Self {
        let unit = (packed & ((1 << UNIT_BITS) - 1)) as u32;
        Self { slot: (packed >> UNIT_BITS) as u32, unit, blocks }
    }

    /// Returns the place of `len` bytes at an offset.
    pub(crate) fn of_bytes(slot: u32, offset: u64, len: u64) -> Self {
        let block = BLOCK as u64;
        let blocks = (offset + len).div_ceil(block) - offset / block;
        Self { slot, unit: (offset / UNIT as u64) as u32, blocks: blocks as u32 }
    }

    /// Returns the number of the block of the file in which the record begins.
    #[must_use]
    pub fn first_block(self) -> u64 {
        self.offset() / BLOCK as u64
    }

    /// Returns the offset in bytes.
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.unit) * UNIT as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_place_is_unpacked_and_fits_36_bits_for_1_tib() {
        let place = Place { slot: 16_383, unit: (1 << UNIT_BITS) - 1, blocks: 3 };
        assert_eq!(Place::unpack(place.pack(), 3), place);
        assert_eq!(place.pack(), (1 << 36) - 1);
    }

    #[test]
    fn blocks_are_those_from_the_first_to_the_last_byte() {
        for (offset, len, blocks) in [(0, 1, 1), (0, 4096, 1), (4080, 16, 1), (4080, 32, 2)] {
            assert_eq!(Place::of_bytes(0, offset, len).blocks, blocks, "{len} bytes at {offset}");
        }
    }
}
