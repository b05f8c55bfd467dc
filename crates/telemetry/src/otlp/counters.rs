//! Counters of what was exported and dropped.

use nuthatch_listen::{MetricsFormat, MetricsText};
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of all signals.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) logs: SignalCounters,
    pub(super) metrics: SignalCounters,
    pub(super) traces: SignalCounters,
}

/// The counters of logs, metrics or traces.
#[derive(Debug, Default)]
pub(super) struct SignalCounters {
    /// Items in the queue and in the batch that is sent, and their approximate bytes.
    pub(super) waiting: AtomicU64,
    pub(super) waiting_bytes: AtomicU64,
    pub(super) exported: AtomicU64,
    /// Items for which the queue had no place, or not enough bytes left.
    pub(super) queue_full: AtomicU64,
    /// Items that the collector did not accept.
    pub(super) rejected: AtomicU64,
    /// Items that could not be sent.
    pub(super) failed: AtomicU64,
    /// Dropped items of which the log has a line.
    pub(super) reported: AtomicU64,
}

impl SignalCounters {
    /// Returns the number of all dropped items.
    pub(super) fn dropped(&self) -> u64 {
        self.causes().into_iter().map(|(_, count)| count).sum()
    }

    /// Returns the number of dropped items of which the log has no line yet.
    pub(super) fn unreported(&self) -> u64 {
        self.dropped().saturating_sub(self.reported.load(Ordering::Relaxed))
    }

    fn causes(&self) -> [(&'static str, u64); 3] {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("queue-full", read(&self.queue_full)),
            ("rejected", read(&self.rejected)),
            ("failed", read(&self.failed)),
        ]
    }
}

impl Counters {
    fn signals(&self) -> [(&'static str, &SignalCounters); 3] {
        [("logs", &self.logs), ("metrics", &self.metrics), ("traces", &self.traces)]
    }

    /// Returns the number of log records and spans that were neither exported nor dropped yet.
    pub(super) fn unsent(&self) -> u64 {
        [&self.logs, &self.traces].map(|one| one.waiting.load(Ordering::Relaxed)).iter().sum()
    }

    /// Returns the number of dropped log records and spans of which the log has no line yet.
    pub(super) fn unreported(&self) -> u64 {
        self.logs.unreported() + self.traces.unreported()
    }

    /// Returns all counters in the Prometheus text format.
    pub(super) fn exposition(&self) -> String {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        let help = "Log records, metric points and spans that the collector of OpenTelemetry \
                    accepted.";
        let mut exported = text.counter("nuthatch_otlp_exported", help);
        for (signal, counters) in self.signals() {
            let count = counters.exported.load(Ordering::Relaxed);
            exported.sample(&[("signal", signal)], count);
        }
        let help = "Log records, metric points and spans that were not exported.";
        let mut dropped = text.counter("nuthatch_otlp_dropped", help);
        for (signal, counters) in self.signals() {
            for (cause, count) in counters.causes() {
                dropped.sample(&[("signal", signal), ("cause", cause)], count);
            }
        }
        text.finish()
    }
}
