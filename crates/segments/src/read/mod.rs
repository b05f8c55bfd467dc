//! Reading parts.

mod candidates;
mod check;
mod copy;
mod find;
mod view;

pub use view::Slice;

use crate::id::Id;
use crate::index::Index;
use crate::index::word::Place;
use crate::segment::Segment;
use crate::segment::record::{Head, known};
use crate::segments::Segments;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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

    /// The parts of which bytes lie in a range of the data.
    pub(crate) fn parts(&self, range: &Range<u64>) -> Range<usize> {
        let parts = &self.head.parts;
        let first = parts.partition_point(|part| part.end <= range.start);
        let last = parts.partition_point(|part| part.end < range.end);
        first..(last + 1).min(parts.len())
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
}
