//! Space for segments: beginning them, and freeing space for them.
//!
//! Segments are in two eviction queues, as in S3-FIFO. New segments are in the small queue;
//! segments with records that were moved or kept because they were used are in the main queue.
//! While the small queue has more than a tenth of the bytes, its oldest segment is reclaimed,
//! otherwise the oldest one of the main queue. So records that are never read again pass through
//! without displacing those that are read. Reclaiming a segment moves its used and pinned records
//! to another segment and evicts the rest. If most of a segment is used, it is requeued instead.
//!
//! A segment may have millions of records. They are scanned without the table lock, under the scan
//! lock (byte 2) of the segment. The table lock is held only to change rows, so no other process
//! waits for a scan.

mod begin;
mod census;
mod create;
mod evict;
mod move_records;
mod prune;
mod reclaim;
mod resume;
mod seal;
mod victim;

use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::FolderGuard;
use crate::index::table::State;
use crate::segment::OpenError;
use std::os::fd::AsFd;
use victim::Search;

impl FolderGuard<'_> {
    /// Evicts at least this many bytes because the disk is full. Returns whether it evicted any.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`FolderGuard::free_space`].
    pub(crate) fn evict_bytes(&mut self, bytes: u64) -> Result<bool> {
        self.seal_orphans();
        let mut search = self.search()?;
        let wanted = bytes.max(self.segment_len());
        while search.freed_bytes < wanted && self.evict_one(&mut search, false)? {}
        Ok(search.freed_bytes > 0)
    }

    /// Frees space for so many bytes and a slot. If `may_use_reserve`, the space may include the
    /// reserve of one segment that is held for moving records. Returns false if there is not
    /// enough.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or [`Error::Busy`](crate::Error::Busy) if the table lock
    /// was lost.
    pub(crate) fn free_space(&mut self, need: u64, may_use_reserve: bool) -> Result<bool> {
        let reserve = if may_use_reserve { 0 } else { self.segment_len() + 8192 };
        let missing = self.missing_disk_bytes(need);
        let fits = |guard: &Self, freed: u64| {
            let max = guard.settings.limit.saturating_sub(need.saturating_add(reserve));
            guard.used() <= max && guard.index.table().free_slot().is_some() && freed >= missing
        };
        if fits(self, 0) {
            return Ok(true);
        }
        self.seal_orphans();
        let mut search = self.search()?;
        // The loop ends when the remaining segments are pinned or have a live writer.
        while !fits(self, search.freed_bytes) {
            if !self.evict_one(&mut search, may_use_reserve && need > 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the bytes that the disk lacks for so many more bytes.
    fn missing_disk_bytes(&self, need: u64) -> u64 {
        if self.settings.min_free == 0 {
            return 0;
        }
        let available = self.segments.options.disk.available(self.segments.folder.file().as_fd());
        let wanted =
            self.settings.min_free.saturating_add(need).saturating_add(self.unwritten_bytes());
        wanted.saturating_sub(available.unwrap_or(0))
    }

    /// Evicts one segment. Returns false if no other one can be evicted. If `is_nested`, this
    /// search makes space for moving records: then pinned records cannot be moved.
    fn evict_one(&mut self, search: &mut Search, is_nested: bool) -> Result<bool> {
        while let Some((slot, row)) = self.victim(search) {
            let number = self.index.table().number(slot);
            let is_gone = match self.segments.segment_of(self.index, slot, number) {
                Ok(segment) => self.reclaim(slot, &row, &segment, search, is_nested)?,
                Err(OpenError::Missing | OpenError::Damaged) => {
                    self.index.sets().sweep(|place| place.slot == slot);
                    true
                }
                // The segment may be intact.
                Err(OpenError::System(_) | OpenError::Newer) => false,
            };
            if is_gone {
                self.evict(slot, &row, search)?;
                return Ok(true);
            }
            search.skipped_slots.insert(slot);
        }
        Ok(false)
    }

    /// Returns the reserved bytes that are not written yet.
    fn unwritten_bytes(&self) -> u64 {
        let rows = self.index.table().rows().filter(|(_, row)| row.state == State::Writing);
        let unwritten = rows.map(|(_, row)| {
            let name = segment_name(row.file_number);
            let blocks = self.segments.folder.stat(&name).map_or(0, |stat| stat.st_blocks);
            let len = blocks.cast_unsigned() * 512;
            row.charged.saturating_sub(len)
        });
        unwritten.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Search;
    use crate::segment::tests::{folder_with_unreadable_segment, put_three};
    use crate::{Options, Segments};

    #[test]
    fn pinned_parts_that_the_system_refuses_to_read_stay() {
        let place = tempfile::tempdir().expect("a folder");
        let segments = folder_with_unreadable_segment(place.path());
        segments.pin([3; 16], true).expect("a pin");
        segments.clear().expect("space");
        segments.prune(None).expect("space");
        let again = Segments::open(place.path(), &Options::new()).expect("a folder");
        assert_eq!(again.verify().good, 3);
        again.clear().expect("space");
        assert_eq!(again.verify().good, 3, "they can be read again, and are moved");
    }

    #[test]
    fn a_segment_that_the_system_refuses_to_read_can_be_evicted() {
        let place = tempfile::tempdir().expect("a folder");
        let segments = folder_with_unreadable_segment(place.path());
        segments.prune(None).expect("space");
        assert_eq!(segments.stat().segments, 1, "its parts may not have expired");
        segments.clear().expect("space");
        assert_eq!((segments.stat().segments, segments.stat().parts), (0, 0));
        put_three(&segments);
        assert_eq!(segments.verify().good, 3);
    }

    #[test]
    fn a_segment_that_was_evicted_by_a_process_that_died_does_not_return() {
        let place = tempfile::tempdir().expect("a folder");
        let open = || Segments::open(place.path(), &Options::new()).expect("a folder");
        put_three(&open());
        let segments = open();
        let mut guard = segments.folder_guard().expect("exclusive access");
        guard.is_beginning = true;
        let mut search = Search { evicts_used: true, ..Search::default() };
        assert!(guard.evict_one(&mut search, false).expect("it is evicted"));
        // The process dies before another segment gets the file.
        assert!(guard.spare_file.take().is_some());
        drop(guard);
        let next = open();
        next.prune(None).expect("exclusive access");
        assert_eq!((next.stat().segments, next.stat().parts), (0, 0));
    }
}
