//! Reading parts: copied out with a call to the system or, if they are checked on the way, from the
//! map.

use super::{Found, Unread};
use crate::checksum;
use crate::options::Check;
use crate::segment::Lent;
use crate::segment::record::known;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes that are read and summed up at a time.
const PIECE: usize = 128 << 10;
/// Parts of so many bytes are copied from the map when they are checked once more.
const MAPPED: u64 = 64 << 10;

impl Found<'_> {
    /// Copies bytes from an offset of the record's data on. Parts are checked as the options say.
    pub fn read(&self, start: u64, out: &mut [u8]) -> Result<(), Unread> {
        let range = start..start + out.len() as u64;
        if out.is_empty() {
            return Ok(());
        }
        let parts = self.parts(&range);
        if range.end > self.head.data_len() {
            return Err(Unread::Gone);
        }
        let check = self.check();
        let mut any = false;
        if !self.need_not_check(check) {
            for part in parts.clone() {
                any |= self.to_check(check, part)?;
            }
        }
        let read = if any {
            self.read_checked(check, parts, &range, out)
        } else if self.segment.read(self.head.data_at + start, out) {
            Ok(())
        } else {
            Err(Unread::Damaged(self.head.first + parts.start as u64))
        };
        self.settle(read)
    }

    fn read_checked(
        &self,
        check: Check,
        parts: Range<usize>,
        range: &Range<u64>,
        out: &mut [u8],
    ) -> Result<(), Unread> {
        let lent = if self.worth_mapping(check, range) { self.lend_file(range)? } else { None };
        let mut rest = out;
        for part in parts {
            let whole = self.head.range(part);
            let wanted = whole.start.max(range.start)..whole.end.min(range.end);
            let (here, later) = rest.split_at_mut((wanted.end - wanted.start) as usize);
            rest = later;
            let to_check = self.to_check(check, part)?;
            let bad = Unread::Damaged(self.head.first + part as u64);
            let read = |start: u64, out: &mut [u8]| {
                self.segment.read(self.head.data_at + start, out).then_some(()).ok_or(bad)
            };
            if !to_check {
                read(wanted.start, here)?;
            } else if wanted == whole {
                let sum = match self.carry(lent.as_ref(), part, here) {
                    Some(sum) => sum,
                    // While they are still in the caches of the processor.
                    None => checksum::fill(here, PIECE, |at, out| read(whole.start + at, out))?,
                };
                self.compare_sum(part, sum)?;
            } else {
                let mut all = vec![0; (whole.end - whole.start) as usize];
                read(whole.start, &mut all)?;
                self.compare(part, &all)?;
                let from = (wanted.start - whole.start) as usize;
                here.copy_from_slice(&all[from..from + here.len()]);
            }
        }
        Ok(())
    }

    /// Whether parts of a range may be copied from the map. Without the guard, nobody touches the
    /// map who did not ask for a view.
    fn worth_mapping(&self, check: Check, range: &Range<u64>) -> bool {
        let long = range.end - range.start >= MAPPED;
        long && check == Check::Always && self.segments.options.guard
    }

    /// Copies a whole part from the map and answers the checksum of the copy. `None` if it is
    /// better read: it is short, or this process has not read it before, so that it may lie on the
    /// disk, from which a call reads it at once and the map a few pages at a time.
    fn carry(&self, lent: Option<&Lent>, part: usize, out: &mut [u8]) -> Option<u64> {
        let known = self.head.known[part].load(Ordering::Relaxed) == known::GOOD;
        let lent = lent.filter(|_| known && out.len() as u64 >= MAPPED)?;
        let (whole, at) = (self.head.range(part), self.head.data_at);
        let bytes = lent.bytes(&(at + whole.start..at + whole.end));
        let sum = (bytes.len() == out.len()).then(|| checksum::copy(bytes, out));
        // If the file was cut off meanwhile, a call tells what there is.
        sum.filter(|_| !lent.lost())
    }
}
