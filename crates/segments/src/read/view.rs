//! Lending bytes where they lie.

use super::{Found, Unread};
use crate::segment::Lent;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Found<'_> {
    /// Lends bytes of the record's data. `Ok(None)` if they cannot be mapped: then they can be
    /// read.
    pub fn lend(&self, range: Range<u64>) -> Result<Option<Slice>, Unread> {
        if range.start >= range.end || range.end > self.head.data_len() {
            return Err(Unread::Gone);
        }
        let Some(lent) = self.lend_file(&range)? else { return Ok(None) };
        let checked = self.check_lent(&lent, &range);
        self.settle(checked)?;
        let at = self.head.data_at;
        Ok(Some(Slice { lent, in_file: at + range.start..at + range.end }))
    }

    /// The mapped file with a range of the record's data. `Ok(None)` if it cannot be mapped.
    pub(crate) fn lend_file(&self, range: &Range<u64>) -> Result<Option<Lent>, Unread> {
        let Some(lent) = self.segment.lend() else { return Ok(None) };
        let at = self.head.data_at;
        let in_file = at + range.start..at + range.end;
        // In this order: see `Lent`.
        if !self.is_there() {
            return Err(Unread::Gone);
        }
        // Once is enough: who cuts a file off later is found out by the guard.
        if !self.head.long_enough.load(Ordering::Relaxed) {
            if !lent.has(&in_file) {
                return Ok(None);
            }
            let whole = lent.has(&(at..at + self.head.data_len()));
            self.head.long_enough.store(whole, Ordering::Relaxed);
        } else if lent.lost() {
            return Ok(None);
        }
        Ok(Some(lent))
    }

    fn check_lent(&self, lent: &Lent, range: &Range<u64>) -> Result<(), Unread> {
        let check = self.check();
        if self.need_not_check(check) {
            return Ok(());
        }
        for part in self.parts(range) {
            if self.to_check(check, part)? {
                let whole = self.head.range(part);
                let at = self.head.data_at;
                let in_file = at + whole.start..at + whole.end;
                let bad = Unread::Damaged(self.head.first + part as u64);
                if !lent.has(&in_file) {
                    return Err(bad);
                }
                self.compare(part, lent.bytes(&in_file))?;
                if lent.lost() {
                    return Err(bad);
                }
            }
        }
        Ok(())
    }
}

/// Bytes that are lent from a mapped segment. They stay as they are while this lives, even if the
/// segment is evicted; its disk space comes back when the last of them goes.
pub struct Slice {
    lent: Lent,
    in_file: Range<u64>,
}

impl Slice {
    /// Whether the bytes are still those of the file. False if somebody who is no process of this
    /// crate cut the file off under the map: then some of them are zeros.
    pub fn intact(&self) -> bool {
        // The rest of the page in which a file ends is zero, and does not vanish.
        self.lent.has(&self.in_file)
    }
}

impl std::ops::Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.lent.bytes(&self.in_file)
    }
}

impl std::fmt::Debug for Slice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let len = self.in_file.end - self.in_file.start;
        f.debug_struct("Slice").field("len", &len).finish_non_exhaustive()
    }
}
