//! Rebuilding the index from the segments.

use super::grow::free_pages;
use crate::error::Result;
use crate::folder::settings::Settings;
use crate::index::Index;
use crate::index::geometry::Geometry;
use crate::layout::{INDEX_NAME, index as at};
use crate::options::segment_len;
use crate::random::random;
use crate::segments::{ExclusiveState, Segments};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

impl Segments {
    /// Creates an index without entries and marks it as dirty, so that the guard adds all segments.
    /// The caller has exclusive access, and found that there is no index, or one that is damaged or
    /// too large.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn rebuild(
        &self,
        exclusive: &mut ExclusiveState,
        settings: Settings,
    ) -> Result<&Index> {
        let last = self.indexes.latest();
        let segment_len = segment_len(&self.options, settings.limit);
        let geometry = Geometry::for_limit(settings.limit, segment_len, settings.parts);
        // Other processes may have the old index mapped. It is removed before the new one is
        // created: otherwise both would count towards the limit.
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
        let index = Index::create(&self.folder, geometry, random(), settings, guard)?;
        index.word(at::DIRTY).store(1, Ordering::Release);
        Index::publish(&self.folder)?;
        if let Some(last) = last {
            last.set_retired(at::REPLACED);
            self.counters.rebuilt();
        }
        // The guard of the caller finds the mark `dirty` and adds the segments.
        (exclusive.move_appender, exclusive.segments_since_repair) = (None, None);
        self.adopt_index(index)
    }
}
