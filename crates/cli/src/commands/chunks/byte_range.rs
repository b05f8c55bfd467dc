//! The argument `--range`: bytes of an object.

use nuthatch_units::parse_size;
use std::ops::Range;

/// A range of bytes: `A-B`, `A-` or `-N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteRange {
    From(u64),
    /// The start, included, and the end, excluded.
    Between(u64, u64),
    Last(u64),
}

impl ByteRange {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "expected A-B, A- or -N, such as 0-4096, 1GiB- or -64KiB".to_owned();
        let size = |text: &str| parse_size(text).map_err(|_| wrong());
        match text.split_once('-').ok_or_else(wrong)? {
            ("", last) => Ok(Self::Last(size(last)?)),
            (from, "") => Ok(Self::From(size(from)?)),
            (from, to) => {
                let (from, to) = (size(from)?, size(to)?);
                if from > to {
                    return Err(format!("expected an end that is not before {from}, found {to}"));
                }
                Ok(Self::Between(from, to))
            }
        }
    }

    /// Returns the range within an object of this length. Fails if it begins behind the end.
    pub(super) fn resolve(self, len: u64) -> Result<Range<u64>, String> {
        let (from, to) = match self {
            Self::From(from) => (from, len),
            Self::Between(from, to) => (from, to.min(len)),
            Self::Last(count) => (len.saturating_sub(count), len),
        };
        if from > len {
            return Err(format!("expected a range that begins within 0-{len}, found {from}"));
        }
        Ok(from..to.max(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed() {
        for (text, expected) in [
            ("0-10", ByteRange::Between(0, 10)),
            ("7-7", ByteRange::Between(7, 7)),
            ("1KiB-1MB", ByteRange::Between(1024, 1_000_000)),
            ("5-", ByteRange::From(5)),
            ("-2KiB", ByteRange::Last(2048)),
        ] {
            assert_eq!(ByteRange::parse(text), Ok(expected), "{text}");
        }
        for text in ["", "-", "5", "9-8", "a-b", "1-2-3", "--1", "1--2"] {
            assert!(ByteRange::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_end_with_the_object() {
        assert_eq!(ByteRange::Between(2, 50).resolve(10), Ok(2..10));
        assert_eq!(ByteRange::Between(2, 5).resolve(10), Ok(2..5));
        assert_eq!(ByteRange::From(10).resolve(10), Ok(10..10));
        assert_eq!(ByteRange::Last(3).resolve(10), Ok(7..10));
        assert_eq!(ByteRange::Last(30).resolve(10), Ok(0..10));
        assert_eq!(ByteRange::Last(3).resolve(0), Ok(0..0));
        assert!(ByteRange::From(11).resolve(10).is_err());
    }
}
