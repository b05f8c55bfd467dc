//! Reading parts: copied out with a call to the system or, if they are checked on the way, from the
//! map.

use crate::id::Id;
use crate::index::Index;
use crate::options::Check;
use crate::record::{Head, known};
use crate::segment::{Lent, Segment};
use crate::segments::Segments;
use crate::sets::Place;
use crate::sum::{self, checksum};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that are read and summed up at a time.
const PIECE: usize = 128 << 10;
/// Parts of so many bytes are copied from the map when they are checked once more.
const MAPPED: u64 = 64 << 10;

/// A record that was found.
pub struct Found<'a> {
    pub(crate) segments: &'a Segments,
    pub(crate) index: &'a Index,
    pub(crate) segment: Arc<Segment>,
    pub(crate) head: Arc<Head>,
    pub(crate) place: Place,
}

/// Why bytes were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The segment was evicted since the record was found.
    Gone,
    /// The bytes of the part with this number are damaged. It is no longer there.
    Damaged(u64),
}

impl Found<'_> {
    /// The numbers of the parts that the record has.
    #[inline]
    pub fn numbers(&self) -> Range<u64> {
        self.head.first..self.head.first + self.head.parts.len() as u64
    }

    /// Whether the part with a number is there: the record has it, and this process has not found
    /// it damaged.
    #[inline]
    pub fn has(&self, number: u64) -> bool {
        let part = self.head.position(number);
        part.is_some_and(|part| self.head.known[part].load(Ordering::Relaxed) != known::BAD)
    }

    /// How many bytes the part with a number has. Zero if it is not in the record.
    #[inline]
    pub fn len_of(&self, number: u64) -> u64 {
        self.head.position(number).map_or(0, |part| {
            let range = self.head.range(part);
            range.end - range.start
        })
    }

    /// The length of all parts but the last of the record, which is no longer, if they have one.
    #[inline]
    pub fn uniform(&self) -> Option<u64> {
        self.head.uniform
    }

    /// The numbers from one on that are there, as far as the record has them: see [`Found::has`].
    pub fn run(&self, from: u64) -> Range<u64> {
        let end = self.numbers().end;
        if self.head.all_good.load(Ordering::Relaxed) {
            return from..end;
        }
        from..(from..end).find(|number| !self.has(*number)).unwrap_or(end)
    }

    /// The checksum of the part with a number.
    pub fn sum_of(&self, number: u64) -> Option<u64> {
        self.head.position(number).map(|part| self.head.parts[part].sum)
    }

    /// Where the bytes of a part begin in the data of the record.
    #[inline]
    pub fn start_of(&self, number: u64) -> u64 {
        self.head.position(number).map_or(0, |part| self.head.range(part).start)
    }

    /// When the record expires, in milliseconds since 1970; zero for never.
    pub fn expiry(&self) -> u64 {
        self.head.expiry
    }

    /// Counts a use of parts: what was used is evicted later. Uses that follow each other closely
    /// count as one.
    pub fn count_use(&self, numbers: Range<u64>) {
        let now = self.index.now() as u32;
        let recent = |used: &AtomicU32| now.wrapping_sub(used.load(Ordering::Relaxed)) <= 1;
        if recent(&self.head.all_used) {
            return;
        }
        if numbers == self.numbers() {
            self.head.all_used.store(now, Ordering::Relaxed);
        }
        for number in numbers {
            let Some(part) = self.head.position(number) else { continue };
            let used = &self.head.used[part];
            if !recent(used) {
                used.store(now, Ordering::Relaxed);
                self.index.sets().count_use(Id::new(self.head.name, number).hash(), self.place);
            }
        }
    }

    pub(crate) fn check(&self) -> Check {
        match self.segments.options.check {
            Check::Never if self.segment.doubtful => Check::Once,
            check => check,
        }
    }

    /// Whether no part is to be compared with its checksum.
    pub(crate) fn need_not_check(&self, check: Check) -> bool {
        check != Check::Always && self.head.all_good.load(Ordering::Relaxed)
    }

    /// Whether the bytes of a part are to be compared with their checksum.
    pub(crate) fn to_check(&self, check: Check, part: usize) -> Result<bool, Unread> {
        match self.head.known[part].load(Ordering::Relaxed) {
            known::BAD => Err(Unread::Damaged(self.head.first + part as u64)),
            known::GOOD => Ok(check == Check::Always),
            _ => Ok(check != Check::Never),
        }
    }

    /// The parts of which bytes lie in a range of the data.
    pub(crate) fn parts(&self, range: &Range<u64>) -> Range<usize> {
        let parts = &self.head.parts;
        let first = parts.partition_point(|part| part.end <= range.start);
        let last = parts.partition_point(|part| part.end < range.end);
        first..(last + 1).min(parts.len())
    }

    /// Copies bytes from an offset of the record's data on. Parts are checked as the options say.
    pub fn read(&self, start: u64, out: &mut [u8]) -> Result<(), Unread> {
        let range = start..start + out.len() as u64;
        if out.is_empty() {
            return Ok(());
        }
        let parts = self.parts(&range);
        if range.end > self.head.data_len() {
            return Err(Unread::Gone);
        }
        let check = self.check();
        let mut any = false;
        if !self.need_not_check(check) {
            for part in parts.clone() {
                any |= self.to_check(check, part)?;
            }
        }
        let read = if any {
            self.read_checked(check, parts, &range, out)
        } else if self.segment.read(self.head.data_at + start, out) {
            Ok(())
        } else {
            Err(Unread::Damaged(self.head.first + parts.start as u64))
        };
        self.settle(read)
    }

    /// Returns whether the segment was not evicted since the record was found.
    ///
    /// A segment is evicted in the index that is in use. One that was replaced has all its numbers
    /// still, or none, since its pages are gone. It says that it was replaced before anything can
    /// be evicted in the next one.
    pub(crate) fn is_there(&self) -> bool {
        let there = |index: &Index| index.table().number(self.place.slot) == self.segment.number;
        if self.index.in_use() && there(self.index) {
            return true;
        }
        if self.index.in_use() {
            return false;
        }
        let now = self.segments.index().filter(|now| now.family == self.index.family);
        now.is_some_and(there)
    }

    /// Tells damage from eviction: what was read while the segment went is not what was written.
    pub(crate) fn settle(&self, read: Result<(), Unread>) -> Result<(), Unread> {
        if !self.is_there() {
            return Err(Unread::Gone);
        }
        if let Err(Unread::Damaged(number)) = read {
            self.damaged(number);
        }
        read
    }

    #[cold]
    fn damaged(&self, number: u64) {
        let Some(part) = self.head.position(number) else { return };
        let before = self.head.known[part].swap(known::BAD, Ordering::SeqCst);
        self.head.all_good.store(false, Ordering::SeqCst);
        if before != known::BAD {
            self.segments.counts.damaged();
            self.index.sets().remove(Id::new(self.head.name, number).hash(), self.place);
        }
    }

    fn read_checked(
        &self,
        check: Check,
        parts: Range<usize>,
        range: &Range<u64>,
        out: &mut [u8],
    ) -> Result<(), Unread> {
        let lent = if self.worth_mapping(check, range) { self.lend_file(range)? } else { None };
        let mut rest = out;
        for part in parts {
            let whole = self.head.range(part);
            let wanted = whole.start.max(range.start)..whole.end.min(range.end);
            let (here, later) = rest.split_at_mut((wanted.end - wanted.start) as usize);
            rest = later;
            let to_check = self.to_check(check, part)?;
            let bad = Unread::Damaged(self.head.first + part as u64);
            let read = |start: u64, out: &mut [u8]| {
                self.segment.read(self.head.data_at + start, out).then_some(()).ok_or(bad)
            };
            if !to_check {
                read(wanted.start, here)?;
            } else if wanted == whole {
                let sum = match self.carry(lent.as_ref(), part, here) {
                    Some(sum) => sum,
                    // While they are still in the caches of the processor.
                    None => sum::fill(here, PIECE, |at, out| read(whole.start + at, out))?,
                };
                self.compare_sum(part, sum)?;
            } else {
                let mut all = vec![0; (whole.end - whole.start) as usize];
                read(whole.start, &mut all)?;
                self.compare(part, &all)?;
                let from = (wanted.start - whole.start) as usize;
                here.copy_from_slice(&all[from..from + here.len()]);
            }
        }
        Ok(())
    }

    /// Whether parts of a range may be copied from the map. Without the guard, nobody touches the
    /// map who did not ask for a view.
    fn worth_mapping(&self, check: Check, range: &Range<u64>) -> bool {
        let long = range.end - range.start >= MAPPED;
        long && check == Check::Always && self.segments.options.guard
    }

    /// Copies a whole part from the map and answers the checksum of the copy. `None` if it is
    /// better read: it is short, or this process has not read it before, so that it may lie on the
    /// disk, from which a call reads it at once and the map a few pages at a time.
    fn carry(&self, lent: Option<&Lent>, part: usize, out: &mut [u8]) -> Option<u64> {
        let known = self.head.known[part].load(Ordering::Relaxed) == known::GOOD;
        let lent = lent.filter(|_| known && out.len() as u64 >= MAPPED)?;
        let (whole, at) = (self.head.range(part), self.head.data_at);
        let bytes = lent.bytes(&(at + whole.start..at + whole.end));
        let sum = (bytes.len() == out.len()).then(|| sum::copy(bytes, out));
        // If the file was cut off meanwhile, a call tells what there is.
        sum.filter(|_| !lent.lost())
    }

    /// Compares the bytes of a part with its checksum.
    pub(crate) fn compare(&self, part: usize, bytes: &[u8]) -> Result<(), Unread> {
        self.compare_sum(part, checksum(bytes))
    }

    fn compare_sum(&self, part: usize, sum: u64) -> Result<(), Unread> {
        if sum != self.head.parts[part].sum {
            return Err(Unread::Damaged(self.head.first + part as u64));
        }
        if self.head.known[part].swap(known::GOOD, Ordering::Relaxed) != known::GOOD {
            let all = || self.head.known.iter().all(|k| k.load(Ordering::SeqCst) == known::GOOD);
            if all() {
                self.head.all_good.store(true, Ordering::SeqCst);
                // Another thread may have found one of them damaged in between.
                self.head.all_good.fetch_and(all(), Ordering::SeqCst);
            }
        }
        Ok(())
    }

    /// Compares a part with its checksum, whatever is known of it.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the bytes: nothing is known of them.
    pub(crate) fn verify(&self, number: u64) -> Result<Result<(), Unread>, Errno> {
        let Some(part) = self.head.position(number) else { return Ok(Err(Unread::Gone)) };
        let range = self.head.range(part);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let read = match self.segment.try_read(self.head.data_at + range.start, &mut bytes) {
            Ok(true) => self.compare(part, &bytes),
            Ok(false) => Err(Unread::Damaged(number)),
            Err(errno) if self.is_there() => return Err(errno),
            Err(_) => Err(Unread::Gone),
        };
        Ok(self.settle(read))
    }
}
