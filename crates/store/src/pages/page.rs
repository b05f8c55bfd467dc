//! Branch and leaf pages in the map, and their entries.

use crate::environment::mapping::{Map, prefetch};
use crate::file::layout::{META_PAGES, node, page_header as at, tree_record};
use crate::file::{u16_at, u64_at};
use std::cmp::Ordering as Order;

/// A key and its value.
pub type Row<'t> = (&'t [u8], &'t [u8]);

/// A branch or leaf with a valid header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'t> {
    bytes: &'t [u8],
    /// The number of entries, at least one.
    len: usize,
    /// The offset of the entries, after the free space.
    upper: usize,
}

/// A page whose entries were all checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CheckedPage {
    Branch,
    Leaf {
        has_long_values: bool,
        /// Whether it may be less than a third full without one of its entries. LMDB merges a leaf
        /// that is less than a quarter full with a sibling.
        is_sparse: bool,
    },
}

/// Sums over the entries of a page that were checked.
struct Entries {
    /// The bytes of all entries together.
    filled: usize,
    /// The bytes of the largest entry.
    largest: usize,
    has_long_values: bool,
}

/// The place of a key in a page, between the keys below and above it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap<'t> {
    /// The entry that the key would precede, or is equal to.
    pub(crate) index: usize,
    /// The key of the entry before; `None` if `index` is the first entry that has a key.
    pub(crate) below: Option<&'t [u8]>,
    /// The key of the entry at `index`; `None` after the last one.
    pub(crate) above: Option<&'t [u8]>,
}

impl<'t> Map<'t> {
    /// Returns a branch or leaf; `None` if the file has none of this number.
    #[inline]
    pub(crate) fn page(self, number: u64) -> Option<Page<'t>> {
        let bytes = self.bytes(number, 0, self.page_size())?;
        let header = bytes.first_chunk::<{ at::HEADER_LEN }>()?;
        let u16_at = |at| usize::from(u16_at(header, at));
        let (lower, upper) = (u16_at(at::LOWER), u16_at(at::UPPER));
        let kind = u16_at(at::FLAGS) as u16 & (at::BRANCH | at::LEAF | at::LEAF2 | at::OVERFLOW);
        let is_valid = number >= META_PAGES
            && u64_at(header, at::NUMBER) == number
            && (kind == at::BRANCH || kind == at::LEAF)
            && lower > at::HEADER_LEN
            && lower <= upper
            && upper <= bytes.len()
            && lower % 2 == 0;
        let len = lower.saturating_sub(at::HEADER_LEN) / 2;
        is_valid.then_some(Page { bytes, len, upper })
    }

    /// Returns a long value, by the number of its first page.
    #[inline]
    fn long_value(self, page: u64, len: usize) -> Option<&'t [u8]> {
        let header = self.bytes(page, 0, at::HEADER_LEN)?;
        let pages = (at::HEADER_LEN + len).div_ceil(self.page_size());
        let count = header.get(at::COUNT..)?.first_chunk().map(|word| u32::from_le_bytes(*word))?;
        let is_valid = u64_at(header, at::NUMBER) == page
            && u16_at(header, at::FLAGS) & at::OVERFLOW != 0
            && count as usize >= pages;
        if is_valid { self.bytes(page, at::HEADER_LEN, len) } else { None }
    }

    /// Returns the distance from a page to another one in memory, and prefetches its header. Zero
    /// if there is no such page.
    pub(crate) fn distance(self, from: &Page<'_>, number: u64) -> usize {
        let Some(bytes) = self.bytes(number, 0, self.page_size()) else { return 0 };
        prefetch(bytes.as_ptr());
        bytes.as_ptr().addr().wrapping_sub(from.bytes.as_ptr().addr())
    }
}

impl<'t> Page<'t> {
    #[inline(always)]
    pub(crate) fn is_branch(&self) -> bool {
        u16_at(self.bytes, at::FLAGS) & at::BRANCH != 0
    }

