//! Records that were found, and reading their parts.

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
use crate::segment::record::{Head, check_state};
use crate::segments::Segments;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A record that was found. Its parts can be read until the segment is evicted.
pub struct Found<'a> {
    pub(crate) segments: &'a Segments,
    pub(crate) index: &'a Index,
    pub(crate) segment: Arc<Segment>,
    pub(crate) head: Arc<Head>,
    pub(crate) place: Place,
}

/// The reason for which bytes were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The segment was evicted after the record was found.
    Evicted,
    /// The part with this number is damaged. It was removed from the index.
    Damaged(u64),
}

impl Found<'_> {
    /// Returns the numbers of the parts that the record has.
    #[inline]
    pub fn numbers(&self) -> Range<u64> {
        self.head.first..self.head.first + self.head.parts.len() as u64
    }

    /// Returns whether the record has the part with a number and this process has not found it
    /// damaged.
    #[inline]
    pub fn has(&self, number: u64) -> bool {
        let part = self.head.position(number);
        part.is_some_and(|part| {
            self.head.check_states[part].load(Ordering::Relaxed) != check_state::DAMAGED
        })
    }

    /// Returns the length of the part with a number, or zero if the record does not have it.
    #[inline]
    pub fn part_len(&self, number: u64) -> u64 {
        self.head.position(number).map_or(0, |part| {
            let range = self.head.range(part);
            range.end - range.start
        })
    }

    /// Returns the length of all parts but the last, if they have the same length and the last is
    /// not longer.
    #[inline]
    pub fn uniform_len(&self) -> Option<u64> {
        self.head.uniform_len
    }

    /// Returns the consecutive numbers from `first` on for which [`Found::has`] returns true.
    pub fn available_from(&self, first: u64) -> Range<u64> {
        let end = self.numbers().end;
        if self.head.all_good.load(Ordering::Relaxed) {
            return first..end;
        }
        first..(first..end).find(|number| !self.has(*number)).unwrap_or(end)
    }

    /// Returns the checksum of the part with a number.
    pub fn part_checksum(&self, number: u64) -> Option<u64> {
        self.head.position(number).map(|part| self.head.parts[part].checksum)
    }

    /// Returns the offset of a part in the data of the record, or zero if the record does not have
    /// it.
    #[inline]
    pub fn part_start(&self, number: u64) -> u64 {
        self.head.position(number).map_or(0, |part| self.head.range(part).start)
    }

    /// Returns when the record expires, in milliseconds since 1970; zero for never.
    pub fn expiry(&self) -> u64 {
        self.head.expiry
    }

    /// Counts a use of parts. Used parts are evicted later. Uses in quick succession count as one.
    pub fn count_use(&self, numbers: Range<u64>) {
        let now = self.index.next_number() as u32;
        let is_recent = |used: &AtomicU32| now.wrapping_sub(used.load(Ordering::Relaxed)) <= 1;
        if is_recent(&self.head.last_used_all) {
            return;
        }
        if numbers == self.numbers() {
            self.head.last_used_all.store(now, Ordering::Relaxed);
        }
        for number in numbers {
            let Some(part) = self.head.position(number) else { continue };
            let used = &self.head.last_used[part];
            if !is_recent(used) {
                used.store(now, Ordering::Relaxed);
                self.index.sets().count_use(Id::new(self.head.name, number).hash(), self.place);
            }
        }
    }

    /// Returns the parts that have bytes in a range of the data.
    pub(crate) fn parts(&self, range: &Range<u64>) -> Range<usize> {
        let parts = &self.head.parts;
        let first = parts.partition_point(|part| part.end <= range.start);
        let last = parts.partition_point(|part| part.end < range.end);
        first..(last + 1).min(parts.len())
    }

    /// Returns whether the segment was not evicted since the record was found.
    ///
    /// Segments are evicted in the index that is in use. A replaced index still has all its
    /// numbers, or none, since its pages are freed. It is marked as replaced before a segment can
    /// be evicted in the next index.
    pub(crate) fn is_there(&self) -> bool {
        let has_number =
            |index: &Index| index.table().number(self.place.slot) == self.segment.number;
        if self.index.is_in_use() && has_number(self.index) {
            return true;
        }
        if self.index.is_in_use() {
            return false;
        }
        let current = self.segments.index().filter(|current| current.family == self.index.family);
        current.is_some_and(has_number)
    }
}
