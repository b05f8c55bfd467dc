//! Counts and logs requests that the admin endpoint refuses.

use crate::exposition::{MetricsFormat, MetricsText};
use crate::rate_limit::RateLimit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tracing::{Level, enabled, warn};

/// The log target of the admin endpoint.
pub(super) const TARGET: &str = "nuthatch::admin";

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A wrong token.
    WrongToken,
    /// A token, after too many wrong ones.
    TooManyTokens,
    /// A name in `Host` that is none of this server.
    Host,
    /// A page of another site.
    CrossSite,
}

impl Cause {
    const ALL: [Self; 4] = [Self::WrongToken, Self::TooManyTokens, Self::Host, Self::CrossSite];

    fn name(self) -> &'static str {
        match self {
            Self::WrongToken => "wrong-token",
            Self::TooManyTokens => "too-many-tokens",
            Self::Host => "host",
            Self::CrossSite => "cross-site",
        }
    }
}

/// The number of refused requests by cause, and the limits of their log lines. Each cause has its
/// own limit, so that lines of one cause do not displace those of another.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: [AtomicU64; Cause::ALL.len()],
    rate_limits: [RateLimit; Cause::ALL.len()],
}

impl Refusals {
    /// Counts a refused request, and logs it unless too many lines with its cause were logged
    /// recently. The line has nothing of the request: a header may have a password.
    pub(super) fn note(&self, cause: Cause) {
        self.counts[cause as usize].fetch_add(1, Ordering::Relaxed);
        if enabled!(target: TARGET, Level::WARN)
            && let Some(unlogged) = self.admit(cause, Instant::now())
        {
            let cause = cause.name();
            warn!(target: TARGET, unlogged, cause, "a request to the admin endpoint was refused");
        }
    }

    /// Returns the number of lines with this cause that were left out since the last one if a line
    /// may be logged now.
    fn admit(&self, cause: Cause, now: Instant) -> Option<u64> {
        self.rate_limits[cause as usize].admit(now)
    }

    /// Returns the counts in the Prometheus text format.
    pub(super) fn exposition(&self) -> String {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        let help = "Requests that the admin endpoint refused, by cause.";
        let counts = Cause::ALL.into_iter().zip(&self.counts);
        let counts = counts.map(|(cause, count)| (cause.name(), count.load(Ordering::Relaxed)));
        text.counter("nuthatch_admin_refused", help).by_label("cause", counts);
        text.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_cause_do_not_displace_those_of_another() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let admitted = (0..100).filter_map(|_| refusals.admit(Cause::WrongToken, now)).count();
        assert_eq!(admitted, 5);
        for cause in [Cause::TooManyTokens, Cause::Host, Cause::CrossSite] {
            assert_eq!(refusals.admit(cause, now), Some(0), "{cause:?}");
        }
    }
}
