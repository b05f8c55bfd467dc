//! A table as a tree of pages.

use super::page::{Page, Row};
use crate::environment::Environment;
use crate::environment::mapping::Map;
use crate::error::{Error, Result};
use crate::file::corrupt;
use crate::file::layout::NO_PAGE;
use crate::file::page::Page as FilePage;
use crate::file::tree::RawTree;
use std::fmt;

/// The maximum number of pages from the root to a leaf: LMDB has no deeper trees.
pub(super) const MAX_DEPTH: usize = 32;

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
    environment: &'t Environment,
}

/// The branches from the root to a leaf, with the index of the entry that was followed in each.
pub(super) type Ancestors<'t> = Vec<(Page<'t>, usize)>;

impl<'t> Tree<'t> {
    pub(super) fn new(map: Option<Map<'t>>, root: Root, environment: &'t Environment) -> Self {
        Self { map, root: root.page, environment }
    }

    /// Returns the number of the root page; `None` if there are no rows.
    pub(crate) fn root(&self) -> Option<u64> {
        (self.root != NO_PAGE).then_some(self.root)
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
    pub(super) fn row(&self, leaf: &Page<'t>, index: usize) -> Result<Row<'t>> {
        self.row_and_len(leaf, index).map(|(row, _)| row)
    }

    /// Returns a row as `row` does, and the bytes that its entry takes in the page.
    #[cold]
    #[inline(never)]
    pub(super) fn row_and_len(&self, leaf: &Page<'t>, index: usize) -> Result<(Row<'t>, usize)> {
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

    #[inline]
    pub(super) fn map(&self) -> Option<Map<'t>> {
        self.map
    }

    /// Returns the map with the present length of the file: other processes extend the file.
    #[cold]
    fn refreshed(&self) -> Result<Map<'t>> {
        let (file, path) = self.environment.data();
        let len = file.metadata().map_err(|e| Error::io(path, "length", e))?.len();
        let environment = self.environment;
        environment.mapping().set_len(len, environment.heed().info().map_size);
        let map = environment.mapping().get(environment.page_size());
        map.ok_or_else(|| corrupt(path, 0, "pages of a store", "an unknown map"))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn damaged_page(&self, page: &Page<'_>) -> Error {
        let offset = self.map.map_or(0, |map| page.offset(map));
        self.damaged(offset / u64::from(self.environment.page_size()))
    }

    /// Reads a page from the file again, and returns an error with what is wrong.
    #[cold]
    #[inline(never)]
    pub(super) fn damaged(&self, number: u64) -> Error {
        let (file, path) = self.environment.data();
        let size = self.environment.page_size();
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

/// How the rows of a table are read.
#[derive(Clone, Copy)]
pub(crate) enum Source<'t> {
    /// From its pages, which are checked.
    Pages(Tree<'t>),
    /// Through LMDB, since this transaction has changed the table. The committed pages are checked
    /// before LMDB follows them.
    Changed(Tree<'t>),
    /// Through LMDB.
    Lmdb,
}
