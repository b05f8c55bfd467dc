//! All records of a folder: listing them, statistics and verification. Other processes go on
//! reading and writing meanwhile.

mod stat;
mod verify;
mod warnings;

pub use verify::{Verified, VerifyEvent};
pub use warnings::Warning;

use crate::folder::names::segment_name;
use crate::id::Id;
use crate::index::Index;
use crate::index::word::Place;
use crate::read::Found;
use crate::segment::{Gaps, OpenError, Segment};
use crate::segments::Segments;
use std::sync::Arc;

/// A record, with the parts that are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordInfo {
    /// The name.
    pub name: [u8; 16],
    /// The label.
    pub label: Vec<u8>,
    /// The number and the length of each part that is stored.
    pub parts: Vec<(u64, u64)>,
    /// When the parts expire, in milliseconds since 1970; zero for never.
    pub expiry: u64,
    /// The greatest use count of a part, at most 3.
    pub uses: u64,
    /// The time of the last write to the segment, in milliseconds since 1970.
    pub written_ms: u64,
}

/// A segment of which some or all bytes could not be read. Its unread parts stay in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreadable {
    /// The name of the file.
    pub segment: String,
    /// The error of the system.
    pub reason: String,
}

impl Unreadable {
    fn new(number: u64, error: OpenError) -> Self {
        Self { segment: segment_name(number), reason: error.to_string() }
    }
}

/// A step of a pass over all segments.
pub(crate) enum Step<'a> {
    Record(Found<'a>),
    /// The end of a segment in a slot, and its bytes that belong to no record.
    End(u32, &'a Segment, Gaps),
    /// A segment that cannot be opened: its slot, its number and the reason.
    Unreadable(u32, u64, OpenError),
}

impl Segments {
    /// Returns the segments that this process cannot open now.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let Some(index) = self.index() else { return Vec::new() };
        let numbers = (0..index.geometry.slots).map(|slot| (slot, index.table().number(slot)));
        let numbers = numbers.filter(|(_, number)| *number != 0);
        let unreadable = numbers.filter_map(|(slot, number)| {
            let error = self.segment_of(index, slot, number).err()?;
            let is_unchanged = index.table().number(slot) == number;
            (is_unchanged && error.may_be_intact()).then(|| Unreadable::new(number, error))
        });
        unreadable.collect()
    }

    /// Visits all records that have stored parts. Returns the segments that could not be read:
    /// there may be more parts in them.
    pub fn list(&self, mut visit: impl FnMut(RecordInfo)) -> Vec<Unreadable> {
        let mut unreadable = Vec::new();
        // The number of the current segment and the time of its last write.
        let mut written = (0, 0);
        self.visit_records(|_, step| {
            let found = match step {
                Step::Record(found) => found,
                Step::Unreadable(_, number, error) => {
                    if error.may_be_intact() {
                        unreadable.push(Unreadable::new(number, error));
                    }
                    return;
                }
                Step::End(_, segment, gaps) => {
                    let error = gaps.error.map(OpenError::System);
                    let found = error.map(|error| Unreadable::new(segment.number, error));
                    unreadable.extend(found);
                    return;
                }
            };
            if written.0 != found.segment.number {
                written = (found.segment.number, found.segment.written_ms());
            }
            let mut uses = 0;
            let parts = found.numbers().filter_map(|number| {
                uses = uses.max(Self::uses(&found, number)?);
                Some((number, found.part_len(number)))
            });
            let parts: Vec<_> = parts.collect();
            if !parts.is_empty() {
                let head = &found.head;
                let (label, expiry) = (head.label.to_vec(), head.expiry);
                let (name, written_ms) = (head.name, written.1);
                visit(RecordInfo { name, label, parts, expiry, uses, written_ms });
            }
        });
        unreadable
    }

    /// Returns the use count of a part, if a word points to it.
    pub(crate) fn uses(found: &Found<'_>, number: u64) -> Option<u64> {
        let hash = Id::new(found.head.name, number).hash();
        found.index.sets().uses(hash, found.place)
    }

    /// Visits every record that has not expired, segment by segment.
    pub(crate) fn visit_records(&self, mut visit: impl FnMut(&Index, Step<'_>)) {
        let Some(index) = self.index() else { return };
        for slot in 0..index.geometry.slots {
            let number = index.table().number(slot);
            if number == 0 {
                continue;
            }
            let segment = match self.segment_of(index, slot, number) {
                Ok(segment) => segment,
                Err(error) => {
                    if index.table().number(slot) == number {
                        visit(index, Step::Unreadable(slot, number, error));
                    }
                    continue;
                }
            };
            let now = self.options.clock.now_ms();
            let gaps = segment.scan(|offset, head| {
                if !head.is_expired(now) {
                    let place = Place { slot, offset };
                    let (segment, head) = (segment.clone(), Arc::new(head));
                    let found = Found { segments: self, index, segment, head, place };
                    visit(index, Step::Record(found));
                }
            });
            let is_unchanged = index.table().number(slot) == segment.number;
            let gaps = if is_unchanged { gaps } else { Gaps::default() };
            visit(index, Step::End(slot, &segment, gaps));
        }
    }
}
