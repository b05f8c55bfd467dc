//! A cursor over the rows of a range of keys, leaf by leaf, in both directions.

use super::page::{Page, Row, are_ordered, is_at_or_above};
use super::tree::{Ancestors, Tree};
use crate::environment::mapping::prefetch_beyond;
use crate::error::Result;
use crate::range::Bounds;
use std::ops::Bound;

/// A position in a table, and the end of the range.
pub(crate) struct Cursor<'t> {
    tree: Tree<'t>,
    above: Ancestors<'t>,
    /// The current leaf; `None` after the last one.
    leaf: Option<Page<'t>>,
    /// The entries of the leaf that were not read yet: from `next` to `end`.
    next: usize,
    end: usize,
    /// The bound at which reading ends.
    bound: Bound<Vec<u8>>,
    /// Whether the bound is within the current leaf.
    is_last: bool,
    is_reverse: bool,
    /// The distance to the next leaf in memory, in bytes; zero if it is unknown.
    ahead: usize,
}

impl<'t> Cursor<'t> {
    /// Moves to the first row of a range, or to the last one if `is_reverse`.
    pub(crate) fn new(tree: Tree<'t>, bounds: Bounds<'_>, is_reverse: bool) -> Result<Self> {
        let (near, far) = if is_reverse { (bounds.1, bounds.0) } else { bounds };
        let mut cursor = Self {
            tree,
            above: Ancestors::new(),
            leaf: None,
            next: 0,
            end: 0,
            bound: far.map(<[u8]>::to_vec),
            is_last: false,
            is_reverse,
            ahead: 0,
        };
        if tree.root().is_some() {
            cursor.seek(near)?;
        }
        Ok(cursor)
    }

    fn seek(&mut self, near: Bound<&[u8]>) -> Result<()> {
        let reverse = self.is_reverse;
        let leaf = self.tree.seek(&mut self.above, |page| match near {
            Bound::Included(key) | Bound::Excluded(key) => {
                Some(page.first_above(1, key, false)? - 1)
            }
            Bound::Unbounded => Some(if reverse { page.len() - 1 } else { 0 }),
        })?;
        self.enter(leaf)?;
        // Forwards, the first row; backwards, the row after the last one.
        let at = match near {
            Bound::Included(key) => self.tree.search(&leaf, key, !reverse)?,
            Bound::Excluded(key) => self.tree.search(&leaf, key, reverse)?,
            Bound::Unbounded => return Ok(()),
        };
        if reverse {
            self.end = at.max(self.next);
        } else {
            self.next = at.min(self.end);
        }
        Ok(())
    }

    /// Makes a leaf the current one, and finds the entries that are within the range.
    fn enter(&mut self, leaf: Page<'t>) -> Result<()> {
        (self.next, self.end) = (0, leaf.len());
        let (key, equal) = match &self.bound {
            Bound::Included(key) => (&key[..], true),
            Bound::Excluded(key) => (&key[..], false),
            Bound::Unbounded => {
                self.leaf = Some(leaf);
                return Ok(());
            }
        };
        let outermost = leaf.key(if self.is_reverse { 0 } else { leaf.len() - 1 });
        let is_inside = outermost.is_some_and(|outermost| {
            let order = outermost.cmp(key);
            let order = if self.is_reverse { order.reverse() } else { order };
            order.is_lt() || (equal && order.is_eq())
        });
        if !is_inside {
            let at = self.tree.search(&leaf, key, equal == self.is_reverse)?;
            self.is_last = true;
            if self.is_reverse { self.next = at } else { self.end = at }
        }
        self.leaf = Some(leaf);
        Ok(())
    }

    /// Moves to the next leaf in the direction of the scan. Returns whether there is one.
    #[inline(never)]
    fn next_leaf(&mut self) -> Result<bool> {
        let reverse = self.is_reverse;
        let Some(before) = self.leaf.take() else { return Ok(false) };
        let depth = self.above.len();
        while let Some((branch, index)) = self.above.pop() {
            let next = if reverse {
                index.checked_sub(1)
            } else {
                Some(index + 1).filter(|next| *next < branch.len())
            };
            let Some(next) = next else {
                // All pages below the branch were read.
                if branch.is_filled() && branch.is_in_order(1) {
                    continue;
                }
                return Err(self.tree.damaged_page(&branch));
            };
            // The key of the branch between the two leaves.
            let between = branch.key(index.max(next));
            self.check_side(&before, between, reverse)?;
            if self.is_last {
                return Ok(false);
            }
            self.above.push((branch, next));
            let leaf = self
                .tree
                .descend(&mut self.above, |page| Some(if reverse { page.len() - 1 } else { 0 }))?;
            // All leaves have the same depth.
            if self.above.len() != depth {
                return Err(self.tree.damaged_page(&leaf));
            }
            self.check_side(&leaf, between, !reverse)?;
            self.enter(leaf)?;
            self.ahead = self.distance(&leaf);
            return Ok(true);
        }
        Ok(false)
    }

