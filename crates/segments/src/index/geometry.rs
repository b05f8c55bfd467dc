//! The size of an index, and the fields of its header that never change.

use crate::layout::{index as at, slot};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the header that never change.
pub(super) const FIXED_LEN: usize = at::CHECK + 8;
/// Parts for which a set is made, of the 15 that it has room for.
const PARTS_OF_SET: u64 = 8;
/// The share of the limit that the sets may take when they grow: one in so many.
pub(crate) const GROWN_SHARE: u64 = 4;

/// How big an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) slots: u32,
    /// The sets that it was made with, as a power of two.
    pub(crate) base: u32,
    /// How often it was doubled since.
    pub(crate) grown: u32,
}

impl Geometry {
    /// What suits a limit, with room for so many parts; zero if the limit decides.
    pub(crate) fn suit(limit: u64, segment_len: u64, parts: u64) -> Self {
        let parts = if parts == 0 { limit >> 14 } else { parts }.max(1024);
        // Sets are about half full then, and grow when there are more.
        let sets = parts.div_ceil(PARTS_OF_SET).next_power_of_two().min(at::SETS_MOST);
        let segments = (limit / segment_len.max(1) * 4).clamp(256, u64::from(at::SLOTS_MOST));
        let slots = segments.next_multiple_of(64) as u32;
        Self { slots, base: sets.trailing_zeros(), grown: 0 }
    }

    /// Twice as many sets. `None` if that is more than there may be, under a limit.
    pub(crate) fn doubled(self, limit: u64) -> Option<Self> {
        let next = Self { grown: self.grown + 1, ..self };
        let fits = next.grown <= at::GROWN_MOST
            && next.sets() <= at::SETS_MOST
            && next.file_len() <= limit / GROWN_SHARE;
        fits.then_some(next)
    }

    /// For how many parts an index of this size is made.
    pub(crate) fn parts(self) -> u64 {
        self.sets() * PARTS_OF_SET
    }

    pub(crate) fn sets(self) -> u64 {
        1 << (self.base + self.grown)
    }

    /// How many words it has for parts.
    pub(crate) fn words(self) -> u64 {
        self.sets() * at::WAYS as u64
    }

    pub(super) fn sets_from(self) -> usize {
        // Sets lie in pairs of cache lines.
        (at::HEADER_LEN + self.slots as usize * slot::LEN).next_multiple_of(at::SET_LEN)
    }

    pub(crate) fn file_len(self) -> u64 {
        self.sets_from() as u64 + self.sets() * at::SET_LEN as u64
    }

    pub(super) fn encode(self, family: u64) -> [u8; FIXED_LEN] {
        let mut bytes = [0; FIXED_LEN];
        let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
        put(at::MAGIC_AT, at::MAGIC);
        put(at::VERSION, &at::VERSION_NOW.to_le_bytes());
        put(at::SLOTS, &self.slots.to_le_bytes());
        put(at::SETS, &(1_u64 << self.base).to_le_bytes());
        put(at::GROWN, &u64::from(self.grown).to_le_bytes());
        put(at::FAMILY, &family.to_le_bytes());
        let check = xxh3_64(&bytes[..at::CHECK]);
        bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes the header of a file: the geometry and the family. `None` if it is no index, or
    /// damaged, or of an older version; `Err` has the number of a newer version.
    pub(super) fn decode(bytes: &[u8; FIXED_LEN]) -> Option<std::result::Result<(Self, u64), u32>> {
        let four = |at: usize| bytes[at..at + 4].try_into().ok().map(u32::from_le_bytes);
        let eight = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        if bytes[..at::VERSION] != *at::MAGIC || eight(at::CHECK)? != xxh3_64(&bytes[..at::CHECK]) {
            return None;
        }
        let version = four(at::VERSION)?;
        if version != at::VERSION_NOW {
            return (version > at::VERSION_NOW).then_some(Err(version));
        }
        let (slots, sets) = (four(at::SLOTS)?, eight(at::SETS)?);
        let grown = four(at::GROWN)?;
        let sound = (1..=at::SLOTS_MOST).contains(&slots)
            && sets.is_power_of_two()
            && (2..=at::SETS_MOST).contains(&sets)
            && grown <= at::GROWN_MOST
            && sets << grown <= at::SETS_MOST;
        let geometry = Self { slots, base: sets.trailing_zeros(), grown };
        sound.then_some(Ok((geometry, eight(at::FAMILY)?)))
    }
}
