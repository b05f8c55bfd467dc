//! Lookups in a table, page by page.

use super::cursor::Cursor;
use super::map::{Map, Page};
use crate::error::{Error, Result};
use crate::file::corrupt;
use crate::file::layout::NO_PAGE;
use crate::file::page::{Kind, Page as FilePage};
use crate::file::tree::RawTree;
use crate::store::Shared;
use std::fmt;
use std::ops::Bound;

/// The maximum number of pages from the root to a leaf: LMDB has no deeper trees.
const MAX_DEPTH: usize = 32;

/// Where a table begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The number of the first page; `NO_PAGE` if the table is empty.
    pub(crate) page: u64,
}

impl Root {
    pub(crate) fn of(tree: &RawTree) -> Self {
        Self { page: tree.root }
    }
}

/// A table as a read transaction sees it.
#[derive(Clone, Copy)]
pub(crate) struct Tree<'t> {
    /// `None` if nothing is known of the map, which then has no rows.
    map: Option<Map<'t>>,
    root: u64,
    shared: &'t Shared,
}

/// The way from the root to a leaf: branches, with the entry of each that leads on.
pub(super) type Above<'t> = Vec<(Page<'t>, usize)>;

impl<'t> Tree<'t> {
    pub(super) fn new(map: Option<Map<'t>>, root: Root, shared: &'t Shared) -> Self {
        Self { map, root: root.page, shared }
    }

    /// Returns the number of the first page; `None` if there are no rows.
    pub(crate) fn root(&self) -> Option<u64> {
        (self.root != NO_PAGE).then_some(self.root)
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a page on the way is damaged, or the leaf that should have an absent
    /// key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let Some(root) = self.root() else { return Ok(None) };
        let mut way = Way::default();
        match self.map.and_then(|map| find(map, root, key, &mut way)) {
            Some(Found::Value(value)) => Ok(Some(value)),
            Some(Found::Absent(leaf, index)) if way.shows_absence(self.map, &leaf, index) => {
                Ok(None)
            }
            _ => self.get_slowly(key),
        }
    }

    /// As `get`, where a page was not found or is damaged, or the key would be the first or last
    /// one of its leaf: a wrong key in a branch may have led there, so the leaf beside it is checked.
    #[cold]
    #[inline(never)]
    fn get_slowly(&self, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let from = (Bound::Included(key), Bound::Unbounded);
        let found = Cursor::new(*self, from, false)?.next_row()?;
        if let Some((_, value)) = found.filter(|(found, _)| *found == key) {
            return Ok(Some(value));
        }
        let before = (Bound::Unbounded, Bound::Excluded(key));
        Cursor::new(*self, before, true)?.next_row().map(|_| None)
    }

    /// Checks all entries of the pages on the way to a key, which LMDB is about to follow.
    pub(crate) fn check_way(&self, key: &[u8]) -> Result<()> {
        if self.root().is_none() {
            return Ok(());
        }
        let mut above = Above::new();
        let leaf = self.descend(&mut above, |page| Some(page.first_above(1, key, false)? - 1))?;
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

    /// Goes down to a leaf, by the entry of each branch that `choose` returns, and checks the leaf
    /// and the entries around the way.
    pub(super) fn descend(
        &self,
        above: &mut Above<'t>,
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
                let is_within = above.iter().all(|(branch, at)| is_within(&page, branch, *at));
                return if is_within { Ok(page) } else { Err(self.damaged_page(&page)) };
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

    pub(super) fn row(&self, leaf: &Page<'t>, index: usize) -> Result<crate::rows::Row<'t>> {
        let row = self.map.and_then(|map| leaf.row(index, map));
        // The value may lie in pages that the file did not have when this was last looked at.
        let row = row.or_else(|| self.refreshed().ok().and_then(|map| leaf.row(index, map)));
        row.ok_or_else(|| self.damaged_page(leaf))
    }

    /// Returns a page, whose header is right.
    pub(super) fn page(&self, number: u64) -> Result<Page<'t>> {
        match self.map.and_then(|map| map.page(number)) {
            Some(page) => Ok(page),
            None => self.refreshed()?.page(number).ok_or_else(|| self.damaged(number)),
        }
    }

    /// Prefetches a page that is likely to be read next.
    pub(super) fn prefetch(&self, number: u64, like: &Page<'_>) {
        if let Some(map) = self.map {
            map.prefetch(number, like);
        }
    }

    pub(super) fn map(&self) -> Option<Map<'t>> {
        self.map
    }

    /// Returns the map with the file's length of now: other processes make the file longer.
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

    /// Tells what is wrong with a page, which is read once more from the file.
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
        let page = match FilePage::read(file, path, number, size) {
            Ok(page) => page,
            Err(error) => return error,
        };
        let entries = (0..page.len()).find_map(|index| match page.kind {
            Kind::Branch => page.branch(index).err(),
            Kind::Leaf => page.leaf(index).err(),
            Kind::Leaf2 | Kind::Overflow => None,
        });
        entries.unwrap_or_else(generic)
    }
}

/// What a search found.
enum Found<'t> {
    Value(&'t [u8]),
    /// No such key; the leaf where it would be, and the entry that it would come before.
    Absent(Page<'t>, usize),
}

/// The branches that a search went through: their numbers, and the entry that it took in each.
#[derive(Default)]
struct Way {
    len: usize,
    branches: [(u64, usize); MAX_WAY],
}

/// Branches that a search remembers. Deeper trees have more than 10^12 rows.
const MAX_WAY: usize = 8;

impl Way {
    /// Returns whether the keys around the way of a search are in order, and the key that it did
    /// not find would be within the leaf: so it is absent.
    #[inline(never)]
    fn shows_absence(&self, map: Option<Map<'_>>, leaf: &Page<'_>, index: usize) -> bool {
        let is_inside = (1..leaf.len()).contains(&index) || self.len == 0;
        let Some(map) = map.filter(|_| is_inside && leaf.is_ordered_at(0, index)) else {
            return false;
        };
        self.branches.get(..self.len).unwrap_or_default().iter().all(|(number, at)| {
            let branch = map.page(*number);
            branch.is_some_and(|branch| {
                branch.is_ordered_at(1, at + 1) && is_within(leaf, &branch, *at)
            })
        })
    }
}

/// Looks a key up; `None` if a page on the way is damaged.
#[inline]
fn find<'t>(map: Map<'t>, root: u64, key: &[u8], way: &mut Way) -> Option<Found<'t>> {
    let mut number = root;
    loop {
        let page = map.page(number)?;
        if !page.is_branch() {
            let index = page.first_above(0, key, true)?;
            if index == page.len() {
                return Some(Found::Absent(page, index));
            }
            let (found, value) = page.row(index, map)?;
            let is_found = found == key;
            return Some(if is_found { Found::Value(value) } else { Found::Absent(page, index) });
        }
        // The first entry of a branch has no key: it is below all others.
        let index = page.first_above(1, key, false)? - 1;
        *way.branches.get_mut(way.len)? = (number, index);
        way.len += 1;
        number = page.child(index)?;
    }
}

/// Returns whether the keys of a leaf are those that a branch has below entry `at`.
fn is_within(leaf: &Page<'_>, branch: &Page<'_>, at: usize) -> bool {
    let is_above = at == 0 || leaf.key(0) >= branch.key(at);
    is_above && (at + 1 >= branch.len() || leaf.key(leaf.len() - 1) < branch.key(at + 1))
}

impl fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("root", &self.root).finish_non_exhaustive()
    }
}
