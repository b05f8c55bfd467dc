//! Ranges of chunks and bytes.

use crate::error::{Error, Result};
use std::ops::Range;

/// Checks that a range is not empty and does not end after `max`.
///
/// # Errors
///
/// Returns [`Error::Range`] otherwise.
pub(crate) fn check_range(range: &Range<u64>, max: u64) -> Result<()> {
    if range.start >= range.end || range.end > max {
        return Err(Error::Range { start: range.start, end: range.end, max });
    }
    Ok(())
}

/// Appends a range to ranges that end before it, or where it begins.
pub(crate) fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut().filter(|last| last.end == range.start) {
        Some(last) => last.end = range.end,
        None => ranges.push(range),
    }
}

/// Merges ranges with gaps of at most `max_gap` between them, unless the result would be longer
/// than `max_len`. All numbers have the unit of the ranges. This saves requests, but fetches the
/// gaps again.
#[must_use]
pub fn merge_gaps(missing: &[Range<u64>], max_gap: u64, max_len: u64) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(missing.len());
    for range in missing {
        match merged.last_mut() {
            Some(last)
                if range.start.saturating_sub(last.end) <= max_gap
                    && range.end.saturating_sub(last.start) <= max_len =>
            {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range.clone()),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::merge_gaps;

    #[test]
    fn gaps_are_merged_up_to_a_size() {
        let missing = [0..10, 12..20, 30..40, 41..42];
        assert_eq!(merge_gaps(&missing, 0, 100), missing);
        assert_eq!(merge_gaps(&missing, 2, 100), [0..20, 30..42]);
        assert_eq!(merge_gaps(&missing, 2, 15), [0..10, 12..20, 30..42]);
        assert_eq!(merge_gaps(&missing, 100, 100), std::slice::from_ref(&(0..42)));
        assert!(merge_gaps(&[], 1, 1).is_empty());
    }
}
