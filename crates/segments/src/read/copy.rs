//! Copying parts: with a system call or, if they are checked each time, from the memory map.

use super::{Found, ReadError};
use crate::checksum;
use crate::options::Check;
use crate::segment::SegmentView;
use crate::segment::record::check_state;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes that are read and summed at a time.
const READ_LEN: usize = 128 << 10;
/// Parts of at least this length are copied from the map when they are checked again.
const MIN_MAPPED_LEN: u64 = 64 << 10;

impl Found<'_> {
    /// Fills `out` with the record's data from `start` on. Checks parts as the options require.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError`] if the segment was evicted or a part is damaged.
    pub fn read(&self, start: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let range = start..start + out.len() as u64;
        if out.is_empty() {
            return Ok(());
        }
        let parts = self.parts(&range);
        if range.end > self.head.data_len() {
            return Err(ReadError::Evicted);
        }
        let check = self.check();
        let mut needs_check = false;
        if !self.needs_no_check(check) {
            for part in parts.clone() {
                needs_check |= self.needs_check(check, part)?;
            }
        }
        let read = if needs_check {
            self.read_checked(check, parts, &range, out)
        } else if self.segment.read(self.head.data_offset + start, out) {
            Ok(())
        } else {
            Err(ReadError::Damaged(self.head.first + parts.start as u64))
        };
        self.confirm(read)
    }

    /// Reads parts of which some have to be checked.
    fn read_checked(
        &self,
        check: Check,
        parts: Range<usize>,
        range: &Range<u64>,
        out: &mut [u8],
    ) -> Result<(), ReadError> {
        let view =
            if self.copies_from_map(check, range) { self.segment_view(range)? } else { None };
        let mut rest = out;
        for part in parts {
            let part_range = self.head.range(part);
            let wanted = part_range.start.max(range.start)..part_range.end.min(range.end);
            let (part_out, rest_out) = rest.split_at_mut((wanted.end - wanted.start) as usize);
            rest = rest_out;
            let needs_check = self.needs_check(check, part)?;
            let damaged = ReadError::Damaged(self.head.first + part as u64);
            let read = |start: u64, out: &mut [u8]| {
                self.segment.read(self.head.data_offset + start, out).then_some(()).ok_or(damaged)
            };
            if !needs_check {
                read(wanted.start, part_out)?;
            } else if wanted == part_range {
                let sum = match self.copy_part(view.as_ref(), part, part_out) {
                    Some(sum) => sum,
                    // Sums the bytes while they are in the processor caches.
                    None => checksum::fill(part_out, READ_LEN, |at, out| {
                        read(part_range.start + at, out)
                    })?,
                };
                self.compare_checksum(part, sum)?;
            } else {
                let mut bytes = vec![0; (part_range.end - part_range.start) as usize];
                read(part_range.start, &mut bytes)?;
                self.compare(part, &bytes)?;
                let from = (wanted.start - part_range.start) as usize;
                part_out.copy_from_slice(&bytes[from..from + part_out.len()]);
            }
        }
        Ok(())
    }

    /// Returns whether parts of a range may be copied from the map. Without the guard, only views
    /// use the map.
    fn copies_from_map(&self, check: Check, range: &Range<u64>) -> bool {
        let is_long = range.end - range.start >= MIN_MAPPED_LEN;
        is_long && check == Check::Always && self.segments.options.guard
    }

    /// Copies a whole part from the map and returns the checksum of the copy. `None` if a system
    /// call is faster, because the part is short or this process has not read it before: one call
    /// reads it from the disk, and the map a few pages at a time.
    fn copy_part(&self, view: Option<&SegmentView>, part: usize, out: &mut [u8]) -> Option<u64> {
        let is_good = self.head.check_states[part].load(Ordering::Relaxed) == check_state::GOOD;
        let view = view.filter(|_| is_good && out.len() as u64 >= MIN_MAPPED_LEN)?;
        let (part_range, at) = (self.head.range(part), self.head.data_offset);
        let bytes = view.bytes(&(at + part_range.start..at + part_range.end));
        let sum = (bytes.len() == out.len()).then(|| checksum::copy(bytes, out));
        // If the file was truncated meanwhile, the system call finds out what is left.
        sum.filter(|_| !view.is_lost())
    }
}
