//! Lookups in a table, page by page.

use super::committed::{Access, CheckedPages};
use super::cursor::Cursor;
use super::map::{CheckedPage, Gap, Map, Page, are_ordered, compare, is_at_or_above};
use crate::error::{Error, Result};
use crate::file::corrupt;
use crate::file::layout::NO_PAGE;
use crate::file::page::Page as FilePage;
use crate::file::tree::RawTree;
use crate::store::Shared;
use std::fmt;
use std::ops::Bound;

/// The maximum number of pages from the root to a leaf: LMDB has no deeper trees.
const MAX_DEPTH: usize = 32;

/// The root of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The number of the root page; `NO_PAGE` if the table is empty.
    pub(crate) page: u64,
}

impl Root {
    /// The root of a table without rows.
    pub(super) const NONE: Self = Self { page: NO_PAGE };

    pub(crate) fn of(tree: &RawTree) -> Self {
        Self { page: tree.root }
    }
}

/// A table as a transaction sees it.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'t> {
    /// `None` if the address of the map is unknown, which means that the table has no rows.
    map: Option<Map<'t>>,
    root: u64,
    shared: &'t Shared,
}

/// The branches from the root to a leaf, with the index of the entry that was followed in each.
pub(super) type Ancestors<'t> = Vec<(Page<'t>, usize)>;

impl<'t> Tree<'t> {
    pub(super) fn new(map: Option<Map<'t>>, root: Root, shared: &'t Shared) -> Self {
        Self { map, root: root.page, shared }
    }

    /// Returns the number of the root page; `None` if there are no rows.
    pub(crate) fn root(&self) -> Option<u64> {
        (self.root != NO_PAGE).then_some(self.root)
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a page on the path is damaged, or the leaf that would have an absent
    /// key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let Some(root) = self.root() else { return Ok(None) };
        match self.map.and_then(|map| find(map, root, key)) {
            Some(Found::Value(value)) => Ok(Some(value)),
            Some(Found::Absent) => Ok(None),
            None => self.get_with_cursor(key),
        }
    }

    /// Looks a key up if `find` could not: a page was missing or damaged, or the key would be
    /// between two leaves of different branches. Reads and checks the leaves on both sides.
    #[cold]
    #[inline(never)]
    fn get_with_cursor(&self, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let from = (Bound::Included(key), Bound::Unbounded);
        let found = Cursor::new(*self, from, false)?.next_row()?;
        if let Some((_, value)) = found.filter(|(found, _)| *found == key) {
            return Ok(Some(value));
        }
        let before = (Bound::Unbounded, Bound::Excluded(key));
        Cursor::new(*self, before, true)?.next_row().map(|_| None)
    }

