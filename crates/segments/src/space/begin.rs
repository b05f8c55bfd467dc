//! Beginning a segment to append to.

use crate::error::Result;
use crate::guard::{Turn, counted};
use crate::layout::index as at;
use crate::not_kept::Reason;
use crate::segment::appender::{Appender, FIRST_OFFSET};
use std::sync::atomic::Ordering;

impl Turn<'_> {
    /// A segment with room for a record of so many bytes: one that another process left unfinished,
    /// or a new one.
    pub(crate) fn begin(
        &mut self,
        len: u64,
        kept: bool,
    ) -> Result<std::result::Result<Appender, Reason>> {
        let whole = (FIRST_OFFSET + len).max(self.segment_len());
        if !kept && let Some(open) = self.resume(len, whole)? {
            return Ok(Ok(open));
        }
        let outer = std::mem::replace(&mut self.beginning, true);
        let room = self.room(counted(whole), kept);
        self.beginning = outer;
        if !room? {
            self.drop_spare();
            return Ok(Err(Reason::NoRoom));
        }
        self.index.word(at::DIRTY).store(1, Ordering::Release);
        let begun = self.begin_new(whole, kept);
        self.drop_spare();
        self.index.word(at::DIRTY).store(0, Ordering::Release);
        begun
    }
}
