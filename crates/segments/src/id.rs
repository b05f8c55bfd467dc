//! Identifiers of parts.

/// Identifies a part: a name of 16 bytes, which the caller chooses, and a number.
///
/// The parts of a record have one name and consecutive numbers. Names should be evenly distributed,
/// like hashes. Two objects may have the same name: lookups compare the label, which is stored with
/// the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// The name.
    pub name: [u8; 16],
    /// The number of the part under this name.
    pub number: u64,
}

impl Id {
    /// Returns the identifier of the part with a name and a number.
    #[must_use]
    pub fn new(name: [u8; 16], number: u64) -> Self {
        Self { name, number }
    }

    /// Returns the hash that the index uses.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        let name = u128::from_le_bytes(self.name);
        let low = (name as u64) ^ self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let high = ((name >> 64) as u64) ^ 0xD6E8_FEB8_6659_FD93;
        let product = u128::from(low) * u128::from(high | 1);
        (product as u64) ^ ((product >> 64) as u64)
    }
}
