//! Ranges of chunks and bytes.

use crate::error::{Error, Result};
use std::ops::Range;

pub(crate) fn check_range(range: &Range<u64>, most: u64) -> Result<()> {
    if range.start >= range.end || range.end > most {
        return Err(Error::Range { start: range.start, end: range.end, most });
    }
    Ok(())
}

/// Adds a range to others that end before it, or where it begins.
pub(crate) fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut().filter(|last| last.end == range.start) {
        Some(last) => last.end = range.end,
        None => ranges.push(range),
    }
}

/// Merges ranges between which there are no more than so many, as long as none becomes longer than
/// `longest`: fewer requests for a few bytes too many.
#[must_use]
pub fn merge_gaps(missing: &[Range<u64>], gap_most: u64, longest: u64) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(missing.len());
    for range in missing {
        match merged.last_mut() {
            Some(last)
                if range.start.saturating_sub(last.end) <= gap_most
                    && range.end.saturating_sub(last.start) <= longest =>
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
