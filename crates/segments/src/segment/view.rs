//! Views: bytes of a segment that are used where they lie.

use super::Segment;
use crate::lock::{Byte, Mode, on_byte};
use crate::map::Bytes;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

impl Segment {
    /// Takes the shared lock on byte 1, and returns a view of the bytes. `None` if the lock is not
    /// available, because a process is about to free them, or in a forked process. The caller must
    /// then check the number in the row: see [`Lent`].
    pub(crate) fn lend(self: &Arc<Self>) -> Option<Lent> {
        if self.process != std::process::id() {
            return None;
        }
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        if *lent == 0 && !on_byte(&self.file, Byte::Lent, Mode::Shared).unwrap_or(false) {
            return None;
        }
        *lent += 1;
        drop(lent);
        Some(Lent(self.clone()))
    }

    fn mapped(&self) -> Option<&Bytes> {
        let map = || {
            // Addresses to spare, since the file may still grow.
            let len = (self.file_len() + self.growth).next_multiple_of(1 << 20);
            let len = usize::try_from(len).ok()?;
            Bytes::map(&self.file, len, self.guard).ok().flatten()
        };
        self.bytes.get_or_init(map).as_ref()
    }
}

/// Holds the lock for lending, shared by all of this process that lend bytes of a segment.
///
/// Whoever evicts a segment first takes its number out of the slot and then asks for the lock
/// alone: if he gets it, he frees the bytes at once, otherwise they are freed when the last one
/// that lends them ends. So bytes stay if the number is still there after the lock was taken.
pub(crate) struct Lent(Arc<Segment>);

impl Lent {
    /// Whether the file has bytes of a range, and they are mapped.
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        let mapped = self.0.mapped().filter(|bytes| !bytes.lost());
        let end = mapped.map_or(0, |bytes| bytes.len() as u64);
        range.end <= end && range.end <= self.0.file_len()
    }

    /// Bytes of the file. Empty if they are not mapped.
    #[inline]
    pub(crate) fn bytes(&self, range: &Range<u64>) -> &[u8] {
        let mapped = self.0.mapped();
        mapped.map_or(&[], |bytes| bytes.slice(range.start as usize..range.end as usize))
    }

    /// Whether the file was cut off under the map.
    pub(crate) fn lost(&self) -> bool {
        self.0.mapped().is_none_or(Bytes::lost)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut lent = self.0.lent.lock().unwrap_or_else(PoisonError::into_inner);
        *lent -= 1;
        if *lent == 0 && self.0.process == std::process::id() {
            let _ = on_byte(&self.0.file, Byte::Lent, Mode::None);
        }
    }
}
