//! Making the index from the segments.

use super::grow::free_pages;
use crate::error::Result;
use crate::folder::settings::Settings;
use crate::index::Index;
use crate::index::geometry::Geometry;
use crate::layout::{INDEX_NAME, index as at};
use crate::options::segment_len;
use crate::random::random;
use crate::segments::{Alone, Segments};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

impl Segments {
    /// Makes an index from the segments. The caller has the folder to himself, and has found that
    /// there is no index, or one that is damaged or too big.
    pub(crate) fn rebuild(&self, alone: &mut Alone, settings: Settings) -> Result<&Index> {
        let last = self.indexes.last();
        let usual = segment_len(&self.options, settings.limit);
        let geometry = Geometry::suit(settings.limit, usual, settings.parts);
        // Others may have it mapped and not know. Then it goes before there is another one: both
        // would count.
        match self.folder.open_file(INDEX_NAME, OFlags::RDWR) {
            Ok(file) => {
                let len = file.metadata().map_or(0, |found| found.len());
                let _ = file.write_all_at(&at::REPLACED.to_le_bytes(), at::RETIRED as u64);
                free_pages(&file, len);
            }
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ISDIR) => {}
            Err(errno) => return Err(self.folder.error("open", INDEX_NAME, errno)),
        }
        let removed = self.folder.remove(INDEX_NAME);
        removed.map_err(|errno| self.folder.error("remove", INDEX_NAME, errno))?;
        let guard = self.options.guard;
        let index = Index::make(&self.folder, geometry, random(), settings, guard)?;
        index.word(at::DIRTY).store(1, Ordering::Release);
        Index::publish(&self.folder)?;
        if let Some(last) = last {
            last.retire(at::REPLACED);
            self.counts.rebuilt();
        }
        // The turn of whoever asked finds the mark and enters the segments that are there.
        (alone.kept, alone.settled) = (None, None);
        self.adopt_index(index)
    }
}
