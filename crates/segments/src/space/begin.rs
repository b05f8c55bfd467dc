//! Beginning a segment to append to.

use crate::error::Result;
use crate::guard::{FolderGuard, charged_len};
use crate::layout::index as at;
use crate::not_kept::NotKeptReason;
use crate::segment::appender::{Appender, FIRST_OFFSET};
use std::sync::atomic::Ordering;

impl FolderGuard<'_> {
    /// Returns a segment with space for a record of `len` bytes: one that another process left
    /// mostly empty, or a new one. If `in_main_queue`, it is for records that are moved. The inner
    /// `Err` is the reason if there is no space.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or [`Error::Busy`](crate::Error::Busy) if the table lock
    /// was lost.
    pub(crate) fn begin(
        &mut self,
        len: u64,
        in_main_queue: bool,
    ) -> Result<std::result::Result<Appender, NotKeptReason>> {
        let max_len = (FIRST_OFFSET + len).max(self.segment_len());
        if !in_main_queue && let Some(appender) = self.resume(len, max_len)? {
            return Ok(Ok(appender));
        }
        let was_beginning = std::mem::replace(&mut self.is_beginning, true);
        let has_space = self.free_space(charged_len(max_len), in_main_queue);
        self.is_beginning = was_beginning;
        if !has_space? {
            self.drop_spare_file();
            return Ok(Err(NotKeptReason::NoRoom));
        }
        self.index.word(at::DIRTY).store(1, Ordering::Release);
        let result = self.create_segment(max_len, in_main_queue);
        self.drop_spare_file();
        self.index.word(at::DIRTY).store(0, Ordering::Release);
        result
    }
}
