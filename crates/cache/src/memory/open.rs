//! Free segments that are given out.

use crate::memory::arena::{Arena, Tail};
use crate::memory::epoch::Epochs;
use crate::memory::meta::Segment;
use crate::memory::removed::marks_len;
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

/// Segments that could be given out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// At once.
    pub(crate) now: u32,
    /// When those of large items that are over have come back, too.
    pub(crate) with_large: u32,
    /// When all that are over have.
    pub(crate) with_all: u32,
}

impl Segments {
    /// Segments that could be given out, before any is reclaimed.
    pub(crate) fn room(&self, epochs: &Epochs) -> Room {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let now = self.available_at_once();
        let len = u64::from(self.len);
        let large = shared.garbage_bytes + shared.retired_large;
        let all = shared.garbage_bytes + shared.retired_bytes;
        let with = |bytes: u64| now.saturating_add((bytes / len) as u32);
        Room { now, with_large: with(large), with_all: with(all) }
    }

    /// A free segment, if so many more stay free.
    fn take(&self, epochs: &Epochs, keep: u32) -> Option<u32> {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        if self.available_at_once() <= keep {
            return None;
        }
        // Memory that the process has is used first: so it never has more than the budget.
        let number = shared.free.pop().or_else(|| self.take_without_memory(&mut shared))?;
        self.in_use.fetch_add(1, Ordering::Relaxed);
        if self.is_behind(&shared) {
            self.taken.notify_all();
        }
        Some(number)
    }

    /// A free segment whose memory is the system's.
    pub(crate) fn take_without_memory(&self, shared: &mut Shared) -> Option<u32> {
        if shared.empty.is_empty() && shared.fresh < self.count() {
            shared.fresh += 1;
            return Some(shared.fresh - 1);
        }
        shared.empty.pop()
    }

    /// A segment for the index, which keeps it.
    pub(crate) fn take_for_index(&self, epochs: &Epochs) -> Option<(u64, u64)> {
        let number = self.take(epochs, 0)?;
        self.of_index.fetch_add(1, Ordering::Relaxed);
        Some((self.start(number), u64::from(self.len)))
    }

    /// A segment to write, whose short expiries count from this time on, if so many stay free. What
    /// its [`Marks`](crate::memory::removed::Marks) take is not to be written.
    pub(crate) fn open(
        &self,
        epochs: &Epochs,
        epoch_ms: u64,
        keep: u32,
    ) -> Option<(Segment, Tail)> {
        let number = self.take(epochs, keep)?;
        let marks_len = marks_len(self.len);
        let tail = Arena::tail(self.start(number) + u64::from(marks_len), self.len - marks_len);
        Some((self.begin(number, epoch_ms), tail))
    }

    /// A new life of a segment that was free, with this [base](Meta::base).
    pub(crate) fn begin(&self, number: u32, base: u64) -> Segment {
        let meta = &self.metas[number as usize];
        let life = meta.life.fetch_add(1, Ordering::Relaxed) + 1;
        meta.live.store(0, Ordering::Relaxed);
        meta.base.store(base, Ordering::Relaxed);
        meta.born.store(self.evicted.load(Ordering::Relaxed), Ordering::Relaxed);
        meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        meta.worthwhile_ms.store(u64::MAX, Ordering::Relaxed);
        Segment { number, life }
    }
}
