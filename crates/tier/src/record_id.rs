//! Identifiers of records.

use crate::layout::UNIT_BITS;

/// Identifies a record as long as its item file exists, also after the tier was opened again.
///
/// Ids increase in the order in which records are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId {
    /// The number of the item file.
    pub file: u64,
    /// The offset of the record in its file, in units of 16 bytes.
    pub unit: u32,
}

impl RecordId {
    /// Returns file and unit as one number. The file is in the bits above
    /// [`Place::UNIT_BITS`](crate::Place::UNIT_BITS). All numbers of item files fit: at most 34
    /// bits, so the result has at most 56.
    #[must_use]
    pub fn pack(self) -> u64 {
        self.file << UNIT_BITS | u64::from(self.unit)
    }

    /// Returns the id of a packed number.
    #[must_use]
    pub fn unpack(packed: u64) -> Self {
        Self { file: packed >> UNIT_BITS, unit: (packed & ((1 << UNIT_BITS) - 1)) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MAX_NUMBER;

    #[test]
    fn a_packed_id_is_unpacked_and_keeps_the_order() {
        let mut last = None;
        for file in [1, 2, MAX_NUMBER] {
            for unit in [0, 260, (1 << UNIT_BITS) - 1] {
                let id = RecordId { file, unit };
                assert_eq!(RecordId::unpack(id.pack()), id);
                assert!(last < Some(id.pack()) && id.pack() < 1 << 56);
                last = Some(id.pack());
            }
        }
    }
}
