//! The record of a tree of pages.

use super::layout::tree_record as at;
use super::{u16_at, u64_at};
use crate::error::{Error, Result};

/// The key order of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By bytes, as in all tables of this crate.
    Bytes,
    /// By bytes from the last one.
    Reverse,
    /// As integers of the machine, of one of these lengths in bytes.
    Integers(&'static [usize]),
    /// Values of a key with several values: not checked.
    Unknown,
}

/// The record of a tree, from a meta page or from the main table. Its fields are not checked.
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
    /// Reads a record; `None` if it does not have the right length.
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

    /// Returns the key order.
    pub(crate) fn order(&self) -> Order {
        if self.flags & at::INTEGER_KEYS != 0 {
            Order::Integers(&[4, 8])
        } else if self.flags & at::REVERSE_KEYS != 0 {
            Order::Reverse
        } else {
            Order::Bytes
        }
    }

    /// Returns whether a key can have several values.
    pub(crate) fn has_duplicates(&self) -> bool {
        self.flags & at::DUPLICATES != 0
    }

    /// Returns a description of the table, if it does not have ordered keys with one value each.
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

/// Checks whether this crate supports a table, by its record in the main table.
pub(crate) fn check_record(name: &str, record: &[u8]) -> Result<()> {
    let Some(found) = RawTree::read(record) else {
        return Err(Error::table(name, "a table", "a value in the main table"));
    };
    check_kind(name, &found)
}

/// Checks whether this crate supports a table: one value for each key, in byte order of the keys.
pub(crate) fn check_kind(name: &str, tree: &RawTree) -> Result<()> {
    match tree.other_kind() {
        Some(found) => Err(Error::table(name, "a table of ordered keys and values", found)),
        None => Ok(()),
    }
}
