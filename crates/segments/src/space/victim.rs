//! The choice of the segment that is reclaimed next.

use crate::error::Result;
use crate::folder::pins::{self, Pins};
use crate::guard::Turn;
use crate::index::table::{Row, State};
use std::collections::BTreeSet;

/// New segments are evicted first while they have more than one of so many bytes.
const NEW_SHARE: u64 = 10;

/// What a search for room has found out.
#[derive(Default)]
pub(super) struct Search {
    pub(super) pins: Pins,
    /// Slots that stay: looked at already, or full of what is pinned.
    pub(super) stay: BTreeSet<u32>,
    /// Used records are evicted, too.
    pub(super) forced: bool,
    pub(super) freed: u64,
}

impl Turn<'_> {
    pub(super) fn search(&self) -> Result<Search> {
        Ok(Search { pins: pins::load(&self.of.folder)?, ..Search::default() })
    }

    /// Returns the next segment to reclaim.
    pub(super) fn victim(&self, search: &mut Search) -> Option<(u32, Row)> {
        let table = self.index.table();
        loop {
            let sealed = table.rows().filter(|(_, row)| row.state == State::Sealed);
            let (mut new, mut all) = (0, 0);
            let mut oldest: [Option<(u32, Row)>; 2] = [None, None];
            for (slot, row) in sealed {
                all += row.counted;
                new += if row.kept { 0 } else { row.counted };
                let place = &mut oldest[usize::from(row.kept)];
                let older = place.is_none_or(|(_, found)| row.turn < found.turn);
                if older && !search.stay.contains(&slot) && self.moving != Some(slot) {
                    *place = Some((slot, row));
                }
            }
            let [oldest_new, oldest_kept] = oldest;
            let found = if new * NEW_SHARE > all {
                oldest_new.or(oldest_kept)
            } else {
                oldest_kept.or(oldest_new)
            };
            if found.is_some() || search.forced {
                return found;
            }
            search.forced = true;
            search.stay.clear();
        }
    }
}
