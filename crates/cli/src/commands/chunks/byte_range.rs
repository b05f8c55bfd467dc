//! `--range`: which bytes of an object.

use nuthatch_units::parse_size;
use std::ops::Range;

/// A range as it is written: `A-B`, `A-` or `-N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    From(u64),
    /// The second is the first byte that does not belong to it.
    Between(u64, u64),
    Last(u64),
}

impl Part {
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

    /// The bytes of an object of this length. Fails with what is wrong: it has no such beginning.
    pub(super) fn of(self, len: u64) -> Result<Range<u64>, String> {
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
    fn ranges_are_read() {
        for (text, expected) in [
            ("0-10", Part::Between(0, 10)),
            ("7-7", Part::Between(7, 7)),
            ("1KiB-1MB", Part::Between(1024, 1_000_000)),
            ("5-", Part::From(5)),
            ("-2KiB", Part::Last(2048)),
        ] {
            assert_eq!(Part::parse(text), Ok(expected), "{text}");
        }
        for text in ["", "-", "5", "9-8", "a-b", "1-2-3", "--1", "1--2"] {
            assert!(Part::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_end_with_the_object() {
        assert_eq!(Part::Between(2, 50).of(10), Ok(2..10));
        assert_eq!(Part::Between(2, 5).of(10), Ok(2..5));
        assert_eq!(Part::From(10).of(10), Ok(10..10));
        assert_eq!(Part::Last(3).of(10), Ok(7..10));
        assert_eq!(Part::Last(30).of(10), Ok(0..10));
        assert_eq!(Part::Last(3).of(0), Ok(0..0));
        assert!(Part::From(11).of(10).is_err());
    }
}
