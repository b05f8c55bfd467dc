//! Views of parts: their bytes in the memory map.

use super::{Found, ReadError};
use crate::segment::SegmentView;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Found<'_> {
    /// Returns a view of bytes of the record's data. `Ok(None)` if they cannot be mapped: the
    /// caller can read them.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError`] if the segment was evicted, a part is damaged, or the range is empty
    /// or out of bounds.
    pub fn view(&self, range: Range<u64>) -> Result<Option<Slice>, ReadError> {
        if range.start >= range.end || range.end > self.head.data_len() {
            return Err(ReadError::Evicted);
        }
        let Some(view) = self.segment_view(&range)? else { return Ok(None) };
        let checked = self.check_view(&view, &range);
        self.confirm(checked)?;
        let at = self.head.data_offset;
        Ok(Some(Slice { view, in_file: at + range.start..at + range.end }))
    }

    /// Returns a view of the segment for a range of the record's data. `Ok(None)` if it cannot be
    /// mapped.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError::Evicted`] if the segment was evicted.
    pub(crate) fn segment_view(
        &self,
        range: &Range<u64>,
    ) -> Result<Option<SegmentView>, ReadError> {
        let Some(view) = self.segment.view() else { return Ok(None) };
        let at = self.head.data_offset;
        let in_file = at + range.start..at + range.end;
        // In this order: see `SegmentView`.
        if !self.is_there() {
            return Err(ReadError::Evicted);
        }
        // One check is enough: the guard detects later truncation.
        if !self.head.fits_file.load(Ordering::Relaxed) {
            if !view.contains(&in_file) {
                return Ok(None);
            }
            let is_long_enough = view.contains(&(at..at + self.head.data_len()));
            self.head.fits_file.store(is_long_enough, Ordering::Relaxed);
        } else if view.is_lost() {
            return Ok(None);
        }
        Ok(Some(view))
    }

    /// Checks the parts in a range as the options require.
    fn check_view(&self, view: &SegmentView, range: &Range<u64>) -> Result<(), ReadError> {
        let check = self.check();
        if self.needs_no_check(check) {
            return Ok(());
        }
        for part in self.parts(range) {
            if self.needs_check(check, part)? {
                let part_range = self.head.range(part);
                let at = self.head.data_offset;
                let in_file = at + part_range.start..at + part_range.end;
                let damaged = ReadError::Damaged(self.head.first + part as u64);
                if !view.contains(&in_file) {
                    return Err(damaged);
                }
                self.compare(part, view.bytes(&in_file))?;
                if view.is_lost() {
                    return Err(damaged);
                }
            }
        }
        Ok(())
    }
}

/// A view of bytes of a segment. They stay valid while this lives, even if the segment is evicted;
/// its disk space is freed when the last view ends.
pub struct Slice {
    view: SegmentView,
    in_file: Range<u64>,
}

impl Slice {
    /// Returns false if another program truncated the file under the map: then some of the bytes
    /// are zeros.
    pub fn is_intact(&self) -> bool {
        // A truncated file keeps its last page, whose rest is zero.
        self.view.contains(&self.in_file)
    }
}

impl std::ops::Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.view.bytes(&self.in_file)
    }
}

impl std::fmt::Debug for Slice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let len = self.in_file.end - self.in_file.start;
        f.debug_struct("Slice").field("len", &len).finish_non_exhaustive()
    }
}
