//! Whether all that is there is whole.

use crate::folder::segment_name;
use crate::index::Index;
use crate::read::{Found, Unread};
use crate::segments::Segments;
use crate::survey::Step;
use crate::table::State;

/// What a look at every byte found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Parts that are as they were written.
    pub good: u64,
    /// Their bytes.
    pub good_bytes: u64,
    /// Parts that are not, or of which nobody can tell what they were; they are no longer there.
    pub damaged: u64,
    /// Segments with bytes that are no record: damage, or a write that did not end. What lies
    /// behind the last record of a segment that is appended to is not counted.
    pub torn: u64,
    /// Segments that the system would not open. Nothing is known of their parts, which stay.
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
    /// The system would not open a segment.
    Unread {
        /// The name of the segment's file.
        segment: &'a str,
        /// What the system said.
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
}

impl Segments {
    /// Looks at every byte that is there. What is damaged is no longer there afterwards.
    pub fn verify(&self) -> Verified {
        self.verify_with(|_| {})
    }

    /// As [`Segments::verify`]; tells what it finds when it finds it.
    pub fn verify_with(&self, mut tell: impl FnMut(Looked<'_>)) -> Verified {
        let mut verified = Verified::default();
        let total: u64 =
            self.index().map_or(0, |index| index.table().rows().map(|(_, row)| row.counted).sum());
        let mut before = 0;
        self.each(|index, step| match step {
            Step::Record(found) => {
                Self::verify_record(&found, &mut verified, &mut tell);
                let done = before + found.head.end();
                tell(Looked::Bytes { done: done.min(total), total });
            }
            Step::End(slot, segment, gaps) => {
                before += segment.file_len();
                let no_record = |offset| segment.read_head(offset).is_none();
                // Zeros may be the head of a record that is gone: the index tells.
                let lost = if gaps.any {
                    Self::take_out(index, slot, segment.number, no_record)
                } else {
                    0
                };
                // Behind the end of one that is appended to lies what its file had before.
                let row = index.table().row(slot);
                let ended = row.is_none_or(|row| row.state != State::Writing);
                verified.torn += u64::from(gaps.written && ended || lost > 0);
                verified.lost(lost, segment.number, &mut tell);
            }
            Step::Unreadable(_, number, refusal) if refusal.is_unknown() => {
                verified.unread += 1;
                let (segment, reason) = (&segment_name(number), &refusal.to_string());
                tell(Looked::Unread { segment, reason });
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

    fn verify_record(
        found: &Found<'_>,
        verified: &mut Verified,
        tell: &mut impl FnMut(Looked<'_>),
    ) {
        for number in found.numbers() {
            if Self::uses(found, number).is_none() {
                continue;
            }
            match found.verify(number) {
                Ok(()) => {
                    let bytes = found.len_of(number);
                    verified.good += 1;
                    verified.good_bytes += bytes;
                    tell(Looked::Good { label: &found.head.label, bytes });
                }
                Err(Unread::Damaged(_)) => {
                    verified.damaged += 1;
                    let segment = &segment_name(found.segment.number);
                    tell(Looked::Damaged { label: &found.head.label, number, segment });
                }
                Err(Unread::Gone) => {}
            }
        }
    }

    /// Takes what leads to places of a segment out of the index. How many words there were.
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
