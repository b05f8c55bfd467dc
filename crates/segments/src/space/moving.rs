//! Moving records to another segment.

use super::census::Live;
use crate::error::Result;
use crate::guard::Turn;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::segment::Segment;
use crate::segment::appender::Appender;
use crate::segment::record::{Head, Record};
use std::sync::atomic::Ordering;

impl Turn<'_> {
    /// Moves records to another segment. Returns false if a pinned one could not be moved; others
    /// are dropped then. Takes the lock of the folder only to begin a segment.
    pub(super) fn save(&mut self, slot: u32, segment: &Segment, live: &[Live]) -> Result<bool> {
        for &Live { offset, pinned } in live {
            let is_moved = match segment.try_head(offset) {
                Ok(Some(head)) => self.save_record(Place { slot, offset }, segment, &head)?,
                // The head is damaged, or the file has been truncated.
                Ok(None) => true,
                Err(_) => false,
            };
            if !is_moved && pinned {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn save_record(&mut self, old: Place, segment: &Segment, head: &Head) -> Result<bool> {
        let mut data = vec![0; head.data_len() as usize];
        match segment.try_read(head.data_at, &mut data) {
            Ok(true) => {}
            // The file has been truncated.
            Ok(false) => return Ok(true),
            Err(_) => return Ok(false),
        }
        let record = Record {
            name: head.name,
            first: head.first,
            label: &head.label,
            expiry: head.expiry,
            parts: &head.parts,
            data: &data,
        };
        let len = record.len();
        let process = std::process::id();
        let family = self.index.family;
        let own = |open: &Appender| open.process == process && open.family == family;
        let mut open = self.alone.kept.take().filter(own);
        let mut space = open.as_mut().and_then(|open| open.take(len));
        if space.is_none() {
            self.retake()?;
            if let Some(full) = open.take() {
                self.seal(full);
            }
            let begun = self.begin(len, true)?;
            self.release();
            let Ok(mut begun) = begun else { return Ok(false) };
            space = begun.take(len);
            open = Some(begun);
        }
        self.alone.kept = open;
        let Some(space) = space else { return Ok(false) };
        if self.of.write_at(&space, &record).is_err() {
            return Ok(false);
        }
        let new = Place { slot: space.slot, offset: space.offset };
        let moved = self.index.word(at::MOVED);
        moved.fetch_add(len, Ordering::Relaxed);
        for hash in head.hashes() {
            self.index.sets().lead_on(hash, old, new);
        }
        Ok(true)
    }
}
