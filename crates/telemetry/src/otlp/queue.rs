//! The bounded queues of log records and spans.

use super::counters::{Counters, SignalCounters};
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogProcessor, SdkLogRecord};
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of items in a queue.
const MAX_ITEMS: usize = 2048;

/// A queue whose producers never wait: it drops and counts items that do not fit.
#[derive(Debug)]
pub(super) struct Queue<T> {
    sender: Sender<T>,
    counters: Arc<Counters>,
    signal: fn(&Counters) -> &SignalCounters,
}

impl<T> Queue<T> {
    pub(super) fn new(
        counters: &Arc<Counters>,
        signal: fn(&Counters) -> &SignalCounters,
    ) -> (Self, Receiver<T>) {
        let (sender, receiver) = channel(MAX_ITEMS);
        (Self { sender, counters: Arc::clone(counters), signal }, receiver)
    }

    fn push(&self, item: T) {
        if self.sender.try_send(item).is_err() {
            (self.signal)(&self.counters).queue_full.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A log record with its scope.
pub(super) type LogItem = (SdkLogRecord, InstrumentationScope);

/// Queues log records.
#[derive(Debug)]
pub(super) struct LogQueue(pub(super) Queue<LogItem>);

impl LogProcessor for LogQueue {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        self.0.push((record.clone(), scope.clone()));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Queues the spans that are sampled.
#[derive(Debug)]
pub(super) struct SpanQueue(pub(super) Queue<SpanData>);

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            self.0.push(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let counters = Arc::new(Counters::default());
        let (queue, mut receiver) = Queue::new(&counters, |all| &all.traces);
        for number in 0..MAX_ITEMS + 3 {
            queue.push(number);
        }
        assert_eq!(counters.traces.dropped(), 3);
        assert_eq!(counters.logs.dropped(), 0);
        assert_eq!(receiver.try_recv(), Ok(0), "the oldest items stay");
        let text = counters.exposition();
        let line = "nuthatch_otlp_dropped_total{signal=\"traces\",cause=\"queue-full\"} 3\n";
        assert!(text.contains(line), "{text}");
    }
}
