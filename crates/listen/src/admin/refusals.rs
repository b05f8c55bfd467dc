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

/// The number of refused requests by cause, and the limit of their log lines.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: [AtomicU64; Cause::ALL.len()],
    rate_limit: RateLimit,
}

impl Refusals {
    /// Counts a refused request, and logs it unless too many such lines were logged recently. The
    /// line has nothing of the request: a header may have a password.
    pub(super) fn note(&self, cause: Cause) {
        self.counts[cause as usize].fetch_add(1, Ordering::Relaxed);
        if enabled!(target: TARGET, Level::WARN)
            && let Some(unlogged) = self.rate_limit.admit(Instant::now())
        {
            let cause = cause.name();
            warn!(target: TARGET, unlogged, cause, "a request to the admin endpoint was refused");
        }
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
