//! All of a folder: what is in it, whether it is whole, and taking much of it away. Others go on
//! reading and writing meanwhile.

use crate::error::Result;
use crate::folder::{segment_name, segment_number};
use crate::id::Id;
use crate::index::Index;
use crate::layout::index as at;
use crate::read::Found;
use crate::segment::{Gaps, Refusal, Segment};
use crate::segments::Segments;
use crate::sets::Place;
use crate::settings::Settings;
use crate::settle::other_bytes;
use crate::stats::Stat;
use crate::table::State;
use crate::turn::{Turn, counted};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

impl Refusal {
    /// Returns whether the segment may be whole all the same.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Self::System(_) | Self::Newer)
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
    /// How things stand.
    pub fn stat(&self) -> Stat {
        let [damaged, not_kept, written_bytes, rebuilt] = self.counts.load();
        let read_only = self.read_only();
        let mut stat =
            Stat { read_only, damaged, not_kept, written_bytes, rebuilt, ..Stat::default() };
        let Some(index) = self.index() else { return stat };
        if let Some(settings) = index.settings() {
            (stat.limit, stat.least_free) = (settings.limit, settings.least_free);
        }
        for (_, row) in index.table().rows() {
            stat.segments += 1;
            stat.segment_bytes += row.counted;
            stat.writing += u64::from(row.state == State::Writing);
        }
        stat.used = stat.segment_bytes + self.others(index);
        stat.evicted = index.word(at::EVICTED).load(Ordering::Relaxed);
        stat.moved_bytes = index.word(at::MOVED).load(Ordering::Relaxed);
        stat.displaced = index.word(at::DISPLACED).load(Ordering::Relaxed);
        (stat.parts, stat.parts_most) = index.sets().fill();
        stat
    }

    /// What the folder counts beside its segments.
    fn others(&self, index: &Index) -> u64 {
        let entries = self.folder.list().unwrap_or_default();
        let others = entries.iter().filter(|entry| segment_number(&entry.name).is_none());
        let own = self.folder.own_bytes() + counted(index.geometry.file_len());
        others.map(other_bytes).sum::<u64>() + own
    }

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

    /// Evicts what has expired, then more until no more than so many bytes are used. Answers how
    /// many are.
    pub fn prune(&self, to: Option<u64>) -> Result<u64> {
        let mut turn = self.turn_without_writers()?;
        turn.seal_orphans();
        turn.drop_dead()?;
        if let Some(to) = to {
            turn.shrink(to.max(1))?;
        }
        Ok(turn.used())
    }

    /// Evicts what was put before a time, in milliseconds since 1970, by whole segments: those
    /// that nothing was written to since. What is pinned stays, and what was moved because it is
    /// used counts as put when it was moved. Answers how many bytes are used.
    pub fn prune_older(&self, than_ms: u64) -> Result<u64> {
        let mut turn = self.turn_without_writers()?;
        turn.seal_orphans();
        turn.drop_older(than_ms)?;
        Ok(turn.used())
    }

    /// Evicts everything but what is pinned and what other processes are writing to. Answers how
    /// many bytes are still used.
    pub fn clear(&self) -> Result<u64> {
        let mut turn = self.turn_without_writers()?;
        turn.shrink(0)?;
        Ok(turn.used())
    }

    /// Waits for a turn, and closes the segments that this process appends to.
    fn turn_without_writers(&self) -> Result<Turn<'_>> {
        let mut turn = self.own_turn()?;
        drop(self.lock_writer().take());
        turn.alone.kept = None;
        Ok(turn)
    }

    /// Changes the [`Options::limit`](crate::Options::limit) for all processes. Like that option,
    /// this evicts at once what the folder has beyond a lower limit.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        let options = self.options.clone().limit(bytes);
        options.validate()?;
        let mut turn = self.own_turn()?;
        turn.change_settings(Settings { limit: bytes, ..turn.settings })
    }
}
