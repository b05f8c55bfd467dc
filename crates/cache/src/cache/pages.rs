//! Pages of large items and of values that are being received, and those that go back to the
//! system.

use crate::cache::Cache;
use crate::memory::arena::{Arena, Tail};
use crate::memory::dirty::Garbage;
use crate::memory::large::pages;
use crate::memory::meta::Segment;
use std::sync::atomic::Ordering;

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
    pub(crate) fn open_large(&self, len: usize, keep: u32) -> Option<(Segment, Tail)> {
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

    pub(crate) fn count_draft(&self, bytes: u64) -> bool {
        while !self.segments.count_draft(&self.epochs, bytes, self.floor()) {
            if !self.give_back() {
                return false;
            }
        }
        self.return_excess();
        true
    }

    /// Nobody needs a draft of so many bytes, of which the first number count in the budget.
    pub(crate) fn discard_draft(&self, number: u32, (counted, len): (u64, usize)) {
        let segments = &self.segments;
        let huge = segments.huge(pages(len));
        if huge > 0 {
            self.arena.prefer_huge(segments.start(number), huge, false);
        }
        let granules = |bytes: u64| bytes.div_ceil(u64::from(segments.len())) as u32;
        let (counted_len, all) = (granules(counted), granules(pages(len)));
        let mut shared = segments.lock();
        segments.metas[number as usize].live.store(0, Ordering::Relaxed);
        if all > counted_len {
            shared.runs.give_back(number + counted_len, all - counted_len);
        }
        if counted > 0 {
            shared.garbage.push_back(Garbage { number, bytes: counted, huge: 0 });
            shared.garbage_bytes += counted;
        }
        segments.settle(&shared);
    }
}
