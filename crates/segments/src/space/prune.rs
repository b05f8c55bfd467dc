//! Pruning: evicting on request.

use super::victim::Search;
use crate::error::Result;
use crate::guard::Turn;
use crate::index::table::State;
use crate::index::word::Place;
use crate::lock::{Byte, is_free};
use crate::segments::Segments;

impl Segments {
    /// Evicts what has expired, then more until no more than so many bytes are used. Answers how
    /// many are.
    pub fn prune(&self, to: Option<u64>) -> Result<u64> {
        let mut turn = self.turn_without_writers()?;
        turn.seal_orphans();
        turn.drop_dead()?;
        if let Some(to) = to {
            turn.shrink(to.max(1))?;
        }
        Ok(turn.used())
    }

    /// Evicts what was put before a time, in milliseconds since 1970, by whole segments: those
    /// that nothing was written to since. What is pinned stays, and what was moved because it is
    /// used counts as put when it was moved. Answers how many bytes are used.
    pub fn prune_older(&self, than_ms: u64) -> Result<u64> {
        let mut turn = self.turn_without_writers()?;
        turn.seal_orphans();
        turn.drop_older(than_ms)?;
        Ok(turn.used())
    }

    /// Evicts everything but what is pinned and what other processes are writing to. Answers how
    /// many bytes are still used.
    pub fn clear(&self) -> Result<u64> {
        let mut turn = self.turn_without_writers()?;
        turn.shrink(0)?;
        Ok(turn.used())
    }

    /// Waits for a turn, and closes the segments that this process appends to.
    fn turn_without_writers(&self) -> Result<Turn<'_>> {
        let mut turn = self.own_turn()?;
        drop(self.lock_writer().take());
        turn.alone.kept = None;
        Ok(turn)
    }
}

impl Turn<'_> {
    /// Evicts everything but what is pinned and what live processes append to, or until no more
    /// than so many bytes are used.
    fn shrink(&mut self, to: u64) -> Result<()> {
        self.seal_orphans();
        let mut search = self.search()?;
        search.forced = to == 0;
        while self.used() > to && self.evict_one(&mut search, false)? {}
        Ok(())
    }

    /// Evicts segments that nothing was written to since a time, in milliseconds since 1970. What
    /// is pinned is moved or stays.
    fn drop_older(&mut self, than_ms: u64) -> Result<()> {
        let mut search = Search { forced: true, ..self.search()? };
        let rows: Vec<_> = self.index.table().rows().collect();
        for (slot, row) in rows.into_iter().filter(|(_, row)| row.state == State::Sealed) {
            let Some(segment) = self.of.segment(self.index, slot) else { continue };
            // Moving what is pinned may have evicted it, or begun another one in its place.
            let there = self.index.table().row(slot) == Some(row);
            let old = there && segment.written_ms() < than_ms;
            if old && self.reclaim(slot, &row, &segment, &search, false)? {
                self.evict(slot, &row, &mut search)?;
            }
        }
        Ok(())
    }

    /// Evicts the segments whose parts have all expired or were removed.
    fn drop_dead(&mut self) -> Result<()> {
        let now = self.of.options.clock.now_ms();
        let mut search = Search::default();
        let rows: Vec<_> = self.index.table().rows().collect();
        for (slot, row) in rows.into_iter().filter(|(_, row)| row.state == State::Sealed) {
            let Some(segment) = self.of.segment(self.index, slot) else { continue };
            let Some(work) = self.work_on(&row).filter(|_| !row.unread) else { continue };
            if !is_free(&work, Byte::Writer) {
                continue;
            }
            let index = self.index;
            self.release();
            let mut live = false;
            let sets = index.sets();
            let gaps = segment.walk(|offset, head| {
                let place = Place { slot, offset };
                live |= !head.expired(now)
                    && head.hashes().any(|hash| sets.uses(hash, place).is_some());
            });
            live |= gaps.refused.is_some();
            if !live {
                // The words of expired parts.
                self.take_out(slot, &segment);
            }
            self.retake()?;
            if !live && self.is_unchanged(index, slot, &row) {
                self.evict(slot, &row, &mut search)?;
            }
        }
        Ok(())
    }
}