    /// Checks all entries of the pages on the path to a key, which LMDB is about to follow.
    pub(crate) fn check_path(&self, key: &[u8]) -> Result<()> {
        if self.root().is_none() {
            return Ok(());
        }
        let mut above = Ancestors::new();
        let leaf = self.seek(&mut above, |page| Some(page.first_above(1, key, false)? - 1))?;
        let branches = above.iter().map(|(branch, _)| (branch, 1));
        let mut pages = branches.chain([(&leaf, 0)]);
        match pages.find(|(page, from)| !page.is_filled() || !page.is_in_order(*from)) {
            Some((page, _)) => Err(self.damaged_page(page)),
            None => Ok(()),
        }
    }

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
            Branches::Unsure => self.check_path_to_leaf(root, key, access, checked, true),
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
                let branches = branches.or_unsure(needs_branches);
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
            // LMDB would end the process.
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
        let row = self.map.and_then(|map| leaf.row(gap.index, map));
        row.map_or_else(|| self.row(leaf, gap.index), Ok).map(|_| ())
    }

    /// Returns the first entry of a leaf whose key is above `key`, or equal to it if `equal`.
    pub(super) fn search(&self, leaf: &Page<'t>, key: &[u8], equal: bool) -> Result<usize> {
        let found = leaf.first_above(0, key, equal).filter(|index| leaf.is_ordered_at(0, *index));
        found.ok_or_else(|| self.damaged_page(leaf))
    }

    /// Descends to a leaf as `descend` does, and checks that its keys are within the bounds of all
    /// branches above it.
    pub(super) fn seek(
        &self,
        above: &mut Ancestors<'t>,
        choose: impl Fn(&Page<'t>) -> Option<usize>,
    ) -> Result<Page<'t>> {
        let leaf = self.descend(above, choose)?;
        let is_within = above.iter().all(|(branch, at)| is_within(&leaf, branch, *at));
        if is_within { Ok(leaf) } else { Err(self.damaged_page(&leaf)) }
    }

    /// Descends to a leaf, by the entry of each branch that `choose` returns, and checks the
    /// entries around it.
    pub(super) fn descend(
        &self,
        above: &mut Ancestors<'t>,
        choose: impl Fn(&Page<'t>) -> Option<usize>,
    ) -> Result<Page<'t>> {
        let mut number = above.last().map_or(Some(self.root), |(page, index)| page.child(*index));
        loop {
            let parent = above.last().map(|(page, _)| *page);
            let page = match number {
                Some(number) => self.page(number)?,
                None => return Err(parent.map_or(Error::Broken, |page| self.damaged_page(&page))),
            };
            if !page.is_branch() {
                return Ok(page);
            }
            let index = choose(&page).filter(|index| page.is_ordered_at(1, *index + 1));
            let index = index.ok_or_else(|| self.damaged_page(&page))?;
            if above.len() >= MAX_DEPTH {
                return Err(self.damaged_page(&page));
            }
            above.push((page, index));
            number = page.child(index);
        }
    }

    /// Returns a row whose value may be in pages that the file did not have when its length was
    /// last read.
    pub(super) fn row(&self, leaf: &Page<'t>, index: usize) -> Result<crate::rows::Row<'t>> {
        self.row_and_len(leaf, index).map(|(row, _)| row)
    }

    /// Returns a row as `row` does, and the bytes that its entry takes in the page.
    #[cold]
    #[inline(never)]
    pub(super) fn row_and_len(
        &self,
        leaf: &Page<'t>,
        index: usize,
    ) -> Result<(crate::rows::Row<'t>, usize)> {
        let row = self.refreshed().ok().and_then(|map| leaf.row_and_len(index, map));
        row.ok_or_else(|| self.damaged_page(leaf))
    }

    /// Returns a page with a valid header.
    pub(super) fn page(&self, number: u64) -> Result<Page<'t>> {
        match self.map.and_then(|map| map.page(number)) {
            Some(page) => Ok(page),
            None => self.refreshed()?.page(number).ok_or_else(|| self.damaged(number)),
        }
    }

    pub(super) fn map(&self) -> Option<Map<'t>> {
        self.map
    }

    /// Returns the map with the present length of the file: other processes extend the file.
    #[cold]
    fn refreshed(&self) -> Result<Map<'t>> {
        let (file, path) = self.shared.data();
        let len = file.metadata().map_err(|e| Error::io(path, "length", e))?.len();
        let environment = &self.shared.environment;
        environment.mapping().set_len(len, environment.heed().info().map_size);
        let map = environment.mapping().get(environment.page_size());
        map.ok_or_else(|| corrupt(path, 0, "pages of a store", "an unknown map"))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn damaged_page(&self, page: &Page<'_>) -> Error {
        let offset = self.map.map_or(0, |map| page.offset(map));
        self.damaged(offset / u64::from(self.shared.environment.page_size()))
    }

    /// Reads a page from the file again, and returns an error with what is wrong.
    #[cold]
    #[inline(never)]
    fn damaged(&self, number: u64) -> Error {
        let (file, path) = self.shared.data();
        let size = self.shared.environment.page_size();
        let generic = || {
            let expected = "a page of a table, with entries in order that fill it";
            corrupt(path, number.saturating_mul(u64::from(size)), expected, "another one")
        };
        if number.checked_mul(u64::from(size)).is_none() {
            return generic();
        }
        let checked = FilePage::read(file, path, number, size).and_then(|page| page.check_filled());
        checked.err().unwrap_or_else(generic)
    }
}

/// A leaf whose entries were checked.
pub(super) struct CheckedLeaf<'t> {
    pub(super) number: u64,
    pub(super) has_long_values: bool,
    /// Whether it may be less than a third full without one of its entries, or was changed before.
    pub(super) may_be_sparse: bool,
    pub(super) branches: Branches,
    /// The closest keys of branches: keys from `low` on and below `high` belong to the leaf.
    pub(super) low: Option<&'t [u8]>,
    pub(super) high: Option<&'t [u8]>,
}

/// What was checked of the branches above a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branches {
    /// All entries.
    Checked,
    /// The entries that LMDB compares, which is enough.
    Compared,
    /// The entries that LMDB compares, which is not enough.
    Unsure,
}

impl Branches {
    fn or_unsure(self, needs_all: bool) -> Self {
        if needs_all && self != Self::Checked { Self::Unsure } else { self }
    }
}

/// The result of a search.
enum Found<'t> {
    Value(&'t [u8]),
    Absent,
}

