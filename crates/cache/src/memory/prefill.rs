//! Segments that get memory before they are opened.

use crate::memory::segments::{Segments, Shared};

impl Segments {
    /// Takes a segment without memory if fewer have memory than should. It belongs to the caller
    /// until [`finish_prefill`](Self::finish_prefill).
    pub(crate) fn take_to_prefill(&self, shared: &mut Shared) -> Option<u32> {
        if !self.needs_prefill(shared) {
            return None;
        }
        let number = self.take_unbacked(shared)?;
        shared.populating += 1;
        Some(number)
    }

    /// Adds a segment that has memory now to the free ones.
    pub(crate) fn finish_prefill(&self, number: u32) {
        let mut shared = self.lock();
        shared.populating -= 1;
        shared.free.push(number);
        // The limit may have changed meanwhile.
        self.update_limit(&shared);
    }

    /// Wakes the prefill thread, so that it checks whether to stop.
    pub(crate) fn wake_prefill(&self) {
        // Under the lock, so that the thread is not between its check and its wait.
        let _shared = self.lock();
        self.segment_taken.notify_all();
    }
}
