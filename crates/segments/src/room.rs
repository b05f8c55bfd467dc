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

use crate::error::Result;
use crate::folder::segment_name;
use crate::index::Index;
use crate::layout::index as at;
use crate::layout::segment::HEADER_LEN;
use crate::lock::{Byte, Mode, is_free, on_byte};
use crate::pins::{self, Pins};
use crate::record::{Head, Record};
use crate::segment::{Refusal, Segment};
use crate::segments::Segments;
use crate::sets::Place;
use crate::table::{Row, State};
use crate::turn::{Spare, Turn, counted};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// New segments are evicted first while they have more than one of so many bytes.
const NEW_SHARE: u64 = 10;

/// What a search for room has found out.
#[derive(Default)]
struct Search {
    pins: Pins,
    /// Slots that stay: looked at already, or full of what is pinned.
    stay: BTreeSet<u32>,
    /// Used records are evicted, too.
    forced: bool,
    freed: u64,
}

/// A record that is to be saved.
#[derive(Clone, Copy)]
struct Live {
    offset: u64,
    pinned: bool,
}

/// What is in a segment that is to go.
#[derive(Default)]
struct Census {
    /// Bytes of data, of what is to be saved, and of what of it is pinned.
    all: u64,
    saved: u64,
    pinned: u64,
    live: Vec<Live>,
    /// Whether the system did not read all of it: there may be more records.
    is_refused: bool,
}

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
    fn search(&self) -> Result<Search> {
        Ok(Search { pins: pins::load(&self.of.folder)?, ..Search::default() })
    }

    /// Bytes that are in use or reserved.
    pub(crate) fn used(&self) -> u64 {
        let others = self.alone.others + counted(self.index.geometry.file_len());
        let rows = self.index.table().rows();
        rows.fold(others, |sum, (_, row)| sum.saturating_add(row.counted))
    }

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

    /// Returns the next segment to reclaim.
    fn victim(&self, search: &mut Search) -> Option<(u32, Row)> {
        let table = self.index.table();
        loop {
            let sealed = table.rows().filter(|(_, row)| row.state == State::Sealed);
            let (mut new, mut all) = (0, 0);
            let mut oldest: [Option<(u32, Row)>; 2] = [None, None];
            for (slot, row) in sealed {
                all += row.counted;
                new += if row.kept { 0 } else { row.counted };
                let place = &mut oldest[usize::from(row.kept)];
                let older = place.is_none_or(|(_, found)| row.turn < found.turn);
                if older && !search.stay.contains(&slot) && self.moving != Some(slot) {
                    *place = Some((slot, row));
                }
            }
            let [oldest_new, oldest_kept] = oldest;
            let found = if new * NEW_SHARE > all {
                oldest_new.or(oldest_kept)
            } else {
                oldest_kept.or(oldest_new)
            };
            if found.is_some() || search.forced {
                return found;
            }
            search.forced = true;
            search.stay.clear();
        }
    }

    /// Saves what is to be saved of a segment and takes the rest out of the index. False if the
    /// segment stays. The lock of the folder is given back meanwhile.
    fn reclaim(
        &mut self,
        slot: u32,
        row: &Row,
        segment: &Segment,
        search: &Search,
        nested: bool,
    ) -> Result<bool> {
        let Some(work) = self.work_on(row) else { return Ok(false) };
        // A record that is written and not entered yet would lead to the slot for ever.
        if !is_free(&work, Byte::Writer) {
            return Ok(false);
        }
        let index = self.index;
        self.release();
        let census = self.census(slot, segment, search);
        // What the system did not read may be pinned.
        if census.is_refused && !search.pins.is_empty() {
            self.retake()?;
            return Ok(false);
        }
        // In the midst of moving there is nowhere to move to: what is not pinned goes.
        let stays = census.saved * 2 > census.all || nested && census.pinned > 0;
        if stays && (!search.forced || census.pinned > 0) {
            self.forget_uses(slot, segment, &census.live);
            self.retake()?;
            self.let_stay(slot, row);
            return Ok(false);
        }
        self.moving = Some(slot).filter(|_| !nested).or(self.moving);
        let saved = if nested { Ok(true) } else { self.save(slot, segment, &census.live) };
        self.moving = self.moving.filter(|_| nested);
        let saved = saved?;
        if saved {
            self.take_out(slot, segment);
        }
        self.retake()?;
        Ok(saved && self.is_unchanged(index, slot, row))
    }

    /// Returns whether a segment can be evicted whose words were removed from an index without the
    /// lock of the folder. If another process has grown the index meanwhile, the new index may have
    /// these words.
    fn is_unchanged(&self, index: &Index, slot: u32, row: &Row) -> bool {
        std::ptr::eq(index, self.index) && self.index.table().row(slot) == Some(*row)
    }

    /// Locks a segment whose records are to be gone through. `None` if another process does.
    pub(crate) fn work_on(&self, row: &Row) -> Option<File> {
        let file = self.of.folder.open_file(&segment_name(row.file), OFlags::RDWR).ok()?;
        on_byte(&file, Byte::Work, Mode::Alone).unwrap_or(false).then_some(file)
    }

    /// Looks at all records of a segment.
    fn census(&self, slot: u32, segment: &Segment, search: &Search) -> Census {
        let now = self.of.options.clock.now_ms();
        let sets = self.index.sets();
        let mut census = Census::default();
        let gaps = segment.walk(|offset, head| {
            let place = Place { slot, offset };
            let mut hot = 0;
            let mut here = 0;
            for (part, hash) in head.hashes().enumerate() {
                let len = head.range(part).end - head.range(part).start;
                let uses = sets.uses(hash, place);
                here += if uses.is_some() { len } else { 0 };
                hot += if uses.is_some_and(|uses| uses > 0) { len } else { 0 };
            }
            census.all += head.data_len();
            let there = here > 0 && !head.expired(now);
            let pinned = there && search.pins.contains_key(&head.name);
            let worth = there && !search.forced && hot * 4 >= head.data_len();
            if pinned || worth {
                census.saved += head.data_len();
                census.pinned += if pinned { head.data_len() } else { 0 };
                census.live.push(Live { offset, pinned });
            }
        });
        census.is_refused = gaps.refused.is_some();
        census
    }

    /// Takes what leads to a segment out of the index.
    fn take_out(&self, slot: u32, segment: &Segment) {
        let sets = self.index.sets();
        let gaps = segment.walk(|offset, head| {
            for hash in head.hashes() {
                sets.remove(hash, Place { slot, offset });
            }
        });
        // What was a record tells no more what led to it.
        if gaps.any {
            sets.sweep(|place| place.slot == slot);
        }
    }

    /// Takes one from the uses of records that stay.
    fn forget_uses(&self, slot: u32, segment: &Segment, live: &[Live]) {
        let sets = self.index.sets();
        for &Live { offset, .. } in live {
            for hash in segment.read_head(offset).iter().flat_map(Head::hashes) {
                sets.forget_use(hash, Place { slot, offset });
            }
        }
    }

    /// Another round for a segment, at the end of the queue of those that hold what was used.
    fn let_stay(&mut self, slot: u32, row: &Row) {
        let table = self.index.table();
        if table.row(slot) == Some(*row) {
            let turn = self.next(at::TURN);
            self.changing(|| table.set_row(slot, &Row { kept: true, turn, ..*row }));
        }
    }

    /// Moves records to another segment. Returns false if a pinned one could not be moved; others
    /// are dropped then. Takes the lock of the folder only to begin a segment.
    fn save(&mut self, slot: u32, segment: &Segment, live: &[Live]) -> Result<bool> {
        for &Live { offset, pinned } in live {
            let is_moved = match segment.try_head(offset) {
                Ok(Some(head)) => self.save_record(Place { slot, offset }, segment, &head)?,
                // The head is damaged, or the file has been truncated.
                Ok(None) => true,
                Err(_) => false,
            };
            if !is_moved && pinned {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn save_record(&mut self, old: Place, segment: &Segment, head: &Head) -> Result<bool> {
        let mut data = vec![0; head.data_len() as usize];
        match segment.try_read(head.data_at, &mut data) {
            Ok(true) => {}
            // The file has been truncated.
            Ok(false) => return Ok(true),
            Err(_) => return Ok(false),
        }
        let record = Record {
            name: head.name,
            first: head.first,
            label: &head.label,
            expiry: head.expiry,
            parts: &head.parts,
            data: &data,
        };
        let len = record.len();
        let process = std::process::id();
        let family = self.index.family;
        let own = |open: &crate::append::Appender| open.process == process && open.family == family;
        let mut open = self.alone.kept.take().filter(own);
        let mut space = open.as_mut().and_then(|open| open.take(len));
        if space.is_none() {
            self.retake()?;
            if let Some(full) = open.take() {
                self.seal(full);
            }
            let begun = self.begin(len, true)?;
            self.release();
            let Ok(mut begun) = begun else { return Ok(false) };
            space = begun.take(len);
            open = Some(begun);
        }
        self.alone.kept = open;
        let Some(space) = space else { return Ok(false) };
        if self.of.write_at(&space, &record).is_err() {
            return Ok(false);
        }
        let new = Place { slot: space.slot, offset: space.offset };
        let moved = self.index.word(at::MOVED);
        moved.fetch_add(len, Ordering::Relaxed);
        for hash in head.hashes() {
            self.index.sets().lead_on(hash, old, new);
        }
        Ok(true)
    }

    /// Removes a segment. From the moment its number is gone no thread begins to read it; its bytes
    /// are freed at once unless a reader has them lent. If another segment is being begun, it gets
    /// the file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not remove the file. The row and the file stay
    /// then, but the words of its parts have been removed already, so they are misses.
    fn evict(&mut self, slot: u32, row: &Row, search: &mut Search) -> Result<()> {
        let table = self.index.table();
        let folder = &self.of.folder;
        let name = segment_name(row.file);
        let dirty = self.index.word(at::DIRTY);
        let before = dirty.swap(1, Ordering::AcqRel);
        table.set_number(slot, 0);
        let alone = |file: &File, byte| on_byte(file, byte, Mode::Alone).unwrap_or(false);
        let file = folder.open_file(&name, OFlags::RDWR).ok();
        let file = file.filter(|file| alone(file, Byte::Lent));
        // Other processes may read a segment through an older index, which was deleted: they do not
        // see that it is evicted, and would read the next segment.
        let is_own = row.file >= self.index.word(at::FIRST_OWN).load(Ordering::Relaxed);
        let is_wanted = is_own && self.beginning && self.spare.is_none();
        let is_spare = |file: &File| is_wanted && alone(file, Byte::Writer);
        match file {
            // If this process dies, the file must not be taken for the segment that it was.
            Some(file) if is_spare(&file) && blank_header(&file).is_ok() => {
                self.spare = Some(Spare { file, name });
            }
            file => {
                if let Err(errno) = folder.remove(&name) {
                    table.set_number(slot, row.file);
                    dirty.store(before, Ordering::Release);
                    return Err(folder.error("remove", &name, errno));
                }
                // Other processes may have the file open for long.
                let _ = file.map(|file| file.set_len(0));
            }
        }
        table.set_row(slot, &Row::FREE);
        // A spare file is in no row: see `drop_spare`.
        dirty.store(if self.spare.is_some() { 1 } else { before }, Ordering::Release);
        search.stay.insert(slot);
        search.freed += row.counted;
        self.index.word(at::EVICTED).fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Evicts everything but what is pinned and what live processes append to, or until no more
    /// than so many bytes are used.
    pub(crate) fn shrink(&mut self, to: u64) -> Result<()> {
        self.seal_orphans();
        let mut search = self.search()?;
        search.forced = to == 0;
        while self.used() > to && self.evict_one(&mut search, false)? {}
        Ok(())
    }

    /// Evicts segments that nothing was written to since a time, in milliseconds since 1970. What
    /// is pinned is moved or stays.
    pub(crate) fn drop_older(&mut self, than_ms: u64) -> Result<()> {
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
    pub(crate) fn drop_dead(&mut self) -> Result<()> {
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

fn blank_header(file: &File) -> io::Result<()> {
    file.write_all_at(&[0; HEADER_LEN], 0)
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
