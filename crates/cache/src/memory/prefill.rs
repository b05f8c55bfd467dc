//! Segments that get their memory ahead of use.

use crate::memory::segments::{Segments, Shared};

impl Segments {
    /// A segment to make ready. Nobody else has it.
    pub(crate) fn take_ahead(&self, shared: &mut Shared) -> Option<u32> {
        if !self.is_behind(shared) {
            return None;
        }
        let number = self.take_without_memory(shared)?;
        shared.populating += 1;
        Some(number)
    }

    /// A segment is ready.
    pub(crate) fn put_ahead(&self, number: u32) {
        let mut shared = self.lock();
        shared.populating -= 1;
        shared.free.push(number);
        // Others may have got what it takes meanwhile.
        self.settle(&shared);
    }

    /// Makes whoever waits for a segment to be taken look again.
    pub(crate) fn wake_ahead(&self) {
        // Under the lock, for nobody must be between looking and waiting.
        let _shared = self.lock();
        self.taken.notify_all();
    }
}
