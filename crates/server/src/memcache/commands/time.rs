//! Converts times of clients, in seconds, to those of the cache, in milliseconds.

use nuthatch_cache::{Expiry, Item};

/// Times of up to 30 days are relative to now. Greater ones are Unix times.
const MAX_RELATIVE_SECS: i64 = 60 * 60 * 24 * 30;

/// The time at which an item expires, in milliseconds since 1970; `None` if it does not expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End(pub(crate) Option<u64>);

impl End {
    /// Converts a time of a client. A negative one has expired, whatever the clock shows.
    pub(crate) fn new(exptime: i64, now_ms: u64) -> Self {
        let end_ms = match u64::try_from(exptime) {
            Ok(0) => return Self(None),
            Ok(secs) if exptime <= MAX_RELATIVE_SECS => now_ms.saturating_add(secs * 1000),
            Ok(secs) => secs.saturating_mul(1000),
            Err(_) => 0,
        };
        Self(Some(end_ms))
    }

    /// Returns the time at which this item expires.
    pub(crate) fn of(item: &Item<'_>) -> Self {
        Self(item.expires_ms())
    }

    /// Returns the time as the cache represents it.
    pub(crate) fn expiry(self) -> Expiry {
        self.0.map_or(Expiry::Never, Expiry::At)
    }

    /// Returns whether this time is set and is before the other one.
    pub(crate) fn is_before(self, other: Self) -> bool {
        matches!((self.0, other.0), (Some(end_ms), Some(other_ms)) if end_ms < other_ms)
    }

    /// Returns the seconds left, rounded up, so that only an expired item has none left.
    pub(crate) fn ttl_secs(self, now_ms: u64) -> Option<u64> {
        self.0.map(|end_ms| end_ms.saturating_sub(now_ms).div_ceil(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_or_since_1970() {
        let now = 1_700_000_000_500;
        let end_ms = |exptime| End::new(exptime, now).0;
        assert_eq!(end_ms(0), None);
        assert_eq!((end_ms(-1), end_ms(i64::MIN)), (Some(0), Some(0)));
        assert_eq!(end_ms(1), Some(now + 1000));
        assert_eq!(end_ms(MAX_RELATIVE_SECS), Some(now + 2_592_000_000));
        assert_eq!(end_ms(MAX_RELATIVE_SECS + 1), Some(2_592_001_000));
        assert_eq!(end_ms(i64::MAX), Some(u64::MAX));
    }

    #[test]
    fn the_current_second_counts() {
        let ttl_secs = |end_ms| End(Some(end_ms)).ttl_secs(5);
        assert_eq!(End(None).ttl_secs(5), None);
        assert_eq!((ttl_secs(4), ttl_secs(5)), (Some(0), Some(0)));
        assert_eq!((ttl_secs(6), ttl_secs(1005)), (Some(1), Some(1)));
        assert_eq!(ttl_secs(1006), Some(2));
    }

    #[test]
    fn an_expiry_of_never_is_before_nothing() {
        let (never, early, late) = (End(None), End(Some(1)), End(Some(2)));
        assert!(early.is_before(late));
        assert!(
            ![(late, early), (early, early), (never, late), (early, never), (never, never)]
                .iter()
                .any(|(one, other)| one.is_before(*other))
        );
    }
}
