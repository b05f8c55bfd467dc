//! Verification of every stored byte.

use super::Step;
use crate::folder::names::segment_name;
use crate::index::Index;
use crate::index::table::State;
use crate::read::{Found, ReadError};
use crate::segment::OpenError;
use crate::segments::Segments;
use rustix::io::Errno;

/// The result of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Intact parts.
    pub good: u64,
    /// Bytes of intact parts.
    pub good_bytes: u64,
    /// Parts that are damaged, or whose record is lost. They were removed, unless the folder can
    /// only be read.
    pub damaged: u64,
    /// Segments with damaged bytes between records, or with words that point to no record. Bytes
    /// after the last record of a segment that is being written are not counted.
    pub torn: u64,
    /// Segments that could not be opened or read completely. Their unread parts stay in the index.
    pub unreadable: u64,
}

/// An event of [`Segments::verify_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyEvent<'a> {
    /// Progress.
    Bytes {
        /// Bytes of segments that were verified.
        done: u64,
        /// Bytes of all segments.
        total: u64,
    },
    /// A part is intact.
    Good {
        /// The label of its record.
        label: &'a [u8],
        /// Its length in bytes.
        bytes: u64,
    },
    /// A part is damaged.
    Damaged {
        /// The label of its record.
        label: &'a [u8],
        /// Its number.
        number: u64,
        /// The name of the segment's file.
        segment: &'a str,
    },
    /// The system did not open a segment, or did not read all of its bytes.
    Unreadable {
        /// The name of the segment's file.
        segment: &'a str,
        /// The error of the system.
        reason: &'a str,
    },
    /// Words pointed to records of a segment that no longer exist, so the names of their parts are
    /// unknown.
    Lost {
        /// The number of parts.
        parts: u64,
        /// The name of the segment's file.
        segment: &'a str,
    },
}

impl Verified {
    /// Counts and reports lost parts.
    fn add_lost(&mut self, parts: u64, segment: u64, report: &mut impl FnMut(VerifyEvent<'_>)) {
        self.damaged += parts;
        if parts > 0 {
            report(VerifyEvent::Lost { parts, segment: &segment_name(segment) });
        }
    }

    /// Counts and reports a segment that could not be read.
    fn add_unreadable(
        &mut self,
        error: OpenError,
        segment: u64,
        report: &mut impl FnMut(VerifyEvent<'_>),
    ) {
        self.unreadable += 1;
        let (segment, reason) = (&segment_name(segment), &error.to_string());
        report(VerifyEvent::Unreadable { segment, reason });
    }
}

impl Segments {
    /// Verifies all parts that are in the index. Removes damaged ones unless the folder can only be
    /// read.
    pub fn verify(&self) -> Verified {
        self.verify_with(|_| {})
    }

    /// Does the same as [`Segments::verify`] and reports events to `report`.
    pub fn verify_with(&self, mut report: impl FnMut(VerifyEvent<'_>)) -> Verified {
        let mut verified = Verified::default();
        let total: u64 =
            self.index().map_or(0, |index| index.table().rows().map(|(_, row)| row.charged).sum());
        let mut bytes_before = 0;
        // The first error of the system in the current segment.
        let mut read_error = None;
        self.visit_records(|index, step| match step {
            Step::Record(found) => {
                let read = Self::verify_record(&found, &mut verified, &mut report);
                read_error = read_error.or(read.err());
                let done = bytes_before + found.head.end();
                report(VerifyEvent::Bytes { done: done.min(total), total });
            }
            Step::End(slot, segment, gaps) => {
                bytes_before += segment.file_len();
                let read_error = read_error.take().or(gaps.error);
                if let Some(errno) = read_error {
                    verified.add_unreadable(OpenError::System(errno), segment.number, &mut report);
                }
                let has_no_record = |offset| matches!(segment.try_head(offset), Ok(None));
                // Zeros may be the head of a record that was overwritten. In that case words point
                // there.
                let lost = if gaps.exist {
                    Self::remove_lost_words(index, slot, segment.number, has_no_record)
                } else {
                    0
                };
                // The file of a segment that is being written may have old bytes after the last
                // record.
                let row = index.table().row(slot);
                let is_sealed = row.is_none_or(|row| row.state != State::Writing);
                let is_torn = gaps.have_data && gaps.error.is_none() && is_sealed;
                verified.torn += u64::from(is_torn || lost > 0);
                verified.add_lost(lost, segment.number, &mut report);
            }
            Step::Unreadable(_, number, error) if error.may_be_intact() => {
                verified.add_unreadable(error, number, &mut report);
            }
            Step::Unreadable(slot, number, _) => {
                verified.torn += 1;
                let lost = Self::remove_lost_words(index, slot, number, |_| true);
                verified.add_lost(lost, number, &mut report);
            }
        });
        report(VerifyEvent::Bytes { done: total, total });
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
        report: &mut impl FnMut(VerifyEvent<'_>),
    ) -> Result<(), Errno> {
        let mut read = Ok(());
        for number in found.numbers() {
            if Self::uses(found, number).is_none() {
                continue;
            }
            match found.verify(number) {
                Ok(Ok(())) => {
                    let bytes = found.part_len(number);
                    verified.good += 1;
                    verified.good_bytes += bytes;
                    report(VerifyEvent::Good { label: &found.head.label, bytes });
                }
                Ok(Err(ReadError::Damaged(_))) => {
                    verified.damaged += 1;
                    let segment = &segment_name(found.segment.number);
                    report(VerifyEvent::Damaged { label: &found.head.label, number, segment });
                }
                Ok(Err(ReadError::Evicted)) => {}
                Err(errno) => read = read.and(Err(errno)),
            }
        }
        read
    }

    /// Removes the words of a segment for whose offset `is_gone` returns true, if the index can be
    /// written. Returns their number.
    fn remove_lost_words(
        index: &Index,
        slot: u32,
        number: u64,
        is_gone: impl Fn(u64) -> bool,
    ) -> u64 {
        // The slot may have another segment by now.
        let is_unchanged = || index.table().number(slot) == number;
        if !is_unchanged() {
            return 0;
        }
        let sets = index.sets();
        sets.sweep(|place| place.slot == slot && is_gone(place.offset) && is_unchanged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::segment::tests::folder_with_unreadable_segment;

    /// A failing disk or a shortage of memory is no damage: a later attempt may read the bytes.
    #[test]
    fn parts_that_the_system_refuses_to_read_are_not_damaged_and_stay() {
        let place = tempfile::tempdir().expect("a folder");
        let segments = folder_with_unreadable_segment(place.path());
        let mut unread = Vec::new();
        let verified = segments.verify_with(|event| {
            if let VerifyEvent::Unreadable { segment, reason } = event {
                unread.push(format!("{segment}: {reason}"));
            }
        });
        assert_eq!(verified, Verified { unreadable: 1, ..Verified::default() });
        assert_eq!(unread, ["0000000000000001.seg: Bad file descriptor (os error 9)"]);
        assert_eq!(segments.stat().parts, 3, "they stay");
        let again = Segments::open(place.path(), &Options::new()).expect("a folder");
        assert_eq!(again.verify().good, 3);
    }
}
