//! Statistics of a folder.

use crate::folder::names::segment_number;
use crate::guard::{charged_len, other_bytes};
use crate::index::Index;
use crate::index::table::State;
use crate::layout::index as at;
use crate::segments::Segments;
use crate::stats::Stat;
use std::sync::atomic::Ordering;

impl Segments {
    /// Returns statistics of the folder.
    pub fn stat(&self) -> Stat {
        let [damaged, not_kept, written_bytes, rebuilt] = self.counters.load();
        let read_only = self.is_read_only();
        let mut stat =
            Stat { read_only, damaged, not_kept, written_bytes, rebuilt, ..Stat::default() };
        let Some(index) = self.index() else { return stat };
        if let Some(settings) = index.settings() {
            (stat.limit, stat.min_free) = (settings.limit, settings.min_free);
        }
        for (_, row) in index.table().rows() {
            stat.segments += 1;
            stat.segment_bytes += row.charged;
            stat.writing += u64::from(row.state == State::Writing);
        }
        stat.used = stat.segment_bytes + self.other_bytes(index);
        stat.evicted = index.word(at::EVICTED).load(Ordering::Relaxed);
        stat.moved_bytes = index.word(at::MOVED).load(Ordering::Relaxed);
        stat.displaced = index.word(at::DISPLACED).load(Ordering::Relaxed);
        (stat.parts, stat.max_parts) = index.sets().used_and_total_words();
        stat
    }

    /// Returns the bytes that count towards the limit besides segments.
    fn other_bytes(&self, index: &Index) -> u64 {
        let entries = self.folder.list().unwrap_or_default();
        let other_entries = entries.iter().filter(|entry| segment_number(&entry.name).is_none());
        let own_len = self.folder.folder_bytes() + charged_len(index.geometry.file_len());
        other_entries.map(other_bytes).sum::<u64>() + own_len
    }
}
