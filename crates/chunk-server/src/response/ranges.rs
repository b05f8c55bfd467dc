//! The ranges that a request names.

use std::ops::Range;

/// The maximum number of ranges of a request. A request with more receives the whole object.
pub(crate) const MAX_RANGES: usize = 32;

/// The bytes of an object that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestedRanges {
    /// The whole object.
    All,
    /// Ranges in ascending order, none of which touches the next.
    Some(Vec<Range<u64>>),
    /// No byte that the object has.
    Unsatisfiable,
}

/// Returns what a `Range` header names of an object of length `len`. Headers that are not valid, or
/// that have another unit, name the whole object; so does every header for an empty object.
pub(crate) fn requested_ranges(header: &[u8], len: u64) -> RequestedRanges {
    match listed(header) {
        Some(specs) if len > 0 => within(&specs, len),
        _ => RequestedRanges::All,
    }
}

/// A range as it is written. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spec {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

impl Spec {
    fn parse(text: &[u8]) -> Option<Self> {
        let dash = text.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (&text[..dash], &text[dash + 1..]);
        match (first, last) {
            ([], last) => Some(Self::Last(number(last)?)),
            (first, []) => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// Returns the part of the range that an object of length `len` has.
    fn of(self, len: u64) -> Range<u64> {
        match self {
            Self::From(first) => first.min(len)..len,
            Self::Between(first, last) => first.min(len)..last.saturating_add(1).min(len),
            Self::Last(count) => len.saturating_sub(count)..len,
        }
    }
}

/// Parses a number that has digits only. A number that is too large becomes the largest.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}

/// Returns the ranges of a header, if their unit is bytes and there are not too many.
fn listed(header: &[u8]) -> Option<Vec<Spec>> {
    let equals = header.iter().position(|byte| *byte == b'=')?;
    if !header[..equals].trim_ascii().eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let texts = header[equals + 1..].split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    // A list may have empty elements.
    let texts = texts.filter(|text| !text.is_empty());
    let specs = texts.take(MAX_RANGES + 1).map(Spec::parse).collect::<Option<Vec<_>>>()?;
    (1..=MAX_RANGES).contains(&specs.len()).then_some(specs)
}

fn within(specs: &[Spec], len: u64) -> RequestedRanges {
    let ranges = specs.iter().map(|spec| spec.of(len));
    let mut ranges: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match apart.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    if apart.is_empty() { RequestedRanges::Unsatisfiable } else { RequestedRanges::Some(apart) }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a request often names one range")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_as_they_are_written() {
        use RequestedRanges::{All, Some, Unsatisfiable};
        for (header, expected) in [
            ("bytes=0-0", Some(vec![0..1])),
            ("Bytes = 2-", Some(vec![2..10])),
            ("bytes=-3", Some(vec![7..10])),
            ("bytes=-30", Some(vec![0..10])),
            ("bytes=5-99999999999999999999999", Some(vec![5..10])),
            ("bytes= 0-1 ,, 8-,", Some(vec![0..2, 8..10])),
            ("bytes=8-9,0-1", Some(vec![0..2, 8..10])),
            ("bytes=0-4,5-6,3-3", Some(vec![0..7])),
            ("bytes=0-1,70-80", Some(vec![0..2])),
            ("bytes=10-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=99999999999999999999999-", Unsatisfiable),
            ("bytes=3-2", All),
            ("bytes=0-1,3-2", All),
            ("bytes=", All),
            ("bytes=,", All),
            ("bytes=-", All),
            ("bytes=1", All),
            ("bytes=+1-2", All),
            ("bytes=1 - 2", All),
            ("bytes=0x1-2", All),
            ("bytes", All),
            ("items=0-1", All),
            ("", All),
        ] {
            assert_eq!(requested_ranges(header.as_bytes(), 10), expected, "{header}");
        }
        assert_eq!(requested_ranges(b"bytes=0-0", 0), All);
        let many = |count| format!("bytes={}", vec!["0-0"; count].join(","));
        assert_eq!(requested_ranges(many(MAX_RANGES).as_bytes(), 10), Some(vec![0..1]));
        assert_eq!(requested_ranges(many(MAX_RANGES + 1).as_bytes(), 10), All);
    }

    /// Returns the text of a range, and which of the first bytes it has.
    fn range() -> impl Strategy<Value = (String, Vec<bool>)> {
        let bytes = |in_range: &dyn Fn(u64) -> bool| (0..LEN).map(in_range).collect::<Vec<_>>();
        (0..LEN * 2, 0..LEN * 2, 0..3).prop_map(move |(a, b, kind)| match kind {
            0 => (format!("{a}-"), bytes(&|at| at >= a)),
            1 => (format!("-{a}"), bytes(&|at| at + a >= LEN)),
            _ => {
                let (first, last) = (a.min(b), a.max(b));
                (format!("{first}-{last}"), bytes(&|at| first <= at && at <= last))
            }
        })
    }

    const LEN: u64 = 24;

    proptest! {
        #[test]
        fn ranges_have_the_bytes_that_each_of_them_names(
            ranges in prop::collection::vec(range(), 1..MAX_RANGES)
        ) {
            let texts: Vec<_> = ranges.iter().map(|(text, _)| &text[..]).collect();
            let mut model = vec![false; LEN as usize];
            for (_, bytes) in &ranges {
                model.iter_mut().zip(bytes).for_each(|(there, byte)| *there |= byte);
            }
            let mut found = vec![false; LEN as usize];
            match requested_ranges(format!("bytes={}", texts.join(", ")).as_bytes(), LEN) {
                RequestedRanges::All => prop_assert!(false, "they follow the grammar"),
                RequestedRanges::Unsatisfiable => {}
                RequestedRanges::Some(ranges) => {
                    prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
                    for range in ranges {
                        prop_assert!(!range.is_empty());
                        range.for_each(|at| found[at as usize] = true);
                    }
                }
            }
            prop_assert_eq!(found, model);
        }

        #[test]
        fn any_bytes_are_a_header(header: Vec<u8>, tail: Vec<u8>, len: u64) {
            for header in [header, [&b"bytes="[..], &tail].concat()] {
                if let RequestedRanges::Some(ranges) = requested_ranges(&header, len) {
                    prop_assert!(ranges.iter().all(|range| range.start < range.end));
                    prop_assert!(ranges.last().is_some_and(|last| last.end <= len));
                }
            }
        }
    }
}
