//! Moving the retained records of a segment to another one.

use super::census::Retained;
use crate::error::Result;
use crate::guard::FolderGuard;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::segment::Segment;
use crate::segment::appender::Appender;
use crate::segment::record::{Head, Record};
use std::sync::atomic::Ordering;

impl FolderGuard<'_> {
    /// Moves records to another segment. Returns false if a pinned one could not be moved; others
    /// are dropped then. Takes the table lock only to begin a segment.
    pub(super) fn move_records(
        &mut self,
        slot: u32,
        segment: &Segment,
        retained: &[Retained],
    ) -> Result<bool> {
        for &Retained { offset, is_pinned } in retained {
            let is_moved = match segment.try_head(offset) {
                Ok(Some(head)) => self.move_record(Place { slot, offset }, segment, &head)?,
                // The head is damaged, or another program truncated the file.
                Ok(None) => true,
                Err(_) => false,
            };
            if !is_moved && is_pinned {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves one record. Returns false if it could not be moved.
    fn move_record(&mut self, old: Place, segment: &Segment, head: &Head) -> Result<bool> {
        let mut data = vec![0; head.data_len() as usize];
        match segment.try_read(head.data_offset, &mut data) {
            Ok(true) => {}
            // Another program truncated the file.
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
        let process_id = std::process::id();
        let family = self.index.family;
        let is_own =
            |appender: &Appender| appender.process_id == process_id && appender.family == family;
        let mut appender = self.exclusive.move_appender.take().filter(is_own);
        let mut reservation = appender.as_mut().and_then(|appender| appender.reserve(len));
        if reservation.is_none() {
            self.retake()?;
            if let Some(full_segment) = appender.take() {
                self.seal(full_segment);
            }
            let new_appender = self.begin(len, true)?;
            self.release();
            let Ok(mut new_appender) = new_appender else { return Ok(false) };
            reservation = new_appender.reserve(len);
            appender = Some(new_appender);
        }
        self.exclusive.move_appender = appender;
        let Some(reservation) = reservation else { return Ok(false) };
        if self.segments.write_at(&reservation, &record).is_err() {
            return Ok(false);
        }
        let new = Place { slot: reservation.slot, offset: reservation.offset };
        let moved = self.index.word(at::MOVED);
        moved.fetch_add(len, Ordering::Relaxed);
        for hash in head.hashes() {
            self.index.sets().redirect(hash, old, new);
        }
        Ok(true)
    }
}