/// The bounds of a search for a key, from the branches above a leaf.
#[derive(Clone, Copy, Default)]
struct KeyBounds<'t> {
    /// The closest branch keys: `low` is the greatest one that is not above the key, and `high` the
    /// least one above it.
    low: Option<&'t [u8]>,
    high: Option<&'t [u8]>,
    /// The lowest branch, and the index of the entry that was followed.
    parent: Option<(Page<'t>, usize)>,
}

/// Looks a key up; `None` if a page on the path is damaged, or more pages are needed to be certain.
#[inline]
fn find<'t>(map: Map<'t>, root: u64, key: &[u8]) -> Option<Found<'t>> {
    let (mut number, mut bounds) = (root, KeyBounds::default());
    for _ in 0..MAX_DEPTH {
        let page = map.page(number)?;
        if !page.is_branch() {
            let gap = page.search(0, key, true)?;
            if gap.above == Some(key) {
                return Some(Found::Value(page.row(gap.index, map)?.1));
            }
            return bounds.shows_absence(map, &page, &gap).then_some(Found::Absent);
        }
        // The first entry of a branch has no key: it is below all others.
        let gap = page.search(1, key, false)?;
        bounds = bounds.down(page, &gap)?;
        number = page.child(gap.index - 1)?;
    }
    None
}

impl<'t> KeyBounds<'t> {
    /// Descends from a branch. `None` if the keys that the search found there are not within the
    /// bounds of the branches above.
    #[inline(always)]
    fn down(self, branch: Page<'t>, gap: &Gap<'t>) -> Option<Self> {
        let is_lower = matches!((self.low, gap.below), (Some(a), Some(b)) if compare(b, a).is_lt());
        let is_upper =
            matches!((self.high, gap.above), (Some(a), Some(b)) if compare(b, a).is_gt());
        let parent = Some((branch, gap.index - 1));
        let bounds = Self { low: gap.below.or(self.low), high: gap.above.or(self.high), parent };
        (!is_lower && !is_upper).then_some(bounds)
    }

    /// Returns whether a key that a search did not find is certainly absent: the keys around its
    /// place are in order, and the leaf is within the bounds of its branches. If the place is at
    /// the edge of the leaf, a wrong key in a branch may have led there, so the sibling leaf is
    /// checked.
    #[inline(never)]
    fn shows_absence(&self, map: Map<'t>, leaf: &Page<'t>, gap: &Gap<'t>) -> bool {
        let (index, last) = (gap.index, leaf.len() - 1);
        let is_ordered = (index < 2 || are_ordered(leaf.key(index - 2), gap.below))
            && (index >= last || are_ordered(gap.above, leaf.key(index + 1)));
        let is_above =
            self.low.is_none_or(|low| leaf.key(0).is_some_and(|key| is_at_or_above(key, low)));
        let is_below = self.high.is_none() || are_ordered(leaf.key(last), self.high);
        is_ordered
            && is_above
            && is_below
            && (gap.below.is_some() || self.is_after_leaf_before(map))
            && (gap.above.is_some() || self.is_before_leaf_after(map))
    }

    /// Returns whether the previous leaf has only keys below those of this one; false if it is not
    /// below the same branch.
    fn is_after_leaf_before(&self, map: Map<'t>) -> bool {
        let (Some(low), Some((branch, at))) = (self.low, self.parent) else { return true };
        let leaf = at.checked_sub(1).and_then(|at| map.page(branch.child(at)?));
        leaf.is_some_and(|leaf| {
            let last = leaf.len() - 1;
            !leaf.is_branch()
                && leaf.is_ordered_at(0, last)
                && are_ordered(leaf.key(last), Some(low))
        })
    }

    /// Returns whether the next leaf has only keys above those of this one; false if it is not
    /// below the same branch.
    fn is_before_leaf_after(&self, map: Map<'t>) -> bool {
        let (Some(high), Some((branch, at))) = (self.high, self.parent) else { return true };
        let leaf = branch.child(at + 1).and_then(|number| map.page(number));
        leaf.is_some_and(|leaf| {
            let first = leaf.key(0);
            !leaf.is_branch()
                && leaf.is_ordered_at(0, 0)
                && first.is_some_and(|key| is_at_or_above(key, high))
        })
    }
}

/// Returns whether the keys of a leaf are within the bounds of entry `at` of a branch.
fn is_within(leaf: &Page<'_>, branch: &Page<'_>, at: usize) -> bool {
    let is_above = at == 0 || leaf.key(0) >= branch.key(at);
    is_above && (at + 1 >= branch.len() || leaf.key(leaf.len() - 1) < branch.key(at + 1))
}

impl fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("root", &self.root).finish_non_exhaustive()
    }
}
