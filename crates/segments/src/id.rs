//! What parts are found by.

/// The name of a part: 16 bytes that its user makes up, and a number below that name.
///
/// Parts that are written together have one name and numbers that follow one another. Names should
/// be spread evenly, as hashes are. That two things never have the same name is not needed for
/// right answers: the label that is kept with the bytes decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// The name.
    pub name: [u8; 16],
    /// The number below it.
    pub number: u64,
}

impl Id {
    /// The part of a name with a number.
    #[must_use]
    pub fn new(name: [u8; 16], number: u64) -> Self {
        Self { name, number }
    }

    /// The hash that the index goes by.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        let whole = u128::from_le_bytes(self.name);
        let low = (whole as u64) ^ self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let high = ((whole >> 64) as u64) ^ 0xD6E8_FEB8_6659_FD93;
        let product = u128::from(low) * u128::from(high | 1);
        (product as u64) ^ ((product >> 64) as u64)
    }
}
