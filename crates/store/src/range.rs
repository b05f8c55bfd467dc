//! Ranges of keys for scans, counts and watches.

use std::ops::Bound;

/// A range of keys, with each bound included, excluded or absent.
///
/// ```
/// use nuthatch_store::Range;
/// let range = Range::all().from(b"b").before(b"d");
/// assert!(range.contains(b"b") && range.contains(b"c") && !range.contains(b"d"));
/// assert!(Range::prefix(b"user:").contains(b"user:1"));
/// ```
///
/// A range whose start is above its end contains no keys. Keys have at least one byte, so a range
/// whose upper bound is the empty key contains none either. `testdata/store/ranges.csv` has all
/// combinations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    start: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
}

/// A range in the form that cursors take: without bounds that no key can have.
pub(crate) type Bounds<'r> = (Bound<&'r [u8]>, Bound<&'r [u8]>);

impl Range {
    /// Returns the range of all keys.
    pub fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// Returns the range of all keys that begin with `prefix`.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        let end = after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Self { start: Bound::Included(prefix.to_vec()), end }
    }

    /// Returns the range between two bounds.
    pub fn new(start: Bound<Vec<u8>>, end: Bound<Vec<u8>>) -> Self {
        Self { start, end }
    }

    /// Sets the lower bound to `key`, included.
    #[must_use]
    pub fn from(self, key: impl Into<Vec<u8>>) -> Self {
        Self { start: Bound::Included(key.into()), ..self }
    }

    /// Sets the lower bound to `key`, excluded.
    #[must_use]
    pub fn after(self, key: impl Into<Vec<u8>>) -> Self {
        Self { start: Bound::Excluded(key.into()), ..self }
    }

    /// Sets the upper bound to `key`, included.
    #[must_use]
    pub fn to(self, key: impl Into<Vec<u8>>) -> Self {
        Self { end: Bound::Included(key.into()), ..self }
    }

    /// Sets the upper bound to `key`, excluded.
    #[must_use]
    pub fn before(self, key: impl Into<Vec<u8>>) -> Self {
        Self { end: Bound::Excluded(key.into()), ..self }
    }

    /// Returns the intersection of two ranges.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let start = tighter(&self.start, &other.start, |a, b| a > b);
        let end = tighter(&self.end, &other.end, |a, b| a < b);
        Self { start, end }
    }

    /// Returns the lower bound.
    pub fn start(&self) -> Bound<&[u8]> {
        self.start.as_ref().map(Vec::as_slice)
    }

    /// Returns the upper bound.
    pub fn end(&self) -> Bound<&[u8]> {
        self.end.as_ref().map(Vec::as_slice)
    }

    /// Returns whether a key is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        let from = match self.start() {
            Bound::Included(start) => key >= start,
            Bound::Excluded(start) => key > start,
            Bound::Unbounded => true,
        };
        from && match self.end() {
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
            Bound::Unbounded => true,
        }
    }

    /// Returns the rest of the range after a key, in the direction of a scan.
    pub(crate) fn rest(&self, key: &[u8], reverse: bool) -> Self {
        if reverse { self.clone().before(key) } else { self.clone().after(key) }
    }

    /// Returns the bounds for a cursor; `None` if no key can be between them.
    pub(crate) fn bounds(&self) -> Option<Bounds<'_>> {
        let start = match self.start() {
            // There is no empty key: LMDB refuses to look it up, and all keys are above it.
            Bound::Included([]) | Bound::Excluded([]) => Bound::Unbounded,
            start => start,
        };
        let end = self.end();
        let some = match (start, end) {
            (_, Bound::Included([]) | Bound::Excluded([])) => false,
            (Bound::Included(start), Bound::Included(end)) => start <= end,
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Included(end) | Bound::Excluded(end),
            ) => start < end,
            _ => true,
        };
        some.then_some((start, end))
    }

    /// Returns whether the range has all keys.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self.bounds(), Some((Bound::Unbounded, Bound::Unbounded)))
    }
}

impl Default for Range {
    fn default() -> Self {
        Self::all()
    }
}

/// Returns the least key above all keys with a prefix; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

fn tighter(
    one: &Bound<Vec<u8>>,
    other: &Bound<Vec<u8>>,
    is_tighter: fn(&[u8], &[u8]) -> bool,
) -> Bound<Vec<u8>> {
    use Bound::{Excluded, Included, Unbounded};
    let first = match (one, other) {
        (Unbounded, _) => false,
        (_, Unbounded) => true,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) if a == b => {
            matches!(one, Excluded(_))
        }
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) => is_tighter(a, b),
    };
    if first { one.clone() } else { other.clone() }
}
