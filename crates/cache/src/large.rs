//! Large items: those that would fill more than half of a segment.
//!
//! Each has a segment of its own, with addresses behind those of the ordinary segments, which is as
//! long as the item, in pages. It stands in the same queues, is reclaimed and retired as the others
//! are, and is never copied: where an ordinary item would be moved, its segment stands in line
//! anew.
//!
//! One budget holds for all: pages of large items are taken from what ordinary segments may use,
//! until the pages are back with the system. That takes a while for a large item, so they go in
//! slices, one with each turn, or with each write where room is short. Likewise, what was an
//! ordinary segment's goes back before a large item's bytes are written.

use crate::arena::{Arena, HUGE_PAGE, PAGE, Tail};
use crate::cache::Cache;
use crate::epoch::Epochs;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Facts, Head};
use crate::segments::{Queue, Segment, Segments, Shared};
use crate::session::{Expect, Turn};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The longest value.
pub(crate) const VALUE_MOST: u64 = 512 << 20;

/// Of the budget, a large item may take so many eighths, and so may all drafts together: the rest
/// is for the index, for connections, and for segments that must be free.
const BUDGET_EIGHTHS: u64 = 5;

/// From so many bytes on, a large item lies in huge pages as far as it fills them: it is written in
/// a third of the time. Such an item is a range of its own for the system, of which a process has
/// few (65,530), so it also has at least this part of the budget.
const HUGE_FROM: u64 = 16 << 20;
const HUGE_PART: u64 = 4096;

/// Memory of a large item that nobody needs: from this granule on.
#[derive(Debug)]
pub(crate) struct Garbage {
    pub(crate) number: u32,
    pub(crate) bytes: u64,
    /// Bytes of huge pages that it began with, until a slice of it was taken.
    pub(crate) huge: u64,
}

/// A granule of garbage, or a segment, whose pages are on their way back to the system.
struct Slice {
    number: u32,
    bytes: u64,
    /// From here on, so many bytes are no longer for huge pages.
    huge: u64,
}

/// What a large item lies in, while the index does not point at it.
pub(crate) enum Home {
    /// A segment of its own.
    Segment(Segment, Tail),
    /// The segment of a draft, and the addresses of its value.
    Draft(Segment, Range<u64>),
}

/// What a large item takes.
pub(crate) fn pages(len: usize) -> u64 {
    (len as u64).next_multiple_of(PAGE)
}

impl Segments {
    /// Whether an item of so many bytes, without its head, lies in an ordinary segment.
    #[inline]
    pub(crate) fn is_ordinary(&self, bytes: usize) -> bool {
        bytes <= self.len() as usize / 2
    }

    /// What a large item may take of a budget, and all drafts together may.
    pub(crate) fn large_most(memory: u64) -> u64 {
        memory / 8 * BUDGET_EIGHTHS
    }

    /// Bytes of the longest item, without its head.
    pub(crate) fn item_most(&self, memory: u64) -> u64 {
        let addresses = u64::from(self.large_granules()) * u64::from(self.len());
        let large = Self::large_most(memory.min(addresses)).saturating_sub(Head::MOST as u64);
        large.max(u64::from(self.len()) / 2)
    }

    /// Bytes of a large item of so many that lie in huge pages. Its granules must be such pages.
    pub(crate) fn huge(&self, bytes: u64) -> u64 {
        let page = HUGE_PAGE as u64;
        let budget = u64::from(self.count()) * u64::from(self.len());
        let is_huge = u64::from(self.len()) == page && bytes >= HUGE_FROM.max(budget / HUGE_PART);
        if is_huge { bytes / page * page } else { 0 }
    }

    /// Nobody needs a large item's memory any more.
    pub(crate) fn discard(&self, shared: &mut Shared, number: u32, bytes: u64) {
        shared.garbage.push_back(Garbage { number, bytes, huge: self.huge(bytes) });
        shared.garbage_bytes += bytes;
    }

    /// Whether a large item of so many bytes would fit beside so many free segments, were there
    /// nothing else.
    pub(crate) fn could_fit(&self, len: usize, keep: u32) -> bool {
        let segments = len.div_ceil(self.len() as usize) as u32;
        segments + keep <= self.most_available()
    }

    /// Whether there is room for a large item of so many bytes beside so many free segments.
    pub(crate) fn fits_large(&self, epochs: &Epochs, len: usize, keep: u32) -> bool {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        self.fits(&shared, pages(len), keep)
    }

    pub(crate) fn fits(&self, shared: &Shared, bytes: u64, keep: u32) -> bool {
        let in_use = self.in_use.load(Ordering::Relaxed);
        self.limit_with(shared, shared.large + bytes) >= in_use + keep
    }

    /// A segment for a large item of so many bytes, if so many ordinary ones stay free.
    fn open_large(&self, epochs: &Epochs, len: usize, keep: u32) -> Option<(Segment, Tail)> {
        let bytes = pages(len);
        let granules = bytes.div_ceil(u64::from(self.len())) as u32;
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        if !self.fits(&shared, bytes, keep) {
            return None;
        }
        let number = shared.runs.take(granules)?;
        shared.large += bytes;
        self.settle(&shared);
        drop(shared);
        Some((self.begin(number, 0), Arena::tail(self.start(number), len as u32)))
    }

