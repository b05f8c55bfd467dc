//! Checks the leaves that LMDB's cursor is about to read, in a write transaction.

use super::cursor::Cursor;
use super::tree::Tree;
use crate::error::Result;
use crate::range::Bounds;
use std::ops::Bound;

/// A position in the committed leaves of a table, ahead of a cursor of LMDB.
///
/// The leaf of the last row, and the one after it, are checked before LMDB moves on. If the
/// transaction has emptied the leaf after it, LMDB may read a later one, which is checked before
/// its first row is returned.
pub(crate) struct Precheck<'t> {
    cursor: Cursor<'t>,
    /// The first key of the leaf that was checked last; `None` after the last leaf.
    nearest: Option<&'t [u8]>,
    far: Bound<Vec<u8>>,
    is_reverse: bool,
}

impl<'t> Precheck<'t> {
    /// Checks the first two leaves of a range, or the last two if `is_reverse`.
    pub(crate) fn new(tree: Tree<'t>, bounds: Bounds<'_>, is_reverse: bool) -> Result<Self> {
        // LMDB reads until it finds a key beyond the range.
        let (near, far) = if is_reverse {
            ((Bound::Unbounded, bounds.1), bounds.0)
        } else {
            ((bounds.0, Bound::Unbounded), bounds.1)
        };
        let cursor = Cursor::new(tree, near, is_reverse)?;
        let far = far.map(<[u8]>::to_vec);
        let mut ahead = Self { cursor, nearest: None, far, is_reverse };
        ahead.advance()?;
        Ok(ahead)
    }

    /// Checks the leaves up to the one after the leaf that has this key, which LMDB returned.
    #[inline]
    pub(crate) fn advance_past(&mut self, key: &[u8]) -> Result<()> {
        while let Some(nearest) = self.nearest {
            if if self.is_reverse { nearest < key } else { nearest > key } {
                break;
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Checks the remaining leaves of the range: LMDB may have missed rows in them.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.far, Bound::Unbounded) {
            Bound::Included(key) | Bound::Excluded(key) => self.advance_past(&key),
            Bound::Unbounded => {
                while self.nearest.is_some() {
                    self.advance()?;
                }
                Ok(())
            }
        }
    }

    fn advance(&mut self) -> Result<()> {
        self.nearest = None;
        if self.cursor.next_sound_leaf()? {
            self.nearest = self.cursor.check_leaf()?;
        }
        Ok(())
    }
}
