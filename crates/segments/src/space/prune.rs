//! Evicting segments down to a size, by age, or without live parts.

use super::victim::Search;
use crate::error::Result;
use crate::guard::FolderGuard;
use crate::index::table::State;
use crate::index::word::Place;
use crate::lock::{Byte, is_unlocked};

impl FolderGuard<'_> {
    /// Evicts segments until at most `max_bytes` are used; with 0, everything except pinned records
    /// and segments with a live writer.
    pub(crate) fn shrink(&mut self, max_bytes: u64) -> Result<()> {
        self.seal_orphans();
        let mut search = self.search()?;
        search.evicts_used = max_bytes == 0;
        while self.used() > max_bytes && self.evict_one(&mut search, false)? {}
        Ok(())
    }

    /// Evicts segments to which nothing was written since a time, in milliseconds since 1970. Moves
    /// pinned records or keeps their segment.
    pub(crate) fn evict_older(&mut self, than_ms: u64) -> Result<()> {
        let mut search = Search { evicts_used: true, ..self.search()? };
        let rows: Vec<_> = self.index.table().rows().collect();
        for (slot, row) in rows.into_iter().filter(|(_, row)| row.state == State::Sealed) {
            let Some(segment) = self.segments.segment(self.index, slot) else { continue };
            // Moving pinned records may have evicted it, or begun another segment in its slot.
            let is_unchanged = self.index.table().row(slot) == Some(row);
            let is_old = is_unchanged && segment.written_ms() < than_ms;
            if is_old && self.reclaim(slot, &row, &segment, &search, false)? {
                self.evict(slot, &row, &mut search)?;
            }
        }
        Ok(())
    }

    /// Evicts the segments whose parts have all expired or were removed.
    pub(crate) fn evict_dead(&mut self) -> Result<()> {
        let now = self.segments.options.clock.now_ms();
        let mut search = Search::default();
        let rows: Vec<_> = self.index.table().rows().collect();
        for (slot, row) in rows.into_iter().filter(|(_, row)| row.state == State::Sealed) {
            let Some(segment) = self.segments.segment(self.index, slot) else { continue };
            let Some(scan_lock) = self.lock_for_scan(&row).filter(|_| !row.is_partly_indexed)
            else {
                continue;
            };
            if !is_unlocked(&scan_lock, Byte::Writer) {
                continue;
            }
            let index = self.index;
            self.release();
            let mut has_live_parts = false;
            let sets = index.sets();
            let gaps = segment.scan(|offset, head| {
                let place = Place { slot, offset };
                has_live_parts |= !head.is_expired(now)
                    && head.hashes().any(|hash| sets.uses(hash, place).is_some());
            });
            has_live_parts |= gaps.error.is_some();
            if !has_live_parts {
                // The index may still have words of expired parts.
                self.remove_words(slot, &segment);
            }
            self.retake()?;
            if !has_live_parts && self.is_unchanged(index, slot, &row) {
                self.evict(slot, &row, &mut search)?;
            }
        }
        Ok(())
    }
}