    /// Something whose pages nobody needs.
    fn take_slice(&self, epochs: &Epochs) -> Option<Slice> {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let len = u64::from(self.len());
        if let Some(first) = shared.garbage.front_mut() {
            let (number, huge) = (first.number, std::mem::take(&mut first.huge));
            let slice = Slice { number, bytes: first.bytes.min(len), huge };
            first.number += 1;
            first.bytes -= slice.bytes;
            if first.bytes == 0 {
                shared.garbage.pop_front();
            }
            shared.garbage_bytes -= slice.bytes;
            shared.slices_in_flight += 1;
            return Some(slice);
        }
        if !self.is_over(&shared) {
            return None;
        }
        let number = shared.free.pop()?;
        shared.slices_in_flight += 1;
        self.settle(&shared);
        // One segment of a huge page would bring back the whole page.
        Some(Slice { number, bytes: len, huge: if len < HUGE_PAGE as u64 { len } else { 0 } })
    }

    /// Its pages are back with the system.
    fn put_slice(&self, slice: &Slice) {
        let mut shared = self.lock();
        shared.slices_in_flight -= 1;
        if self.is_large(slice.number) {
            shared.large -= slice.bytes;
            shared.runs.give_back(slice.number, 1);
        } else {
            shared.empty.push(slice.number);
        }
        self.settle(&shared);
    }

    /// Whether the process has more memory of ordinary segments than they may use.
    fn has_too_much(&self) -> bool {
        self.is_over(&self.lock())
    }
}

impl Cache {
    /// Gives a slice of memory that nobody needs back to the system; false if there is none. It
    /// takes a few ten microseconds, in which no lock is held.
    pub(crate) fn give_back(&self) -> bool {
        let Some(slice) = self.segments.take_slice(&self.epochs) else { return false };
        let start = self.segments.start(slice.number);
        if slice.huge > 0 {
            self.arena.prefer_huge(start, slice.huge, false);
        }
        let mut tail = Arena::tail(start, slice.bytes as u32);
        self.arena.give_back(&mut tail);
        self.segments.put_slice(&slice);
        true
    }

    /// Gives memory of ordinary segments back that large items have now.
    pub(crate) fn return_excess(&self) {
        while self.segments.has_too_much() && self.give_back() {}
    }

    /// A segment for a large item, with pages for it; nothing if so many ordinary segments would
    /// not stay free.
    fn open_large(&self, len: usize, keep: u32) -> Option<(Segment, Tail)> {
        let opened = loop {
            let opened = self.segments.open_large(&self.epochs, len, keep);
            if opened.is_some() || !self.give_back() {
                break opened?;
            }
        };
        self.return_excess();
        let huge = self.segments.huge(pages(len));
        if huge > 0 {
            self.arena.prefer_huge(opened.1.place(), huge, true);
        }
        Some(opened)
    }
}

impl Turn<'_> {
    /// Writes a large item and points the index at it, if that holds what is expected.
    pub(crate) fn put_large(
        &self,
        (key, hash): (&[u8], KeyHash),
        value: &[u8],
        (facts, queue): (Facts, Queue),
        expect: Expect,
    ) -> Result<bool> {
        let (place, len, home) = match self.write_large(key, value, facts) {
            Err(Error::Full) => {
                self.want(Head::new(key.len(), value.len(), facts, 0).len());
                return Err(Error::Full);
            }
            written => written?,
        };
        let stored = self.publish((key, hash), place, expect);
        self.finish_large((place, len), (home, queue), matches!(stored, Ok(true)));
        stored
    }

    /// Writes a large item, where its value lies if that is a draft's, and returns its address and
    /// length. The index does not point at it.
    pub(crate) fn write_large(
        &self,
        key: &[u8],
        value: &[u8],
        facts: Facts,
    ) -> Result<(u64, usize, Home)> {
        // Its expiry is never a short one: there is no time that those would count from.
        let head = Head::new(key.len(), value.len(), facts, 0);
        if let Some((place, home)) = self.claim_draft(key, value, &head) {
            return Ok((place, head.len(), home));
        }
        let Cache { arena, segments, .. } = self.cache();
        let opened = self.cache().open_large(head.len(), self.cache().floor());
        let (segment, mut tail) = opened.ok_or(Error::Full)?;
        let place = tail.place();
        head.write(arena.room(&mut tail, head.len()), key, 0).copy_from_slice(value);
        segments.add_live(segment.number, head.len(), facts.expires_ms);
        Ok((place, head.len(), Home::Segment(segment, tail)))
    }

    /// Ends what [`write_large`](Self::write_large) began, once the index points at the item or
    /// is not to.
    pub(crate) fn finish_large(
        &self,
        (place, len): (u64, usize),
        (home, queue): (Home, Queue),
        is_published: bool,
    ) {
        let Cache { segments, epochs, .. } = self.cache();
        match home {
            Home::Segment(segment, tail) => {
                if !is_published {
                    self.note_gone(place, len);
                }
                segments.seal(epochs, segment, &tail, queue);
            }
            Home::Draft(segment, value) => {
                self.finish_draft((place, len), (segment, value), is_published.then_some(queue));
            }
        }
    }

    /// Room for so many bytes is to be made between this turn and the next, unless that would be in
    /// vain.
    pub(crate) fn want(&self, bytes: usize) {
        if self.cache().segments.could_fit(bytes, self.cache().floor()) {
            self.session.wanted.set(bytes);
        }
    }
}
