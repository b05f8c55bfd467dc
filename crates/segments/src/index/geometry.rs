//! The size of an index, and the fields of its header that never change.

use crate::checksum::checksum;
use crate::layout::{index as at, slot};

/// Length of the fields of the header that never change.
pub(super) const FIXED_LEN: usize = at::CHECK + 8;
/// Parts per set for which an index is created, of the 15 that fit.
const PARTS_PER_SET: u64 = 8;
/// The sets may take one of this many bytes of the limit when the index grows.
pub(crate) const MAX_SETS_RATIO: u64 = 4;

/// The size of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) slots: u32,
    /// The binary logarithm of the number of sets at creation.
    pub(crate) base_bits: u32,
    /// Number of times the sets were doubled since then.
    pub(crate) grown: u32,
}

impl Geometry {
    /// Returns the geometry for a limit, with a capacity in parts; zero to derive the capacity from
    /// the limit.
    pub(crate) fn for_limit(limit: u64, segment_len: u64, parts: u64) -> Self {
        let parts = if parts == 0 { limit >> 14 } else { parts }.max(1024);
        // Sets are then about half full. The index grows when there are more parts.
        let sets = parts.div_ceil(PARTS_PER_SET).next_power_of_two().min(at::MAX_SETS);
        let segments = (limit / segment_len.max(1) * 4).clamp(256, u64::from(at::MAX_SLOTS));
        let slots = segments.next_multiple_of(64) as u32;
        Self { slots, base_bits: sets.trailing_zeros(), grown: 0 }
    }

    /// Returns the geometry with twice as many sets. `None` if that exceeds the maximum, or the
    /// ratio of the limit.
    pub(crate) fn doubled(self, limit: u64) -> Option<Self> {
        let next = Self { grown: self.grown + 1, ..self };
        let is_allowed = next.grown <= at::MAX_GROWN
            && next.sets() <= at::MAX_SETS
            && next.file_len() <= limit / MAX_SETS_RATIO;
        is_allowed.then_some(next)
    }

    /// Returns the number of parts for which an index of this size is created.
    pub(crate) fn parts(self) -> u64 {
        self.sets() * PARTS_PER_SET
    }

    pub(crate) fn sets(self) -> u64 {
        1 << (self.base_bits + self.grown)
    }

    /// Returns the number of words that can point to parts.
    pub(crate) fn words(self) -> u64 {
        self.sets() * at::WAYS as u64
    }

    /// Returns the offset of the first set.
    pub(super) fn sets_offset(self) -> usize {
        // A set begins at a pair of cache lines.
        (at::HEADER_LEN + self.slots as usize * slot::LEN).next_multiple_of(at::SET_LEN)
    }

    pub(crate) fn file_len(self) -> u64 {
        self.sets_offset() as u64 + self.sets() * at::SET_LEN as u64
    }

    pub(super) fn encode(self, family: u64) -> [u8; FIXED_LEN] {
        let mut bytes = [0; FIXED_LEN];
        let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
        put(at::MAGIC_AT, at::MAGIC);
        put(at::VERSION, &at::VERSION_NOW.to_le_bytes());
        put(at::SLOTS, &self.slots.to_le_bytes());
        put(at::SETS, &(1_u64 << self.base_bits).to_le_bytes());
        put(at::GROWN, &u64::from(self.grown).to_le_bytes());
        put(at::FAMILY, &family.to_le_bytes());
        let check = checksum(&bytes[..at::CHECK]);
        bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes the header of a file: the geometry and the family. `None` if the file is not an
    /// index, is damaged, or has an older version. The inner `Err` has the number of a newer
    /// version.
    pub(super) fn decode(bytes: &[u8; FIXED_LEN]) -> Option<std::result::Result<(Self, u64), u32>> {
        let four = |at: usize| bytes[at..at + 4].try_into().ok().map(u32::from_le_bytes);
        let eight = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        if bytes[..at::VERSION] != *at::MAGIC || eight(at::CHECK)? != checksum(&bytes[..at::CHECK])
        {
            return None;
        }
        let version = four(at::VERSION)?;
        if version != at::VERSION_NOW {
            return (version > at::VERSION_NOW).then_some(Err(version));
        }
        let (slots, sets) = (four(at::SLOTS)?, eight(at::SETS)?);
        let grown = four(at::GROWN)?;
        let is_valid = (1..=at::MAX_SLOTS).contains(&slots)
            && sets.is_power_of_two()
            && (2..=at::MAX_SETS).contains(&sets)
            && grown <= at::MAX_GROWN
            && sets << grown <= at::MAX_SETS;
        let geometry = Self { slots, base_bits: sets.trailing_zeros(), grown };
        is_valid.then_some(Ok((geometry, eight(at::FAMILY)?)))
    }
}