    /// Checks that the keys of a leaf are below a branch key, or, if `above`, not below it.
    fn check_side(&self, leaf: &Page<'t>, between: Option<&[u8]>, above: bool) -> Result<()> {
        let is_on_side = if above {
            let keys = leaf.key(0).zip(between);
            keys.is_some_and(|(key, between)| is_at_or_above(key, between))
        } else {
            are_ordered(leaf.key(leaf.len() - 1), between)
        };
        if is_on_side { Ok(()) } else { Err(self.tree.damaged_page(leaf)) }
    }

    /// Returns the distance from this leaf to the next one in memory, in bytes; zero if it is
    /// unknown. The entries of the next leaf probably have the same offsets as those of this one.
    /// One is prefetched with each row: more at once would delay the rows of this leaf.
    fn distance(&self, leaf: &Page<'t>) -> usize {
        let Some((branch, index)) = self.above.last() else { return 0 };
        let next = if self.is_reverse { index.checked_sub(1) } else { Some(index + 1) };
        let next = next.and_then(|next| branch.child(next));
        next.zip(self.tree.map()).map_or(0, |(next, map)| map.distance(leaf, next))
    }

    /// Returns the next row of this leaf; `None` if it has no more, or if the row is damaged.
    #[inline(always)]
    pub(crate) fn next_in_leaf(&mut self) -> Option<Row<'t>> {
        let (leaf, map) = (self.leaf.as_ref()?, self.tree.map()?);
        if self.next >= self.end {
            return None;
        }
        if self.is_reverse {
            let row = leaf.row(self.end - 1, map)?;
            prefetch_beyond(row.0, self.ahead);
            self.end -= 1;
            return Some(row);
        }
        let row = leaf.row(self.next, map)?;
        prefetch_beyond(row.0, self.ahead);
        self.next += 1;
        Some(row)
    }

    /// Returns the next row, in this leaf or the next one.
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'t>>> {
        loop {
            if let Some(row) = self.next_in_leaf() {
                return Ok(Some(row));
            }
            if let Some(leaf) = self.leaf.filter(|_| self.next < self.end) {
                let index = if self.is_reverse { self.end - 1 } else { self.next };
                let row = self.tree.row(&leaf, index)?;
                if self.is_reverse {
                    self.end -= 1;
                } else {
                    self.next += 1;
                }
                return Ok(Some(row));
            }
            // The leaf is in the processor's cache by now. `visit`, which must be as fast as
            // memory, does not compare keys.
            if let Some(leaf) = self.leaf.filter(|leaf| !leaf.is_filled() || !leaf.is_in_order(0)) {
                return Err(self.tree.damaged_page(&leaf));
            }
            if !self.next_leaf()? {
                return Ok(None);
            }
        }
    }

    /// Checks this leaf, and moves to the next one. Returns whether there is one.
    pub(super) fn next_sound_leaf(&mut self) -> Result<bool> {
        self.check_leaf()?;
        self.next_leaf()
    }

    /// Checks all entries of this leaf. Returns its first key in the direction of the scan; `None`
    /// after the last leaf.
    pub(super) fn check_leaf(&self) -> Result<Option<&'t [u8]>> {
        match self.leaf {
            Some(leaf) if leaf.sound().is_none() => Err(self.tree.damaged_page(&leaf)),
            Some(leaf) => Ok(leaf.key(if self.is_reverse { leaf.len() - 1 } else { 0 })),
            None => Ok(None),
        }
    }

    /// Calls `visit` with each row, until it returns false.
    #[inline(always)]
    pub(crate) fn visit(
        mut self,
        mut visit: impl FnMut(&'t [u8], &'t [u8]) -> Result<bool>,
    ) -> Result<()> {
        if self.is_reverse {
            while let Some((key, value)) = self.next_row()? {
                if !visit(key, value)? {
                    break;
                }
            }
            return Ok(());
        }
        while let (Some(leaf), Some(map)) = (self.leaf, self.tree.map()) {
            let is_whole = self.next == 0 && self.end == leaf.len();
            let (mut filled, ahead) = (0, self.ahead);
            for index in self.next..self.end {
                // The closure is only passed to inlined functions, so that what it refers to can
                // stay in registers.
                let ((key, value), len) = match leaf.row_and_len(index, map) {
                    Some(row) => row,
                    None => self.tree.row_and_len(&leaf, index)?,
                };
                prefetch_beyond(key, ahead);
                filled += len;
                if !visit(key, value)? {
                    return Ok(());
                }
            }
            let is_filled = if is_whole { filled == leaf.filled() } else { leaf.is_filled() };
            if !is_filled {
                return Err(self.tree.damaged_page(&leaf));
            }
            if !self.next_leaf()? {
                break;
            }
        }
        Ok(())
    }
}
