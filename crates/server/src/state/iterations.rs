//! Iterations of an event loop: their number and durations.

use super::counter::Counter;
use super::histogram::{BUCKETS, Histogram};

/// The iterations of one thread, which alone writes here.
#[derive(Debug, Default)]
pub(crate) struct Iterations {
    began_ns: Counter,
    ns: Counter,
    times: Histogram,
}

/// Totals of the event-loop iterations of one worker thread. Input that arrives during an iteration
/// waits for its end, so the duration of an iteration is the maximum delay that it causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationTotals {
    /// The total duration in nanoseconds.
    pub ns: u64,
    /// The number of iterations by duration: see [`bucket_end_ns`](super::bucket_end_ns).
    pub times: Vec<u64>,
}

impl Iterations {
    pub(crate) fn begin(&self, now_ns: u64) {
        self.began_ns.set(now_ns);
    }

    pub(crate) fn end(&self, now_ns: u64) {
        let ns = now_ns.saturating_sub(self.began_ns.get());
        self.ns.add(ns);
        self.times.add(ns, 1);
    }

    pub(crate) fn totals(&self) -> IterationTotals {
        let mut times = Vec::with_capacity(BUCKETS);
        times.extend(self.times.counts());
        IterationTotals { ns: self.ns.get(), times }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_are_counted_by_their_length() {
        let iterations = Iterations::default();
        for (began, ended) in [(1_000, 3_000), (5_000, 7_000), (10_000, 1_010_000)] {
            iterations.begin(began);
            iterations.end(ended);
        }
        let totals = iterations.totals();
        assert_eq!(totals.ns, 1_004_000);
        let counted: Vec<_> = totals.times.iter().filter(|count| **count > 0).collect();
        assert_eq!(counted, [&2, &1]);
    }
}
