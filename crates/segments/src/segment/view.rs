//! Views of a segment: its bytes in the memory map, under the view lock (byte 1).

use super::Segment;
use crate::lock::{Byte, LockMode, lock_byte};
use crate::map::Bytes;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

impl Segment {
    /// Takes the view lock, shared, and returns a view of the segment. Returns `None` if the lock
    /// is not available, because a process is about to free the bytes, or in a forked process.
    ///
    /// The caller must then check the number in the row: see [`SegmentView`].
    pub(crate) fn view(self: &Arc<Self>) -> Option<SegmentView> {
        if self.process_id != std::process::id() {
            return None;
        }
        let mut count = self.view_count.lock().unwrap_or_else(PoisonError::into_inner);
        if *count == 0 && !lock_byte(&self.file, Byte::View, LockMode::Shared).unwrap_or(false) {
            return None;
        }
        *count += 1;
        drop(count);
        Some(SegmentView(self.clone()))
    }

    /// Returns the map. The file is mapped when it is first used.
    fn mapped(&self) -> Option<&Bytes> {
        let map = || {
            // The map is longer than the file, which may still grow.
            let len = (self.file_len() + self.growth).next_multiple_of(1 << 20);
            let len = usize::try_from(len).ok()?;
            Bytes::map(&self.file, len, self.guard).ok().flatten()
        };
        self.bytes.get_or_init(map).as_ref()
    }
}

/// A view of a segment. All views of a segment in a process share one lock.
///
/// A process that evicts a segment first removes its number from the slot and then tries to take
/// this lock exclusively. If it gets the lock, it frees the bytes at once. Otherwise the last view
/// frees them. So the bytes stay valid if the number is still in the slot after the view lock was
/// taken.
pub(crate) struct SegmentView(Arc<Segment>);

impl SegmentView {
    /// Returns whether the file has the bytes of a range and they are mapped.
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        let mapped = self.0.mapped().filter(|bytes| !bytes.is_lost());
        let end = mapped.map_or(0, |bytes| bytes.len() as u64);
        range.end <= end && range.end <= self.0.file_len()
    }

    /// Returns bytes of the file, or none if they are not mapped.
    #[inline]
    pub(crate) fn bytes(&self, range: &Range<u64>) -> &[u8] {
        let mapped = self.0.mapped();
        mapped.map_or(&[], |bytes| bytes.slice(range.start as usize..range.end as usize))
    }

    /// Returns whether the file was truncated under the map.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.mapped().is_none_or(Bytes::is_lost)
    }
}

impl Drop for SegmentView {
    fn drop(&mut self) {
        let mut count = self.0.view_count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 && self.0.process_id == std::process::id() {
            let _ = lock_byte(&self.0.file, Byte::View, LockMode::Unlock);
        }
    }
}
