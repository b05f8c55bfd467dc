//! When connections send their batches, if they send at a fixed rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// The times at which connections send batches, each at equal intervals.
///
/// A connection that got its replies too late sends at once, and the latency of the batch includes
/// the time since it was due. So a slow server does not hide its latencies by delaying requests.
pub(crate) struct Pace {
    interval: Duration,
    /// When the next batch of each connection is due.
    due: Vec<Instant>,
    /// Connections that wait until their batch is due.
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Pace {
    /// Creates the pace of connections that send a batch in each interval, the first within one
    /// interval after `now`.
    pub(crate) fn new(interval: Duration, connections: usize, now: Instant) -> Self {
        let begin = |at: usize| now + interval.mul_f64(at as f64 / connections as f64);
        let due: Vec<_> = (0..connections).map(begin).collect();
        let waiting = due.iter().enumerate().map(|(at, due)| Reverse((*due, at))).collect();
        Self { interval, due, waiting }
    }

    /// Returns the connections whose batch is due at `now`, one with each call.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<usize> {
        let Reverse((due, at)) = *self.waiting.peek()?;
        (due <= now).then(|| {
            self.waiting.pop();
            at
        })
    }

    /// Notes that a connection has got its replies. Returns since when its next batch is due if it
    /// is; otherwise, [`next_due`](Self::next_due) returns the connection later.
    pub(crate) fn after_replies(&mut self, at: usize, now: Instant) -> Option<Instant> {
        let due = &mut self.due[at];
        *due += self.interval;
        if *due <= now {
            return Some(*due);
        }
        self.waiting.push(Reverse((*due, at)));
        None
    }

    /// Returns the time until the next batch is due, at most this time.
    pub(crate) fn time_to_next(&self, at_most: Duration) -> Duration {
        let next = self.waiting.peek().map(|Reverse((due, _))| *due);
        next.map_or(at_most, |due| at_most.min(due.saturating_duration_since(Instant::now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_due_at_equal_intervals_also_after_late_replies() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut pace = Pace::new(ms(100), 2, start);
        assert_eq!(pace.next_due(start), Some(0));
        assert_eq!(pace.next_due(start + ms(49)), None);
        assert_eq!(pace.next_due(start + ms(50)), Some(1));
        // The replies come in time, so the connection waits.
        assert_eq!(pace.after_replies(0, start + ms(99)), None);
        assert_eq!(pace.next_due(start + ms(99)), None);
        assert_eq!(pace.next_due(start + ms(100)), Some(0));
        // They come late: two batches are due, since 150 and 250 ms.
        assert_eq!(pace.after_replies(1, start + ms(290)), Some(start + ms(150)));
        assert_eq!(pace.after_replies(1, start + ms(291)), Some(start + ms(250)));
        assert_eq!(pace.after_replies(1, start + ms(292)), None);
        assert_eq!(pace.next_due(start + ms(350)), Some(1));
        assert_eq!(pace.next_due(start + ms(900)), None, "the other one waits for replies");
    }
}
