//! Checks of committed pages, before LMDB follows or changes them.

use super::bounds::KeyBounds;
use super::page::{CheckedPage, Gap, Page, are_ordered, is_at_or_above};
use super::tree::{MAX_DEPTH, Tree};
use crate::error::Result;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The next operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Put {
        /// The length of key and value together in bytes, as they are stored.
        row_len: usize,
    },
    Delete,
}

/// Pages whose entries were all checked.
pub(super) type CheckedPages = HashMap<u64, CheckedPage, BuildHasherDefault<PageHasher>>;

/// A hasher for page numbers.
#[derive(Default)]
pub(super) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing. The hash map uses the upper bits, and the lower ones after a rotation.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

/// A leaf whose entries were checked.
pub(super) struct CheckedLeaf<'t> {
    pub(super) number: u64,
    pub(super) has_long_values: bool,
    /// Whether the leaf may be less than a third full once one of its entries is deleted, or was
    /// changed before.
    pub(super) may_be_sparse: bool,
    pub(super) branches: Branches,
    /// The closest keys of branches: keys from `low` on and below `high` belong to the leaf.
    pub(super) low: Option<&'t [u8]>,
    pub(super) high: Option<&'t [u8]>,
}

/// What was checked of the branches above a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branches {
    /// All entries were checked.
    Checked,
    /// Only the entries that LMDB compares were checked, and no others have to be.
    Compared,
    /// Only the entries that LMDB compares were checked, and all have to be.
    Incomplete,
}

impl Branches {
    fn or_incomplete(self, needs_all: bool) -> Self {
        if needs_all && self != Self::Checked { Self::Incomplete } else { self }
    }
}

