//! Trying again: what is worth it, and when.

use crate::error::Error;
use crate::settings::Settings;
use crate::status::is_unavailable;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Why a request did not bring what it was to bring.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The next request may do better.
    Passing { why: Why, after: Option<Duration> },
    /// It will not.
    Final(Error),
}

/// What went wrong in passing.
#[derive(Debug)]
pub(crate) enum Why {
    /// The origin answered with a status.
    Status(u16),
    /// It could not be reached, fell silent or broke off.
    Broken(String),
}

impl Fault {
    pub(crate) fn broken(reason: impl Into<String>) -> Self {
        Self::Passing { why: Why::Broken(reason.into()), after: None }
    }
}

impl Fault {
    /// Returns whether the origin could not be asked, so that a stale version may be used.
    pub(crate) fn is_origin_unavailable(&self) -> bool {
        match self {
            Self::Passing { why: Why::Status(status), .. } => is_unavailable(*status),
            Self::Passing { why: Why::Broken(_), .. } => true,
            Self::Final(error) => error.is_origin_unavailable(),
        }
    }

    /// Returns whether the origin sent no answer at all.
    pub(crate) fn is_silence(&self) -> bool {
        match self {
            Self::Passing { why, .. } => matches!(why, Why::Broken(_)),
            Self::Final(error) => matches!(error, Error::Unreachable { .. }),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// How often something was tried in vain.
pub(crate) struct Attempts<'a> {
    settings: &'a Settings,
    address: &'a str,
    in_vain: u32,
    all: u32,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(settings: &'a Settings, address: &'a str) -> Self {
        Self { settings, address, in_vain: 0, all: 0 }
    }

    /// Something came of the last one.
    pub(crate) fn progress(&mut self) {
        self.in_vain = 0;
    }

    /// Whether this is not the first one.
    pub(crate) fn again(&self) -> bool {
        self.all > 0
    }

    /// How long to wait before the next one, or the error if there is to be none.
    pub(crate) fn failed(&mut self, fault: Fault) -> Result<Duration, Error> {
        self.in_vain += 1;
        self.all += 1;
        let (why, after) = match fault {
            Fault::Final(error) => return Err(error),
            Fault::Passing { why, after } => (why, after),
        };
        // An origin that wants to be left alone for longer than that is as good as gone.
        let too_long = after.is_some_and(|after| after > self.settings.pause_most);
        if self.in_vain > self.settings.retries || too_long {
            let (address, attempts) = (self.address.to_owned(), self.all);
            return Err(match why {
                Why::Status(status) => Error::Status { address, status, attempts },
                Why::Broken(reason) => Error::Unreachable { address, reason, attempts },
            });
        }
        let doubled = self.settings.pause.saturating_mul(1 << (self.in_vain - 1).min(16));
        let pause = doubled.min(self.settings.pause_most);
        let pause = pause.mul_f64(0.5 + 0.5 * draw());
        tracing::debug!(target: "nuthatch::chunks", address = self.address, ?why, ?pause,
            "a request to the origin is retried");
        Ok(pause.max(after.unwrap_or_default()))
    }
}

/// A number from 0 to 1 that differs between processes and calls, so that those who failed together
/// do not come back together.
fn draw() -> f64 {
    (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new().retries(3).pauses(Duration::from_millis(100), Duration::from_secs(1))
    }

    #[test]
    fn pauses_grow_and_end() {
        let settings = settings();
        let mut attempts = Attempts::new(&settings, "address");
        for most in [100, 200, 400] {
            let pause = attempts.failed(Fault::broken("reset")).expect("another attempt");
            let range = Duration::from_millis(most / 2)..=Duration::from_millis(most);
            assert!(range.contains(&pause), "{pause:?} is not within {range:?}");
        }
        let error = attempts.failed(Fault::broken("reset")).expect_err("no more attempts");
        assert!(matches!(error, Error::Unreachable { attempts: 4, .. }), "{error}");
        assert_eq!(error.to_string(), "address: no answer to be had: reset (4 attempts)");
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
        let passing = |seconds| Fault::Passing {
            why: Why::Status(429),
            after: Some(Duration::from_secs(seconds)),
        };
        let pause = attempts.failed(passing(1)).expect("another attempt");
        assert_eq!(pause, Duration::from_secs(1));
        let error = attempts.failed(passing(2)).expect_err("that is too long");
        assert!(matches!(error, Error::Status { status: 429, attempts: 2, .. }), "{error}");
    }

    #[test]
    fn what_stays_wrong_is_not_tried_again() {
        let settings = settings();
        let mut attempts = Attempts::new(&settings, "address");
        let fault = Fault::Final(Error::NotFound { address: "address".into() });
        assert!(matches!(attempts.failed(fault), Err(Error::NotFound { .. })));
    }
}
