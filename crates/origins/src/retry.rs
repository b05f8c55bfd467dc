//! Which failed requests are retried, and when.

use crate::error::Error;
use crate::settings::Settings;
use crate::status::is_unavailable;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A retry may succeed.
    Transient { cause: Cause, retry_after: Option<Duration> },
    /// A retry fails in the same way.
    Permanent(Error),
}

/// The cause of a transient failure.
#[derive(Debug)]
pub(crate) enum Cause {
    /// The origin responded with this status.
    Status(u16),
    /// The origin could not be reached, sent nothing for too long, or closed the connection.
    Connection(String),
}

impl Fault {
    pub(crate) fn broken(reason: impl Into<String>) -> Self {
        Self::Transient { cause: Cause::Connection(reason.into()), retry_after: None }
    }
}

impl Fault {
    /// Returns whether the origin is unavailable, so that a stale version may be used.
    pub(crate) fn is_origin_unavailable(&self) -> bool {
        match self {
            Self::Transient { cause: Cause::Status(status), .. } => is_unavailable(*status),
            Self::Transient { cause: Cause::Connection(_), .. } => true,
            Self::Permanent(error) => error.is_origin_unavailable(),
        }
    }

    /// Returns whether the origin sent no response at all.
    pub(crate) fn is_silence(&self) -> bool {
        match self {
            Self::Transient { cause, .. } => matches!(cause, Cause::Connection(_)),
            Self::Permanent(error) => matches!(error, Error::Unreachable { .. }),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Permanent(error)
    }
}

/// The attempts at one operation.
pub(crate) struct Attempts<'a> {
    settings: &'a Settings,
    address: &'a str,
    /// Failures since the last progress.
    failures: u32,
    /// All failures.
    count: u32,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(settings: &'a Settings, address: &'a str) -> Self {
        Self { settings, address, failures: 0, count: 0 }
    }

    /// Resets the number of failures: the last attempt received a block.
    pub(crate) fn progress(&mut self) {
        self.failures = 0;
    }

    /// Returns whether the next attempt is a retry.
    pub(crate) fn is_retry(&self) -> bool {
        self.count > 0
    }

    /// Counts a failed attempt. Returns the delay before the next one, or the error if there are no
    /// more retries.
    pub(crate) fn failed(&mut self, fault: Fault) -> Result<Duration, Error> {
        self.failures += 1;
        self.count += 1;
        let (cause, retry_after) = match fault {
            Fault::Permanent(error) => return Err(error),
            Fault::Transient { cause, retry_after } => (cause, retry_after),
        };
        // If the origin requests a longer delay than the maximum, the operation fails.
        let too_long =
            retry_after.is_some_and(|retry_after| retry_after > self.settings.max_retry_delay);
        if self.failures > self.settings.retries || too_long {
            let (address, attempts) = (self.address.to_owned(), self.count);
            return Err(match cause {
                Cause::Status(status) => Error::Status { address, status, attempts },
                Cause::Connection(reason) => Error::Unreachable { address, reason, attempts },
            });
        }
        let doubled = self.settings.retry_delay.saturating_mul(1 << (self.failures - 1).min(16));
        let retry_delay = doubled.min(self.settings.max_retry_delay);
        let retry_delay = retry_delay.mul_f64(0.5 + 0.5 * random_fraction());
        tracing::debug!(target: "nuthatch::chunks", address = self.address, why = ?cause,
            pause = ?retry_delay, "a request to the origin is retried");
        Ok(retry_delay.max(retry_after.unwrap_or_default()))
    }
}

/// Returns a number from 0 to 1 that differs between processes and calls, so that clients which
/// failed together do not retry together.
fn random_fraction() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new().retries(3).retry_delays(Duration::from_millis(100), Duration::from_secs(1))
    }

    #[test]
    fn pauses_grow_and_end() {
        let settings = settings();
        let mut attempts = Attempts::new(&settings, "address");
        for most in [100, 200, 400] {
            let retry_delay = attempts.failed(Fault::broken("reset")).expect("another attempt");
            let range = Duration::from_millis(most / 2)..=Duration::from_millis(most);
            assert!(range.contains(&retry_delay), "{retry_delay:?} is not within {range:?}");
        }
        let error = attempts.failed(Fault::broken("reset")).expect_err("no more attempts");
        assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
        assert_eq!(error.to_string(), "address: no response from the origin: reset (4 attempts)");
    }

    #[test]
    fn progress_begins_anew() {
        let settings = settings();
        let mut attempts = Attempts::new(&settings, "address");
        for _ in 0..20 {
            attempts.progress();
            assert!(attempts.failed(Fault::broken("reset")).is_ok());
        }
    }

    #[test]
    fn an_origin_says_how_long_to_wait() {
        let settings = settings();
        let mut attempts = Attempts::new(&settings, "address");
        let passing = |seconds| Fault::Transient {
            cause: Cause::Status(429),
            retry_after: Some(Duration::from_secs(seconds)),
        };
        let retry_delay = attempts.failed(passing(1)).expect("another attempt");
        assert_eq!(retry_delay, Duration::from_secs(1));
        let error = attempts.failed(passing(2)).expect_err("that is too long");
        assert!(matches!(error, Error::Status { status: 429, attempts: 2, .. }), "{error}");
    }

    #[test]
    fn what_stays_wrong_is_not_tried_again() {
        let settings = settings();
        let mut attempts = Attempts::new(&settings, "address");
        let fault = Fault::Permanent(Error::NotFound { address: "address".into() });
        assert!(matches!(attempts.failed(fault), Err(Error::NotFound { .. })));
    }
}