    /// Returns the number of entries, which is at least one.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the offsets of the entries.
    #[inline(always)]
    fn offsets(&self) -> &'t [[u8; 2]] {
        let offsets = self.bytes.get(at::HEADER_LEN..at::HEADER_LEN + 2 * self.len);
        offsets.unwrap_or_default().as_chunks().0
    }

    /// Returns the offset of an entry's key, and the entry's header.
    #[inline(always)]
    fn node(&self, index: usize) -> Option<(usize, u64)> {
        let start = usize::from(u16_at(self.bytes, at::HEADER_LEN + 2 * index));
        let header = self.bytes.get(start..)?.first_chunk::<{ node::HEADER_LEN }>()?;
        Some((start + node::HEADER_LEN, u64::from_le_bytes(*header)))
    }

    #[inline(always)]
    pub(crate) fn key(&self, index: usize) -> Option<&'t [u8]> {
        let (start, header) = self.node(index)?;
        self.bytes.get(start..)?.get(..key_len(header))
    }

    /// Returns the page number of an entry of a branch.
    #[inline(always)]
    pub(crate) fn child(&self, index: usize) -> Option<u64> {
        if index >= self.len {
            return None;
        }
        // The page number uses the bits of length and flags.
        Some(self.node(index)?.1 & ((1 << (8 * node::KEY_LEN)) - 1))
    }

    /// Returns the first entry, from `from` on, whose key is above `key`, or equal to it if
    /// `equal`.
    #[inline]
    pub(crate) fn first_above(&self, from: usize, key: &[u8], equal: bool) -> Option<usize> {
        self.search(from, key, equal).map(|gap| gap.index)
    }

    /// Finds the place of a key among the entries from `from` on. An entry that is equal to it is
    /// above it if `equal`, and below it otherwise. The search compares the entries that LMDB
    /// compares, and one or two more if an entry is equal: LMDB can search a page in which this
    /// search found all entries valid.
    #[inline(always)]
    pub(crate) fn search(&self, from: usize, key: &[u8], equal: bool) -> Option<Gap<'t>> {
        let (mut low, mut high) = (from, self.len);
        let (mut below, mut above) = (None, None);
        while low < high {
            let middle = low.midpoint(high - 1);
            let found = self.key(middle)?;
            let order = compare(found, key);
            if if equal { order.is_ge() } else { order.is_gt() } {
                (high, above) = (middle, Some(found));
            } else {
                (low, below) = (middle + 1, Some(found));
            }
        }
        Some(Gap { index: low, below, above })
    }

    #[inline(always)]
    pub(crate) fn row(&self, index: usize, map: Map<'t>) -> Option<Row<'t>> {
        self.row_and_len(index, map).map(|(row, _)| row)
    }

    /// Returns a row, and the bytes that its entry takes in the page.
    #[inline(always)]
    pub(crate) fn row_and_len(&self, index: usize, map: Map<'t>) -> Option<(Row<'t>, usize)> {
        let (start, header) = self.node(index)?;
        let entry = self.bytes.get(start..)?;
        let (key, rest) = entry.split_at_checked(key_len(header))?;
        let len = (header & 0xFFFF_FFFF) as usize;
        let (value, stored) = match (header >> (8 * node::FLAGS)) as u16 {
            0 => (rest.get(..len)?, len),
            node::BIG => (map.long_value(u64::from_le_bytes(*rest.first_chunk()?), len)?, 8),
            // The record of a table, in the main table.
            node::TREE if len == tree_record::LEN => (rest.get(..len)?, len),
            _ => return None,
        };
        Some(((key, value), (node::HEADER_LEN + key.len() + stored).next_multiple_of(2)))
    }

    /// Returns the bytes that all entries take together in a page without damage: LMDB moves
    /// entries together whenever it deletes one. Wrong offsets and lengths have another sum.
    #[inline(always)]
    pub(crate) fn filled(&self) -> usize {
        self.bytes.len() - self.upper
    }

    /// Returns whether the entries fill the page: see [`filled`](Self::filled).
    pub(crate) fn is_filled(&self) -> bool {
        let is_leaf = !self.is_branch();
        let (mut filled, mut is_inside) = (0, true);
        for offset in self.offsets() {
            let start = usize::from(u16::from_le_bytes(*offset));
            let header = self.bytes.get(start..).and_then(<[u8]>::first_chunk);
            let header = header.map_or(u64::MAX, |header| u64::from_le_bytes(*header));
            let is_long = (header >> (8 * node::FLAGS)) & u64::from(node::BIG) != 0;
            let value_len = if is_long { 8 } else { header & 0xFFFF_FFFF };
            // In a branch, these bits of the header have a page number.
            let value_len = if is_leaf { value_len } else { 0 };
            is_inside &= start >= self.upper;
            filled +=
                (node::HEADER_LEN as u64 + (header >> (8 * node::KEY_LEN)) + value_len + 1) & !1;
        }
        is_inside && filled == self.filled() as u64
    }

    /// Checks that every entry is within the page and of a known kind, that the entries fill the
    /// page, and that the keys are in order: then LMDB can change the page safely. Returns `None`
    /// for a damaged page.
    pub(crate) fn sound(&self) -> Option<CheckedPage> {
        // Entries are read in the order of their keys, which is not their order in memory.
        for line in self.bytes[self.upper..].chunks(CACHE_LINE) {
            prefetch(line.as_ptr());
        }
        if self.is_branch() {
            let entries = self.checked_entries::<false>()?;
            return (self.len > 1 && entries.filled == self.filled())
                .then_some(CheckedPage::Branch);
        }
        let Entries { filled, largest, has_long_values } = self.checked_entries::<true>()?;
        let is_sparse = 2 * self.len + filled - largest < self.bytes.len() / 3;
        let leaf = CheckedPage::Leaf { has_long_values, is_sparse };
        (filled == self.filled()).then_some(leaf)
    }

    /// Checks all entries, and that their keys are in order.
    #[inline(always)]
    fn checked_entries<const IS_LEAF: bool>(&self) -> Option<Entries> {
        let mut entries = Entries { filled: 0, largest: 0, has_long_values: false };
        let mut before = None;
        for offset in self.offsets() {
            let start = usize::from(u16::from_le_bytes(*offset));
            let (header, rest) = self.bytes.get(start..)?.split_first_chunk()?;
            let header = u64::from_le_bytes(*header);
            let value_len = match (header >> (8 * node::FLAGS)) as u16 {
                // In a branch, these bits of the header have a page number.
                _ if !IS_LEAF => 0,
                0 => (header & 0xFFFF_FFFF) as usize,
                node::BIG => {
                    entries.has_long_values = true;
                    8
                }
                node::TREE if header & 0xFFFF_FFFF == tree_record::LEN as u64 => tree_record::LEN,
                _ => return None,
            };
            let len = key_len(header) + value_len;
            if start < self.upper || len > rest.len() {
                return None;
            }
            let key = rest.get(..key_len(header))?;
            // The first entry of a branch has no key: any key may follow it.
            if before.is_some_and(|before| !compare(before, key).is_lt()) {
                return None;
            }
            before = (IS_LEAF || entries.filled > 0).then_some(key);
            let len = (node::HEADER_LEN + len).next_multiple_of(2);
            entries.filled += len;
            entries.largest = entries.largest.max(len);
        }
        Some(entries)
    }

    /// Returns whether a row of `row_len` bytes, key and value together, fits into the free space.
    pub(crate) fn has_room(&self, row_len: usize) -> bool {
        let free = self.upper - at::HEADER_LEN - 2 * self.len;
        (node::HEADER_LEN + size_of::<u16>() + row_len).next_multiple_of(2) <= free
    }

    /// Returns the bytes of a row of a leaf, key and value together; `None` if the value is in
    /// overflow pages, or the entry is not in the page.
    pub(crate) fn row_len(&self, index: usize) -> Option<usize> {
        let (_, header) = self.node(index)?;
        let is_long = (header >> (8 * node::FLAGS)) & u64::from(node::BIG) != 0;
        (!is_long).then_some(key_len(header) + (header & 0xFFFF_FFFF) as usize)
    }

    /// Returns whether all keys are in order. `from` is the first entry that has a key.
    pub(crate) fn is_in_order(&self, from: usize) -> bool {
        (from + 1..self.len).all(|index| are_ordered(self.key(index - 1), self.key(index)))
    }

    /// Returns whether the keys around an entry are in order. `from` is the first entry that has a
    /// key. A key that is out of order leads a search to its own place, so this check finds it
    /// there.
    pub(crate) fn is_ordered_at(&self, from: usize, index: usize) -> bool {
        let first = index.saturating_sub(2).max(from);
        let last = (index + 1).min(self.len - 1);
        (first..last).all(|index| are_ordered(self.key(index), self.key(index + 1)))
    }

    /// Returns the offset of the page in the file.
    pub(crate) fn offset(&self, map: Map<'_>) -> u64 {
        map.offset_of(self.bytes)
    }
}

