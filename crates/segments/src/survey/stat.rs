//! How a folder stands.

use crate::folder::names::segment_number;
use crate::guard::{counted, other_bytes};
use crate::index::Index;
use crate::index::table::State;
use crate::layout::index as at;
use crate::segments::Segments;
use crate::stats::Stat;
use std::sync::atomic::Ordering;

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
}