impl<'t> Tree<'t> {
    /// Checks the pages on the path to a key, or to the last key if it is `None`, and the value of
    /// that key, before LMDB follows them. Pages in `checked` are skipped; those whose entries were
    /// all checked are added.
    ///
    /// All entries of the leaf are checked. Of a branch, it is enough to check the entries that
    /// LMDB compares, as long as LMDB adds and removes no entry of it and the key certainly belongs
    /// to the leaf.
    pub(super) fn check_pages_to(
        &self,
        root: u64,
        key: Option<&[u8]>,
        access: Access,
        checked: &mut CheckedPages,
    ) -> Result<CheckedLeaf<'t>> {
        let leaf = self.check_path_to_leaf(root, key, access, checked, false)?;
        match leaf.branches {
            Branches::Checked | Branches::Compared => Ok(leaf),
            Branches::Incomplete => self.check_path_to_leaf(root, key, access, checked, true),
        }
    }

    /// Descends to a leaf and checks it, and all entries of the branches above it if
    /// `with_branches`.
    fn check_path_to_leaf(
        &self,
        root: u64,
        key: Option<&[u8]>,
        access: Access,
        checked: &mut CheckedPages,
        with_branches: bool,
    ) -> Result<CheckedLeaf<'t>> {
        let (mut number, mut bounds, mut branches) =
            (root, KeyBounds::default(), Branches::Checked);
        for _ in 0..MAX_DEPTH {
            let KeyBounds { low, high, .. } = bounds;
            let before = checked.get(&number).copied();
            let leaf = |has_long_values, may_be_sparse, needs_branches| {
                let branches = branches.or_incomplete(needs_branches);
                CheckedLeaf { number, has_long_values, may_be_sparse, branches, low, high }
            };
            if let Some(CheckedPage::Leaf { has_long_values, .. }) = before {
                if has_long_values {
                    self.check_value(&self.page(number)?, key)?;
                }
                // LMDB may have changed the leaf, so its fill is unknown.
                return Ok(leaf(has_long_values, true, true));
            }
            let page = self.page(number)?;
            if !page.is_branch() {
                let kind = self.check_page(number, (low, high), checked)?;
                let CheckedPage::Leaf { has_long_values, is_sparse } = kind else {
                    return Err(self.damaged_page(&page));
                };
                let needs_branches = self.needs_branches(&page, kind, key, access)?;
                return Ok(leaf(has_long_values, is_sparse, needs_branches));
            }
            if with_branches && before.is_none() {
                self.check_page(number, (low, high), checked)?;
            } else if before.is_none() {
                branches = Branches::Compared;
            }
            let (next, _, child) = self.step(&page, bounds, key)?;
            (number, bounds) = (child, next);
        }
        Err(self.damaged(number))
    }

    /// Returns whether all entries of the branches above a leaf have to be checked, before LMDB
    /// looks a key up or changes it in the leaf, which the transaction uses for the first time.
    /// Checks the value of the key.
    fn needs_branches(
        &self,
        leaf: &Page<'t>,
        kind: CheckedPage,
        key: Option<&[u8]>,
        access: Access,
    ) -> Result<bool> {
        let CheckedPage::Leaf { has_long_values, is_sparse } = kind else { return Ok(true) };
        let gap = key.map(|key| leaf.search(0, key, true).ok_or_else(|| self.damaged_page(leaf)));
        let gap = gap.transpose()?;
        let found = gap.filter(|gap| gap.above.is_some() && gap.above == key);
        if let Some(gap) = found.filter(|_| has_long_values) {
            self.check_long_value(leaf, &gap)?;
        }
        // A wrong key in a branch leads to a leaf that has no keys on both sides of the key. The
        // last leaf is found without comparing keys.
        let is_at_edge = gap.is_some_and(|gap| gap.below.is_none() || gap.above.is_none());
        let may_change_branches = match access {
            Access::Read => false,
            Access::Delete => is_sparse,
            Access::Put { row_len } => {
                let is_in_place = found.is_some_and(|gap| leaf.row_len(gap.index) == Some(row_len));
                !is_in_place && !leaf.has_room(row_len)
            }
        };
        Ok(may_change_branches || (is_at_edge && found.is_none()))
    }

    /// Checks the siblings of the pages on the path to a key, below the same branches.
    pub(super) fn check_pages_beside(
        &self,
        root: u64,
        key: Option<&[u8]>,
        checked: &mut CheckedPages,
    ) -> Result<()> {
        let (mut number, mut bounds) = (root, KeyBounds::default());
        for _ in 0..MAX_DEPTH {
            let page = self.page(number)?;
            if !page.is_branch() {
                return Ok(());
            }
            let (next, at, child) = self.step(&page, bounds, key)?;
            for beside in [at.checked_sub(1), Some(at + 1)].into_iter().flatten() {
                let Some(number) = page.child(beside) else { continue };
                if !checked.contains_key(&number) {
                    let low = if beside == 0 { bounds.low } else { page.key(beside) };
                    let high =
                        if beside + 1 < page.len() { page.key(beside + 1) } else { bounds.high };
                    self.check_page(number, (low, high), checked)?;
                }
            }
            (number, bounds) = (child, next);
        }
        Err(self.damaged(number))
    }

    /// Descends from a branch to a key, or to the last key. Returns the bounds below the branch,
    /// the index of the entry, and the page below it.
    fn step(
        &self,
        branch: &Page<'t>,
        bounds: KeyBounds<'t>,
        key: Option<&[u8]>,
    ) -> Result<(KeyBounds<'t>, usize, u64)> {
        let last = branch.len() - 1;
        if last == 0 {
            // LMDB would abort the process.
            return Err(self.damaged_page(branch));
        }
        let gap = match key {
            Some(key) => branch.search(1, key, false),
            None => Some(Gap { index: last + 1, below: branch.key(last), above: None }),
        };
        let next = gap.and_then(|gap| {
            Some((bounds.down(*branch, &gap)?, gap.index - 1, branch.child(gap.index - 1)?))
        });
        next.ok_or_else(|| self.damaged_page(branch))
    }

    /// Checks all entries of a page. If it is a leaf, also checks that its keys are from `low` on
    /// and below `high`.
    fn check_page(
        &self,
        number: u64,
        (low, high): (Option<&[u8]>, Option<&[u8]>),
        checked: &mut CheckedPages,
    ) -> Result<CheckedPage> {
        let page = self.page(number)?;
        let kind = page.sound().filter(|_| {
            let is_above =
                low.is_none_or(|low| page.key(0).is_some_and(|k| is_at_or_above(k, low)));
            let is_below = high.is_none() || are_ordered(page.key(page.len() - 1), high);
            page.is_branch() || (is_above && is_below)
        });
        let kind = kind.ok_or_else(|| self.damaged_page(&page))?;
        checked.insert(number, kind);
        Ok(kind)
    }

    /// Checks the value of a key, if the leaf has the key: LMDB frees the pages of a long value
    /// that is replaced.
    pub(super) fn check_value(&self, leaf: &Page<'t>, key: Option<&[u8]>) -> Result<()> {
        let Some(key) = key else { return Ok(()) };
        let gap = leaf.search(0, key, true).ok_or_else(|| self.damaged_page(leaf))?;
        if gap.above == Some(key) { self.check_long_value(leaf, &gap) } else { Ok(()) }
    }

    /// Checks the value of the entry above a gap.
    fn check_long_value(&self, leaf: &Page<'t>, gap: &Gap<'t>) -> Result<()> {
        let row = self.map().and_then(|map| leaf.row(gap.index, map));
        row.map_or_else(|| self.row(leaf, gap.index), Ok).map(|_| ())
    }
}
