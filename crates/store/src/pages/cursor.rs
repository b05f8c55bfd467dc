//! The rows of a range of keys, leaf after leaf, in both directions.

use super::map::Page;
use super::tree::{Above, Tree};
use crate::error::Result;
use crate::range::Bounds;
use crate::rows::Row;
use std::ops::Bound;

/// A position in a table, and the end of the range that is read.
pub(crate) struct Cursor<'t> {
    tree: Tree<'t>,
    above: Above<'t>,
    /// The leaf; `None` after the last one.
    leaf: Option<Page<'t>>,
    /// Entries of the leaf that are still to be read.
    next: usize,
    end: usize,
    /// The bound at which reading ends.
    bound: Bound<Vec<u8>>,
    /// Whether the bound lies within this leaf.
    is_last: bool,
    is_reverse: bool,
}

impl<'t> Cursor<'t> {
    /// Begins with the first row of a range, or with the last one if `is_reverse`.
    pub(crate) fn new(tree: Tree<'t>, bounds: Bounds<'_>, is_reverse: bool) -> Result<Self> {
        let (near, far) = if is_reverse { (bounds.1, bounds.0) } else { bounds };
        let mut cursor = Self {
            tree,
            above: Above::new(),
            leaf: None,
            next: 0,
            end: 0,
            bound: far.map(<[u8]>::to_vec),
            is_last: false,
            is_reverse,
        };
        if tree.root().is_some() {
            cursor.seek(near)?;
        }
        Ok(cursor)
    }

    fn seek(&mut self, near: Bound<&[u8]>) -> Result<()> {
        let reverse = self.is_reverse;
        let leaf = self.tree.descend(&mut self.above, |page| match near {
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

    /// Takes a leaf, and finds the entries that are within the range.
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

    /// Goes to the next leaf in the direction of the scan. Returns whether there is one.
    #[inline(never)]
    fn next_leaf(&mut self) -> Result<bool> {
        let (before, reverse) = (self.leaf.take(), self.is_reverse);
        if self.is_last {
            return Ok(false);
        }
        let depth = self.above.len();
        while let Some((branch, index)) = self.above.pop() {
            let index = if reverse {
                index.checked_sub(1)
            } else {
                Some(index + 1).filter(|index| *index < branch.len())
            };
            let Some(index) = index else {
                // All pages below it were read.
                if branch.is_filled() && branch.is_in_order(1) {
                    continue;
                }
                return Err(self.tree.damaged_page(&branch));
            };
            self.above.push((branch, index));
            let leaf = self
                .tree
                .descend(&mut self.above, |page| Some(if reverse { page.len() - 1 } else { 0 }))?;
            // All leaves lie at one depth.
            if self.above.len() != depth {
                return Err(self.tree.damaged_page(&leaf));
            }
            self.check_order(before.as_ref(), &leaf)?;
            self.enter(leaf)?;
            self.prefetch(&leaf);
            return Ok(true);
        }
        Ok(false)
    }

    /// Checks that the keys of a leaf are beyond those of the leaf before it.
    fn check_order(&self, before: Option<&Page<'t>>, leaf: &Page<'t>) -> Result<()> {
        let Some(before) = before else { return Ok(()) };
        let (low, high) = if self.is_reverse { (leaf, before) } else { (before, leaf) };
        let is_ordered = low.key(low.len() - 1) < high.key(0);
        if is_ordered { Ok(()) } else { Err(self.tree.damaged_page(leaf)) }
    }

    fn prefetch(&self, leaf: &Page<'t>) {
        if let Some((branch, index)) = self.above.last() {
            let next = if self.is_reverse { index.checked_sub(1) } else { Some(index + 1) };
            if let Some(next) = next.and_then(|next| branch.child(next)) {
                self.tree.prefetch(next, leaf);
            }
        }
    }

    /// Returns the next row of this leaf; `None` if it has no more, or the row is damaged.
    #[inline(always)]
    pub(crate) fn next_in_leaf(&mut self) -> Option<Row<'t>> {
        let (leaf, map) = (self.leaf.as_ref()?, self.tree.map()?);
        if self.next >= self.end {
            return None;
        }
        if self.is_reverse {
            let row = leaf.row(self.end - 1, map)?;
            self.end -= 1;
            return Some(row);
        }
        let row = leaf.row(self.next, map)?;
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
            // The leaf is in the processor's cache by now. `visit`, which is to be as fast as
            // memory, does not compare keys.
            if let Some(leaf) = self.leaf.filter(|leaf| !leaf.is_filled() || !leaf.is_in_order(0)) {
                return Err(self.tree.damaged_page(&leaf));
            }
            if !self.next_leaf()? {
                return Ok(None);
            }
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
            let mut filled = 0;
            for index in self.next..self.end {
                let Some(((key, value), len)) = leaf.row_and_len(index, map) else {
                    return self.visit_slowly(index, visit);
                };
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

    /// As `visit`, from an entry of this leaf on whose value lies in pages that the file did not
    /// have when the transaction began to read, or is damaged.
    #[cold]
    #[inline(never)]
    fn visit_slowly(
        mut self,
        index: usize,
        mut visit: impl FnMut(&'t [u8], &'t [u8]) -> Result<bool>,
    ) -> Result<()> {
        self.next = index;
        while let Some((key, value)) = self.next_row()? {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }
}
