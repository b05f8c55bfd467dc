//! Frees space: selects a segment, moves the records to keep, and evicts the rest.
//!
//! New segments and those that hold what was used stand in two queues. While new ones have more
//! than a tenth of the bytes, the oldest of them goes, otherwise the oldest of the others; so what
//! is put once and never read again passes through without pushing out what is read. Of a segment
//! that goes, records that were used are moved; one of which most was used stays as it is, for
//! another round.
//!
//! A segment may have millions of records. Going through them needs no lock on the folder: it is
//! given back meanwhile, and who reclaims a segment has a lock on it instead. With the lock of the
//! folder only rows of the table are changed. So no other process waits for a segment's records.

mod begin;
mod census;
mod create;
mod evict;
mod moving;
mod prune;
mod reclaim;
mod resume;
mod seal;
mod victim;

use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::Turn;
use crate::index::table::State;
use crate::segment::Refusal;
use crate::segments::Segments;
use std::os::fd::AsFd;
use victim::Search;

impl Segments {
    /// Evicts so many bytes because the disk is full. Whether any were.
    pub(crate) fn free_disk(&self, bytes: u64) -> Result<bool> {
        let Some(mut turn) = self.turn()? else { return Ok(false) };
        turn.seal_orphans();
        let mut search = turn.search()?;
        let wanted = bytes.max(turn.segment_len());
        while search.freed < wanted && turn.evict_one(&mut search, false)? {}
        Ok(search.freed > 0)
    }
}

impl Turn<'_> {
    /// Frees space for so many bytes and a slot. If `kept`, the space may use the reserve of one
    /// segment that is held for moving records.
    pub(crate) fn room(&mut self, need: u64, kept: bool) -> Result<bool> {
        let slack = if kept { 0 } else { self.segment_len() + 8192 };
        let short = self.short_of_disk(need);
        let fits = |turn: &Self, freed: u64| {
            let most = turn.settings.limit.saturating_sub(need.saturating_add(slack));
            turn.used() <= most && turn.index.table().free_slot().is_some() && freed >= short
        };
        if fits(self, 0) {
            return Ok(true);
        }
        self.seal_orphans();
        let mut search = self.search()?;
        // The last way out of the account: those who write the last segments are alive.
        while !fits(self, search.freed) {
            if !self.evict_one(&mut search, kept && need > 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many bytes of disk are missing for so many more.
    fn short_of_disk(&self, need: u64) -> u64 {
        if self.settings.least_free == 0 {
            return 0;
        }
        let available = self.of.options.disk.available(self.of.folder.file().as_fd());
        let wanted = self.settings.least_free.saturating_add(need).saturating_add(self.unwritten());
        wanted.saturating_sub(available.unwrap_or(0))
    }

    /// Evicts one segment. False if none is left that may go. What is pinned is moved unless this
    /// is itself the search for where to move things.
    fn evict_one(&mut self, search: &mut Search, nested: bool) -> Result<bool> {
        while let Some((slot, row)) = self.victim(search) {
            let number = self.index.table().number(slot);
            let gone = match self.of.segment_of(self.index, slot, number) {
                Ok(segment) => self.reclaim(slot, &row, &segment, search, nested)?,
                Err(Refusal::Missing | Refusal::Damaged) => {
                    self.index.sets().sweep(|place| place.slot == slot);
                    true
                }
                // It may be whole.
                Err(Refusal::System(_) | Refusal::Newer) => false,
            };
            if gone {
                self.evict(slot, &row, search)?;
                return Ok(true);
            }
            search.stay.insert(slot);
        }
        Ok(false)
    }

    /// How many bytes of reserved room are not written yet.
    fn unwritten(&self) -> u64 {
        let rows = self.index.table().rows().filter(|(_, row)| row.state == State::Writing);
        let left = rows.map(|(_, row)| {
            let name = segment_name(row.file);
            let blocks = self.of.folder.stat(&name).map_or(0, |stat| stat.st_blocks);
            let len = blocks.cast_unsigned() * 512;
            row.counted.saturating_sub(len)
        });
        left.sum()
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
        segments.clear().expect("room");
        segments.prune(None).expect("room");
        let again = Segments::open(place.path(), &Options::new()).expect("a folder");
        assert_eq!(again.verify().good, 3);
        again.clear().expect("room");
        assert_eq!(again.verify().good, 3, "they can be read again, and are moved");
    }

    #[test]
    fn a_segment_that_the_system_refuses_to_read_can_be_evicted() {
        let place = tempfile::tempdir().expect("a folder");
        let segments = folder_with_unreadable_segment(place.path());
        segments.prune(None).expect("room");
        assert_eq!(segments.stat().segments, 1, "its parts may not have expired");
        segments.clear().expect("room");
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
        let mut turn = segments.own_turn().expect("a turn");
        turn.beginning = true;
        let mut search = Search { forced: true, ..Search::default() };
        assert!(turn.evict_one(&mut search, false).expect("it is evicted"));
        // The process dies before another segment gets the file.
        assert!(turn.spare.take().is_some());
        drop(turn);
        let next = open();
        next.prune(None).expect("a turn");
        assert_eq!((next.stat().segments, next.stat().parts), (0, 0));
    }
}
