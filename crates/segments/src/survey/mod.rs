//! All of a folder: what is in it, whether it is whole, and taking much of it away. Others go on
//! reading and writing meanwhile.

mod stat;
mod verify;
mod warnings;

pub use verify::{Looked, Verified};
pub use warnings::Warning;

use crate::folder::names::segment_name;
use crate::id::Id;
use crate::index::Index;
use crate::index::word::Place;
use crate::read::Found;
use crate::segment::{Gaps, Refusal, Segment};
use crate::segments::Segments;
use std::sync::Arc;

/// Parts that were found, in one record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Their name.
    pub name: [u8; 16],
    /// What the name stands for.
    pub label: Vec<u8>,
    /// The number of each part that is there, and how many bytes it has.
    pub parts: Vec<(u64, u64)>,
    /// When they expire, in milliseconds since 1970; zero for never.
    pub expiry: u64,
    /// How often the part that was used most was used lately, up to three times.
    pub uses: u64,
    /// When something was last written to their segment, in milliseconds since 1970.
    pub written_ms: u64,
}

/// A segment that could not be read, wholly or in part. Nothing is known of its parts, which stay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreadable {
    /// The name of its file in the folder.
    pub segment: String,
    /// What the system said.
    pub reason: String,
}

impl Unreadable {
    fn new(number: u64, refusal: Refusal) -> Self {
        Self { segment: segment_name(number), reason: refusal.to_string() }
    }
}

/// What is found on the way through all segments.
pub(crate) enum Step<'a> {
    Record(Found<'a>),
    /// After the records of a segment, and what else was in it.
    End(u32, &'a Segment, Gaps),
    /// A segment that cannot be opened, by its number, and why.
    Unreadable(u32, u64, Refusal),
}

impl Segments {
    /// Returns the segments that this process cannot open now.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let Some(index) = self.index() else { return Vec::new() };
        let numbers = (0..index.geometry.slots).map(|slot| (slot, index.table().number(slot)));
        let numbers = numbers.filter(|(_, number)| *number != 0);
        let refused = numbers.filter_map(|(slot, number)| {
            let refusal = self.segment_of(index, slot, number).err()?;
            let there = index.table().number(slot) == number;
            (there && refusal.is_unknown()).then(|| Unreadable::new(number, refusal))
        });
        refused.collect()
    }

    /// Visits all records with the parts of them that are there. Returns the segments that could
    /// not be read: there may be more parts in them.
    pub fn list(&self, mut visit: impl FnMut(Listed)) -> Vec<Unreadable> {
        let mut unreadable = Vec::new();
        // Of the segment that is looked at.
        let mut written = (0, 0);
        self.each(|_, step| {
            let found = match step {
                Step::Record(found) => found,
                Step::Unreadable(_, number, refusal) => {
                    if refusal.is_unknown() {
                        unreadable.push(Unreadable::new(number, refusal));
                    }
                    return;
                }
                Step::End(_, segment, gaps) => {
                    let refusal = gaps.refused.map(Refusal::System);
                    let one = refusal.map(|refusal| Unreadable::new(segment.number, refusal));
                    unreadable.extend(one);
                    return;
                }
            };
            if written.0 != found.segment.number {
                written = (found.segment.number, found.segment.written_ms());
            }
            let mut uses = 0;
            let parts = found.numbers().filter_map(|number| {
                uses = uses.max(Self::uses(&found, number)?);
                Some((number, found.len_of(number)))
            });
            let parts: Vec<_> = parts.collect();
            if !parts.is_empty() {
                let head = &found.head;
                let (label, expiry) = (head.label.to_vec(), head.expiry);
                let (name, written_ms) = (head.name, written.1);
                visit(Listed { name, label, parts, expiry, uses, written_ms });
            }
        });
        unreadable
    }

    /// How often a part was used, if the index leads to it.
    pub(crate) fn uses(found: &Found<'_>, number: u64) -> Option<u64> {
        let hash = Id::new(found.head.name, number).hash();
        found.index.sets().uses(hash, found.place)
    }

    /// Visits every record that has not expired, segment by segment.
    pub(crate) fn each(&self, mut visit: impl FnMut(&Index, Step<'_>)) {
        let Some(index) = self.index() else { return };
        for slot in 0..index.geometry.slots {
            let number = index.table().number(slot);
            if number == 0 {
                continue;
            }
            let segment = match self.segment_of(index, slot, number) {
                Ok(segment) => segment,
                Err(refusal) => {
                    if index.table().number(slot) == number {
                        visit(index, Step::Unreadable(slot, number, refusal));
                    }
                    continue;
                }
            };
            let now = self.options.clock.now_ms();
            let gaps = segment.walk(|offset, head| {
                if !head.expired(now) {
                    let place = Place { slot, offset };
                    let (segment, head) = (segment.clone(), Arc::new(head));
                    let found = Found { segments: self, index, segment, head, place };
                    visit(index, Step::Record(found));
                }
            });
            let there = index.table().number(slot) == segment.number;
            let gaps = if there { gaps } else { Gaps::default() };
            visit(index, Step::End(slot, &segment, gaps));
        }
    }
}
