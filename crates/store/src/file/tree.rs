//! What is known of a tree of pages.

use super::layout::tree as at;
use super::{u16_at, u64_at};

/// How the keys of a tree are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By their bytes, as all tables of this crate.
    Bytes,
    /// By their bytes from the last one.
    Reverse,
    /// As integers of the machine, of one of these lengths.
    Integers(&'static [usize]),
    /// Values of a key that has several: not checked.
    Unknown,
}

/// A tree of pages, as a meta page or its table's name has it. Nothing of it is checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawTree {
    pub(crate) flags: u16,
    pub(crate) depth: u16,
    pub(crate) branch_pages: u64,
    pub(crate) leaf_pages: u64,
    pub(crate) overflow_pages: u64,
    pub(crate) entries: u64,
    pub(crate) root: u64,
}

impl RawTree {
    /// Reads a tree; `None` when there are too few or too many bytes for one.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == at::LEN).then(|| Self {
            flags: u16_at(bytes, at::FLAGS),
            depth: u16_at(bytes, at::DEPTH),
            branch_pages: u64_at(bytes, at::BRANCH_PAGES),
            leaf_pages: u64_at(bytes, at::LEAF_PAGES),
            overflow_pages: u64_at(bytes, at::OVERFLOW_PAGES),
            entries: u64_at(bytes, at::ENTRIES),
            root: u64_at(bytes, at::ROOT),
        })
    }

    /// How its keys are ordered.
    pub(crate) fn order(&self) -> Order {
        if self.flags & at::INTEGER_KEYS != 0 {
            Order::Integers(&[4, 8])
        } else if self.flags & at::REVERSE_KEYS != 0 {
            Order::Reverse
        } else {
            Order::Bytes
        }
    }

    /// Whether a key may have several values.
    pub(crate) fn has_duplicates(&self) -> bool {
        self.flags & at::DUPLICATES != 0
    }

    /// What kind of table it is, if it is none of ordered keys with a value each.
    pub(crate) fn other_kind(&self) -> Option<&'static str> {
        [
            (at::DUPLICATES, "a table with several values for a key"),
            (at::INTEGER_KEYS, "a table of integers in the machine's order"),
            (at::REVERSE_KEYS, "a table whose keys are compared from their end"),
        ]
        .into_iter()
        .find_map(|(flag, what)| (self.flags & flag != 0).then_some(what))
    }
}
