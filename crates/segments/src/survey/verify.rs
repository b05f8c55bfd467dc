//! Whether all that is there is whole.

use super::Step;
use crate::folder::names::segment_name;
use crate::index::Index;
use crate::index::table::State;
use crate::read::{Found, Unread};
use crate::segment::Refusal;
use crate::segments::Segments;
use rustix::io::Errno;

/// What a look at every byte found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Parts that are as they were written.
    pub good: u64,
    /// Their bytes.
    pub good_bytes: u64,
    /// Parts that are damaged, or whose name is lost. They were removed, unless the folder can only
    /// be read.
    pub damaged: u64,
    /// Segments with damaged bytes between records, or with words that point to no record. Bytes
    /// after the last record of a segment that is appended to are not counted.
    pub torn: u64,
    /// Segments that the system did not open, or of which it did not read all bytes. Parts that
    /// could not be read stay.
    pub unread: u64,
}

/// What [`Segments::verify_with`] tells while it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Looked<'a> {
    /// How far it is.
    Bytes {
        /// Bytes of segments that were looked at.
        done: u64,
        /// Bytes of all segments.
        total: u64,
    },
    /// A part is as it was written.
    Good {
        /// The label of its name.
        label: &'a [u8],
        /// Its length in bytes.
        bytes: u64,
    },
    /// A part is not as it was written.
    Damaged {
        /// What its name stands for.
        label: &'a [u8],
        /// Its number.
        number: u64,
        /// The name of the segment's file.
        segment: &'a str,
    },
    /// The system did not open a segment, or did not read all of its bytes.
    Unread {
        /// The name of the segment's file.
        segment: &'a str,
        /// The error of the system.
        reason: &'a str,
    },
    /// Parts were in a segment, and nobody can tell any more what they were.
    Lost {
        /// How many.
        parts: u64,
        /// The name of the segment's file.
        segment: &'a str,
    },
}

impl Verified {
    fn lost(&mut self, parts: u64, segment: u64, tell: &mut impl FnMut(Looked<'_>)) {
        self.damaged += parts;
        if parts > 0 {
            tell(Looked::Lost { parts, segment: &segment_name(segment) });
        }
    }

    fn refused(&mut self, refusal: Refusal, segment: u64, tell: &mut impl FnMut(Looked<'_>)) {
        self.unread += 1;
        let (segment, reason) = (&segment_name(segment), &refusal.to_string());
        tell(Looked::Unread { segment, reason });
    }
}

impl Segments {
    /// Reads all parts that the index has, and removes damaged ones unless the folder can only be
    /// read.
    pub fn verify(&self) -> Verified {
        self.verify_with(|_| {})
    }

    /// As [`Segments::verify`]; tells what it finds when it finds it.
    pub fn verify_with(&self, mut tell: impl FnMut(Looked<'_>)) -> Verified {
        let mut verified = Verified::default();
        let total: u64 =
            self.index().map_or(0, |index| index.table().rows().map(|(_, row)| row.counted).sum());
        let mut before = 0;
        // Why parts of the current segment were not read.
        let mut refused = None;
        self.each(|index, step| match step {
            Step::Record(found) => {
                let read = Self::verify_record(&found, &mut verified, &mut tell);
                refused = refused.or(read.err());
                let done = before + found.head.end();
                tell(Looked::Bytes { done: done.min(total), total });
            }
            Step::End(slot, segment, gaps) => {
                before += segment.file_len();
                let refused = refused.take().or(gaps.refused);
                if let Some(errno) = refused {
                    verified.refused(Refusal::System(errno), segment.number, &mut tell);
                }
                let no_record = |offset| matches!(segment.try_head(offset), Ok(None));
                // Zeros may be the head of a record that is gone: the index tells.
                let lost = if gaps.any {
                    Self::take_out(index, slot, segment.number, no_record)
                } else {
                    0
                };
                // Behind the end of one that is appended to lies what its file had before.
                let row = index.table().row(slot);
                let ended = row.is_none_or(|row| row.state != State::Writing);
                let torn = gaps.written && gaps.refused.is_none() && ended;
                verified.torn += u64::from(torn || lost > 0);
                verified.lost(lost, segment.number, &mut tell);
            }
            Step::Unreadable(_, number, refusal) if refusal.is_unknown() => {
                verified.refused(refusal, number, &mut tell);
            }
            Step::Unreadable(slot, number, _) => {
                verified.torn += 1;
                let lost = Self::take_out(index, slot, number, |_| true);
                verified.lost(lost, number, &mut tell);
            }
        });
        tell(Looked::Bytes { done: total, total });
        verified
    }

    /// Verifies the parts of a record. Those that the system does not read stay.
    ///
    /// # Errors
    ///
    /// Returns the first error of the system.
    fn verify_record(
        found: &Found<'_>,
        verified: &mut Verified,
        tell: &mut impl FnMut(Looked<'_>),
    ) -> Result<(), Errno> {
        let mut read = Ok(());
        for number in found.numbers() {
            if Self::uses(found, number).is_none() {
                continue;
            }
            match found.verify(number) {
                Ok(Ok(())) => {
                    let bytes = found.len_of(number);
                    verified.good += 1;
                    verified.good_bytes += bytes;
                    tell(Looked::Good { label: &found.head.label, bytes });
                }
                Ok(Err(Unread::Damaged(_))) => {
                    verified.damaged += 1;
                    let segment = &segment_name(found.segment.number);
                    tell(Looked::Damaged { label: &found.head.label, number, segment });
                }
                Ok(Err(Unread::Gone)) => {}
                Err(errno) => read = read.and(Err(errno)),
            }
        }
        read
    }

    /// Removes the words of a segment for whose offset `gone` returns true from the index, if it
    /// can be written. Returns how many there were.
    fn take_out(index: &Index, slot: u32, number: u64, gone: impl Fn(u64) -> bool) -> u64 {
        // The slot may have another segment by now.
        let there = || index.table().number(slot) == number;
        if !there() {
            return 0;
        }
        let sets = index.sets();
        sets.sweep(|place| place.slot == slot && gone(place.offset) && there())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::segment::tests::folder_with_unreadable_segment;

    /// A failing disk or a shortage of memory says nothing of the bytes: another try may read them.
    #[test]
    fn parts_that_the_system_refuses_to_read_are_not_damaged_and_stay() {
        let place = tempfile::tempdir().expect("a folder");
        let segments = folder_with_unreadable_segment(place.path());
        let mut unread = Vec::new();
        let verified = segments.verify_with(|looked| {
            if let Looked::Unread { segment, reason } = looked {
                unread.push(format!("{segment}: {reason}"));
            }
        });
        assert_eq!(verified, Verified { unread: 1, ..Verified::default() });
        assert_eq!(unread, ["0000000000000001.seg: Bad file descriptor (os error 9)"]);
        assert_eq!(segments.stat().parts, 3, "they stay");
        let again = Segments::open(place.path(), &Options::new()).expect("a folder");
        assert_eq!(again.verify().good, 3);
    }
}
