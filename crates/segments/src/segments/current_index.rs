//! The index that this process uses.

use super::Segments;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::index::Index;
use std::sync::atomic::Ordering;

impl Segments {
    /// Opens the index at its name if it is another one. `None` if there is no valid index that is
    /// in use.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Index::open`].
    pub(crate) fn reopen(&self) -> Result<Option<&Index>> {
        let previous = self.indexes.latest();
        if let Some(index) = previous.filter(|index| index.is_current(&self.folder)) {
            return Ok(Some(index));
        }
        let index = self.indexes.adopt(|last| {
            if last.is_some_and(|last| last.is_current(&self.folder)) {
                return Ok(None);
            }
            let for_writing = !self.is_denied.load(Ordering::Relaxed);
            let (opened, is_writable) = open_index(&self.folder, self.options.guard, for_writing)?;
            self.is_denied.store(!is_writable, Ordering::Relaxed);
            Ok::<_, Error>(opened.filter(Index::is_in_use))
        })?;
        self.close_replaced(previous, index);
        Ok(index.filter(|index| index.is_current(&self.folder)))
    }

    /// Makes all threads use an index.
    ///
    /// # Errors
    ///
    /// Returns an error if the index was replaced 2^32 times.
    pub(crate) fn adopt_index(&self, index: Index) -> Result<&Index> {
        let previous = self.indexes.latest();
        let adopted = self.indexes.adopt(|_| Ok::<_, Error>(Some(index)))?;
        self.close_replaced(previous, adopted);
        adopted.ok_or_else(|| {
            let error = std::io::Error::other("it was replaced too often");
            Error::io("use the index of", self.path(), error)
        })
    }

    /// Closes the segments of an index that was replaced.
    pub(crate) fn close_replaced(&self, previous: Option<&Index>, current: Option<&Index>) {
        if let (Some(previous), Some(current)) = (previous, current)
            && !std::ptr::eq(previous, current)
        {
            self.open_count.fetch_sub(previous.close_segments(), Ordering::Relaxed);
        }
    }
}

/// Opens the index of a folder, for writing if `for_writing` and the system allows it. Returns
/// whether it is open for writing, too.
///
/// # Errors
///
/// Returns the same errors as [`Index::open`].
pub(crate) fn open_index(
    folder: &Folder,
    guard: bool,
    for_writing: bool,
) -> Result<(Option<Index>, bool)> {
    match Index::open(folder, guard, for_writing) {
        Err(Error::Io { source, .. }) if for_writing && Error::is_denial(&source) => {
            Ok((Index::open(folder, guard, false)?, false))
        }
        opened => Ok((opened?, for_writing)),
    }
}
