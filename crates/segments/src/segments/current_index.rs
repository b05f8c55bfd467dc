//! The index that this process uses.

use super::Segments;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::index::Index;
use std::sync::atomic::Ordering;

impl Segments {
    /// Opens the index that is there now, if it is another one. `None` if there is none that is
    /// whole and in use.
    pub(crate) fn reopen(&self) -> Result<Option<&Index>> {
        let last = self.indexes.last();
        if let Some(index) = last.filter(|index| index.is_current(&self.folder)) {
            return Ok(Some(index));
        }
        let index = self.indexes.adopt(|last| {
            if last.is_some_and(|last| last.is_current(&self.folder)) {
                return Ok(None);
            }
            let wanted = !self.is_denied.load(Ordering::Relaxed);
            let (opened, writable) = open_index(&self.folder, self.options.guard, wanted)?;
            self.is_denied.store(!writable, Ordering::Relaxed);
            Ok::<_, Error>(opened.filter(Index::in_use))
        })?;
        self.leave(last, index);
        Ok(index.filter(|index| index.is_current(&self.folder)))
    }

    /// Has all threads use an index from now on.
    pub(crate) fn adopt_index(&self, index: Index) -> Result<&Index> {
        let last = self.indexes.last();
        let adopted = self.indexes.adopt(|_| Ok::<_, Error>(Some(index)))?;
        self.leave(last, adopted);
        adopted.ok_or_else(|| {
            let many = std::io::Error::other("it was replaced too often");
            Error::io("use the index of", self.path(), many)
        })
    }

    /// Closes the segments of an index that is no longer used.
    pub(crate) fn leave(&self, last: Option<&Index>, now: Option<&Index>) {
        if let (Some(last), Some(now)) = (last, now)
            && !std::ptr::eq(last, now)
        {
            self.open.fetch_sub(last.close_segments(), Ordering::Relaxed);
        }
    }
}

/// Opens the index of a folder, for writing if that is wanted and the system allows it. Returns
/// whether it is open for writing, too.
pub(crate) fn open_index(
    folder: &Folder,
    guard: bool,
    wanted: bool,
) -> Result<(Option<Index>, bool)> {
    match Index::open(folder, guard, wanted) {
        Err(Error::Io { source, .. }) if wanted && Error::is_denial(&source) => {
            Ok((Index::open(folder, guard, false)?, false))
        }
        opened => Ok((opened?, wanted)),
    }
}