/// Compares two keys. Most keys differ within eight bytes, or have the same length of 8 to 16
/// bytes: these need no function call.
#[inline(always)]
pub(crate) fn compare(one: &[u8], other: &[u8]) -> Order {
    let words = |a: &[u8; 8], b: &[u8; 8]| {
        u64::from_le_bytes(*a).swap_bytes().cmp(&u64::from_le_bytes(*b).swap_bytes())
    };
    let (Some(a), Some(b)) = (one.first_chunk(), other.first_chunk()) else {
        return one.cmp(other);
    };
    if a != b {
        return words(a, b);
    }
    match (one.last_chunk(), other.last_chunk()) {
        // The last eight bytes overlap the first eight, which are equal.
        (Some(a), Some(b)) if one.len() == other.len() && one.len() <= 16 => words(a, b),
        _ => one.cmp(other),
    }
}

/// Returns whether `key` is not below `low`.
#[inline(always)]
pub(crate) fn is_at_or_above(key: &[u8], low: &[u8]) -> bool {
    compare(key, low).is_ge()
}

/// Returns whether both keys are valid, and `low` is below `high`.
#[inline(always)]
pub(crate) fn are_ordered(low: Option<&[u8]>, high: Option<&[u8]>) -> bool {
    matches!((low, high), (Some(low), Some(high)) if compare(low, high).is_lt())
}

#[inline(always)]
fn key_len(header: u64) -> usize {
    (header >> (8 * node::KEY_LEN)) as usize
}

/// Bytes that processors fetch at a time.
const CACHE_LINE: usize = 64;
