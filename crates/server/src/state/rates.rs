//! Rates over about the last second, for `INFO`.
//!
//! When an event loop wakes up, it takes a sample of the counters if the last sample is a second
//! old, before it executes requests. So an idle time does not lower the rates after it.

use std::time::{Duration, Instant};

/// Minimum time between two samples.
const INTERVAL: Duration = Duration::from_millis(900);

/// Minimum time that a rate covers.
const MIN_SPAN: Duration = Duration::from_millis(500);

/// Counters at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Instant,
    pub(crate) calls: u64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// Events per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerSecond {
    pub(crate) calls: u64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// The last two samples, the later one first.
#[derive(Debug, Default)]
pub(crate) struct Rates([Option<Sample>; 2]);

impl Rates {
    /// Takes a sample, unless the last one is recent.
    pub(crate) fn sample(&mut self, now: Instant, sample: impl FnOnce() -> Sample) {
        let Self([last, before]) = self;
        if last.is_none_or(|last| now.saturating_duration_since(last.at) >= INTERVAL) {
            *before = last.replace(sample());
        }
    }

    /// Returns the rates since the last sample that is at least [`MIN_SPAN`] old; 0 without one.
    pub(crate) fn until(&self, now: &Sample) -> PerSecond {
        let is_old = |one: &&Sample| now.at.saturating_duration_since(one.at) >= MIN_SPAN;
        let Some(base) = self.0.iter().flatten().find(is_old) else { return PerSecond::default() };
        let nanos = now.at.saturating_duration_since(base.at).as_nanos().max(1);
        let rate = |now: u64, base: u64| {
            let events = u128::from(now.saturating_sub(base));
            ((events * 1_000_000_000 + nanos / 2) / nanos) as u64
        };
        PerSecond {
            calls: rate(now.calls, base.calls),
            received: rate(now.received, base.received),
            sent: rate(now.sent, base.sent),
            hits: rate(now.hits, base.hits),
            misses: rate(now.misses, base.misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: Instant, calls: u64) -> Sample {
        Sample { at, calls, received: 10 * calls, sent: 0, hits: calls / 2, misses: 0 }
    }

    #[test]
    fn rates_are_of_the_last_second() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(rates.until(&sample(start, 7)), PerSecond::default());
        rates.sample(at(0), || sample(at(0), 0));
        rates.sample(at(500), || panic!("the last sample is recent"));
        rates.sample(at(1000), || sample(at(1000), 100));
        rates.sample(at(2000), || sample(at(2000), 5100));
        // Shortly after a sample, the one before is used.
        let now = sample(at(2100), 5100 + 60);
        assert_eq!(rates.until(&now).calls, 4600, "5060 in 1.1 s");
        let now = sample(at(3000), 5100 + 2000);
        let expected =
            PerSecond { calls: 2000, received: 20_000, hits: 1000, ..PerSecond::default() };
        assert_eq!(rates.until(&now), expected);
    }

    #[test]
    fn an_idle_time_does_not_lower_later_rates() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let at = |s| start + Duration::from_secs(s);
        rates.sample(at(0), || sample(at(0), 0));
        // Woken after an hour, before the request is executed.
        rates.sample(at(3600), || sample(at(3600), 0));
        assert_eq!(rates.until(&sample(at(3601), 900)).calls, 900);
    }
}
