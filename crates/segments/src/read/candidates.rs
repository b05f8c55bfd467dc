//! The stored parts of a name in a long range, found by one pass over the index instead of one
//! lookup per part.

use crate::segments::Segments;
use std::ops::Range;

/// Maximum length of a range that is always looked up part by part.
const MAX_LOOKUPS: u64 = 4096;
/// Words of the index that a pass counts in the time of a lookup.
const WORDS_PER_LOOKUP: u64 = 64;
/// Lookups that take about as long as reading the head of a record.
const LOOKUPS_PER_RECORD: u64 = 4;

impl Segments {
    /// Returns the numbers of a range for which parts may be stored, in order; no other part of the
    /// name is in the range. `None` if it is as fast to look up each of them. So the time to find
    /// the parts of a range depends on the content of the folder, not on the length of the range.
    #[inline]
    pub fn candidates(
        &self,
        name: &[u8; 16],
        label: &[u8],
        range: &Range<u64>,
    ) -> Option<Vec<u64>> {
        let is_short = range.end.saturating_sub(range.start) <= MAX_LOOKUPS;
        if is_short { None } else { self.candidates_of_long(name, label, range) }
    }

    /// Returns the candidates of a long range.
    #[cold]
    fn candidates_of_long(
        &self,
        name: &[u8; 16],
        label: &[u8],
        range: &Range<u64>,
    ) -> Option<Vec<u64>> {
        let len = range.end.saturating_sub(range.start);
        let Some(index) = self.index() else { return Some(Vec::new()) };
        if len <= index.geometry.words() / WORDS_PER_LOOKUP {
            return None;
        }
        let sets = index.sets();
        if len <= sets.used_and_total_words().0 * LOOKUPS_PER_RECORD {
            return None;
        }
        let mut numbers = Vec::new();
        for place in sets.places() {
            let Some(segment) = self.segment(index, place.slot) else { continue };
            let head = segment.read_head(place.offset);
            let Some(head) = head.filter(|head| head.name == *name && *head.label == *label) else {
                continue;
            };
            let end = head.first.saturating_add(head.parts.len() as u64);
            numbers.extend(head.first.max(range.start)..end.min(range.end));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Part, Record, Segments, checksum, work_counters};

    #[test]
    fn a_range_of_2_to_the_40_costs_no_more_than_the_stored_parts() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new().limit(16 << 20);
        let segments = Segments::open(folder.path(), &options).expect("a folder");
        let (name, label, data) = ([7; 16], &b"label"[..], [1; 100]);
        let parts =
            [Part { end: 50, checksum: checksum(&data[..50]) }, Part { end: 100, checksum: 1 }];
        let far = (1 << 39) + 1;
        for first in [5, 1000, far] {
            let record = Record { name, first, label, expiry: 0, parts: &parts, data: &data };
            segments.put(&record).expect("a put");
        }
        let before = work_counters::steps();
        let found = segments.candidates(&name, label, &(6..1 << 40)).expect("few of so many");
        assert_eq!(found, [6, 1000, 1001, far, far + 1]);
        let words = segments.stat().max_parts;
        let steps = work_counters::steps() - before;
        assert!(steps <= words, "{steps} steps for {words} words");
        assert_eq!(segments.candidates(&name, b"other", &(0..1 << 40)), Some(vec![]));
        assert_eq!(segments.candidates(&name, label, &(0..100)), None, "it is short");
    }
}
