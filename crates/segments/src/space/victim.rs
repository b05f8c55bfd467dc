//! The choice of the next segment to reclaim.

use crate::error::Result;
use crate::folder::pins::{self, Pins};
use crate::guard::FolderGuard;
use crate::index::table::{Row, State};
use std::collections::BTreeSet;

/// The small queue is reclaimed first while it has more than one of this many bytes.
const SMALL_QUEUE_RATIO: u64 = 10;

/// The state of a search for space.
#[derive(Default)]
pub(super) struct Search {
    pub(super) pins: Pins,
    /// Slots that are not evicted: already tried, or full of pinned records.
    pub(super) skipped_slots: BTreeSet<u32>,
    /// Whether used records are evicted, too.
    pub(super) evicts_used: bool,
    pub(super) freed_bytes: u64,
}

impl FolderGuard<'_> {
    /// Begins a search.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the list of pins.
    pub(super) fn search(&self) -> Result<Search> {
        Ok(Search { pins: pins::load(&self.segments.folder)?, ..Search::default() })
    }

    /// Returns the next segment to reclaim. If there is none, starts over and evicts used records,
    /// too.
    pub(super) fn victim(&self, search: &mut Search) -> Option<(u32, Row)> {
        let table = self.index.table();
        loop {
            let sealed = table.rows().filter(|(_, row)| row.state == State::Sealed);
            let (mut small_bytes, mut all_bytes) = (0, 0);
            let mut oldest: [Option<(u32, Row)>; 2] = [None, None];
            for (slot, row) in sealed {
                all_bytes += row.charged;
                small_bytes += if row.in_main_queue { 0 } else { row.charged };
                let queue = &mut oldest[usize::from(row.in_main_queue)];
                let is_older =
                    queue.is_none_or(|(_, found)| row.eviction_order < found.eviction_order);
                if is_older
                    && !search.skipped_slots.contains(&slot)
                    && self.moving_slot != Some(slot)
                {
                    *queue = Some((slot, row));
                }
            }
            let [oldest_small, oldest_main] = oldest;
            let found = if small_bytes * SMALL_QUEUE_RATIO > all_bytes {
                oldest_small.or(oldest_main)
            } else {
                oldest_main.or(oldest_small)
            };
            if found.is_some() || search.evicts_used {
                return found;
            }
            search.evicts_used = true;
            search.skipped_slots.clear();
        }
    }
}
