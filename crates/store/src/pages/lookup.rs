//! Lookups in a table.

use super::bounds::KeyBounds;
use super::cursor::Cursor;
use super::page::{Gap, Page, are_ordered, is_at_or_above};
use super::tree::{MAX_DEPTH, Tree};
use crate::environment::mapping::Map;
use crate::error::Result;
use std::ops::Bound;

impl<'t> Tree<'t> {
    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a page on the path is damaged, or the leaf that
    /// would have an absent key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let Some(root) = self.root() else { return Ok(None) };
        match self.map().and_then(|map| find(map, root, key)) {
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
}

/// The result of a search.
enum Found<'t> {
    Value(&'t [u8]),
    Absent,
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
            && (gap.below.is_some() || self.follows_previous_leaf(map))
            && (gap.above.is_some() || self.precedes_next_leaf(map))
    }

    /// Returns whether the previous leaf has only keys below those of this one; false if it is not
    /// below the same branch.
    fn follows_previous_leaf(&self, map: Map<'t>) -> bool {
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
    fn precedes_next_leaf(&self, map: Map<'t>) -> bool {
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
