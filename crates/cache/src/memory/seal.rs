//! Live bytes of segments, and the end of writing to one.

use crate::memory::arena::Tail;
use crate::memory::epoch::Epochs;
use crate::memory::meta::{Queue, SEALED, Segment};
use crate::memory::segments::Segments;
use std::sync::atomic::Ordering;

impl Segments {
    /// Counts an item that the index will point at, before it does.
    pub(crate) fn add_live(&self, number: u32, bytes: usize, expires_ms: Option<u64>) {
        let meta = &self.metas[number as usize];
        meta.live.fetch_add(bytes as u32, Ordering::Relaxed);
        // Loaded first: an instruction that locks the line waits for all earlier stores.
        if let Some(expires_ms) = expires_ms
            && meta.first_expires_ms.load(Ordering::Relaxed) > expires_ms
        {
            meta.first_expires_ms.fetch_min(expires_ms, Ordering::Relaxed);
        }
    }

    /// An item is no longer in the index. The last one of a sealed segment retires it.
    pub(crate) fn remove_live(&self, epochs: &Epochs, place: u64, bytes: usize) {
        let number = self.of(place);
        let before = self.metas[number as usize].live.fetch_sub(bytes as u32, Ordering::AcqRel);
        if before == SEALED | bytes as u32 {
            self.retire(epochs, number);
        } else if self.is_large(number) && before & SEALED != 0 && bytes > 0 {
            self.note_kept(number);
        }
    }

    /// No more items come. The segment waits in a queue until it is reclaimed, unless all that was
    /// in it is gone already.
    pub(crate) fn seal(&self, epochs: &Epochs, segment: Segment, tail: &Tail, queue: Queue) {
        if !self.is_large(segment.number) {
            self.item_len.store(tail.item_len(), Ordering::Relaxed);
        }
        self.enqueue(epochs, segment, tail.used(), queue);
    }

    /// Seals a segment of which so many bytes are written.
    pub(crate) fn enqueue(&self, epochs: &Epochs, segment: Segment, used: u32, queue: Queue) {
        let meta = &self.metas[segment.number as usize];
        meta.used.store(used, Ordering::Relaxed);
        meta.worthwhile_ms.store(self.first_expires_ms(segment.number), Ordering::Relaxed);
        {
            let mut shared = self.lock();
            match queue {
                Queue::Small => shared.small.push_back(segment),
                Queue::Main => shared.main.push_back(segment),
            }
            if used > 0 {
                self.schedule_scan(&mut shared, segment);
            }
            self.purge(&mut shared);
        }
        if meta.live.fetch_or(SEALED, Ordering::AcqRel) == 0 {
            self.retire(epochs, segment.number);
        }
    }
}
