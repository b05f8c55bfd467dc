//! Exponential back-off between attempts to read the store for watches.

use std::time::Duration;

/// The first and the longest delay between a failed attempt and the next one.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(10);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

/// The delays after consecutive failures: the first is [`MIN_RETRY_DELAY`], and each is twice as
/// long as the one before, up to [`MAX_RETRY_DELAY`].
#[derive(Debug, Default)]
pub(super) struct Backoff(Option<Duration>);

impl Backoff {
    /// Returns the delay after one more failure.
    pub(super) fn next_delay(&mut self) -> Duration {
        let delay = self.0.map_or(MIN_RETRY_DELAY, |last| (last * 2).min(MAX_RETRY_DELAY));
        self.0 = Some(delay);
        delay
    }

    /// Resets the delay to the first one, after a success.
    pub(super) fn reset(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_10_ms_to_2_s_and_begin_again_after_a_success() {
        let mut backoff = Backoff::default();
        let delays = |backoff: &mut Backoff| {
            (0..10).map(|_| backoff.next_delay().as_millis()).collect::<Vec<_>>()
        };
        let expected = [10, 20, 40, 80, 160, 320, 640, 1280, 2000, 2000];
        assert_eq!(delays(&mut backoff), expected);
        backoff.reset();
        assert_eq!(delays(&mut backoff), expected);
    }
}
