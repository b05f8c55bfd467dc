//! Counting the live bytes of segments, and sealing segments.

use crate::memory::arena::Tail;
use crate::memory::epoch::Epochs;
use crate::memory::meta::{Queue, SEALED, Segment};
use crate::memory::queues::End;
use crate::memory::segments::Segments;
use std::sync::atomic::Ordering;

impl Segments {
    /// Counts an item as live. Must be called before the index points to it.
    pub(crate) fn add_live(&self, number: u32, bytes: usize, expires_ms: Option<u64>) {
        let meta = &self.metas[number as usize];
        meta.live.fetch_add(bytes as u32, Ordering::Relaxed);
        // Reads before it writes: a locked instruction waits for all earlier stores.
        if let Some(expires_ms) = expires_ms
            && meta.first_expires_ms.load(Ordering::Relaxed) > expires_ms
        {
            meta.first_expires_ms.fetch_min(expires_ms, Ordering::Relaxed);
        }
    }

    /// Counts an item as removed after the index stopped pointing to it. The last item of a sealed
    /// segment retires it.
    pub(crate) fn remove_live(&self, epochs: &Epochs, address: u64, bytes: usize) {
        let number = self.segment_of(address);
        let before = self.metas[number as usize].live.fetch_sub(bytes as u32, Ordering::AcqRel);
        if before == SEALED | bytes as u32 {
            self.retire(epochs, number);
        } else if before & SEALED != 0 {
            if !self.is_large(number) {
                self.note_density(number, (before & !SEALED) - bytes as u32);
            } else if bytes > 0 {
                self.note_retained(number);
            }
        }
    }

    /// Ends writing to a segment and adds it to a queue. Retires it if all its items were removed.
    pub(crate) fn seal(&self, epochs: &Epochs, segment: Segment, tail: &Tail, queue: Queue) {
        if !self.is_large(segment.number) {
            self.item_len.store(tail.item_len(), Ordering::Relaxed);
        }
        self.enqueue(epochs, segment, tail.used(), queue);
    }

    /// Seals a segment that contains `used` bytes.
    pub(crate) fn enqueue(&self, epochs: &Epochs, segment: Segment, used: u32, queue: Queue) {
        let meta = &self.metas[segment.number as usize];
        meta.used.store(used, Ordering::Relaxed);
        meta.worthwhile_ms.store(self.first_expires_ms(segment.number), Ordering::Relaxed);
        let live = {
            let mut shared = self.lock();
            let live = meta.live.fetch_or(SEALED, Ordering::AcqRel);
            if !self.is_large(segment.number) {
                self.track_density(&mut shared, segment.number, live, used);
            }
            self.link(&mut shared, segment.number, queue, End::Newest);
            if used > 0 {
                self.schedule_scan(&mut shared, segment);
            }
            self.purge(&mut shared);
            live
        };
        if live == 0 {
            self.retire(epochs, segment.number);
        }
    }
}
