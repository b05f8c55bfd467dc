//! What is known of a tree of pages.

use super::layout::tree as at;
use super::{u16_at, u32_at, u64_at};

/// A tree of pages, as a meta page or its table's name has it. Nothing of it is checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawTree {
    pub(crate) padding: u32,
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
            padding: u32_at(bytes, at::PADDING),
            flags: u16_at(bytes, at::FLAGS),
            depth: u16_at(bytes, at::DEPTH),
            branch_pages: u64_at(bytes, at::BRANCH_PAGES),
            leaf_pages: u64_at(bytes, at::LEAF_PAGES),
            overflow_pages: u64_at(bytes, at::OVERFLOW_PAGES),
            entries: u64_at(bytes, at::ENTRIES),
            root: u64_at(bytes, at::ROOT),
        })
    }
}
