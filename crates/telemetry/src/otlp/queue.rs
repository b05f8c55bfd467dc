//! The bounded queues of log records and spans.

use super::counters::{Counters, SignalCounters};
use super::item_len;
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

/// Maximum approximate bytes of the items of a signal: those in its queue, and those of the batch
/// that is being sent.
const MAX_BYTES: u64 = 8 << 20;

/// A queue whose producers never wait: it drops and counts items that do not fit.
#[derive(Debug)]
pub(super) struct Queue<T> {
    sender: Sender<Queued<T>>,
    signal: Signal,
}

/// The counters of a signal.
#[derive(Clone, Debug)]
struct Signal(Arc<Counters>, fn(&Counters) -> &SignalCounters);

impl Signal {
    fn counters(&self) -> &SignalCounters {
        (self.1)(&self.0)
    }
}

/// An item, which counts as waiting until it is dropped.
#[derive(Debug)]
pub(super) struct Queued<T> {
    pub(super) item: T,
    len: u64,
    signal: Signal,
}

impl<T> Drop for Queued<T> {
    fn drop(&mut self) {
        let counters = self.signal.counters();
        counters.waiting.fetch_sub(1, Ordering::Relaxed);
        counters.waiting_bytes.fetch_sub(self.len, Ordering::Relaxed);
    }
}

impl<T> Queue<T> {
    pub(super) fn new(
        counters: &Arc<Counters>,
        signal: fn(&Counters) -> &SignalCounters,
    ) -> (Self, Receiver<Queued<T>>) {
        let (sender, receiver) = channel(MAX_ITEMS);
        (Self { sender, signal: Signal(Arc::clone(counters), signal) }, receiver)
    }

    /// Adds an item of about this many bytes.
    fn push(&self, item: T, len: usize) {
        let (len, signal) = (len as u64, self.signal.clone());
        let counters = self.signal.counters();
        counters.waiting.fetch_add(1, Ordering::Relaxed);
        let before = counters.waiting_bytes.fetch_add(len, Ordering::Relaxed);
        let queued = Queued { item, len, signal };
        if before + len > MAX_BYTES || self.sender.try_send(queued).is_err() {
            counters.queue_full.fetch_add(1, Ordering::Relaxed);
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
        self.0.push((record.clone(), scope.clone()), item_len::of_record(record));
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
            let len = item_len::of_span(&span);
            self.0.push(span, len);
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
    use opentelemetry::logs::{LogRecord, Logger, LoggerProvider};
    use opentelemetry_sdk::logs::SdkLoggerProvider;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let counters = Arc::new(Counters::default());
        let (queue, mut receiver) = Queue::new(&counters, |all| &all.traces);
        for number in 0..MAX_ITEMS + 3 {
            queue.push(number, 1);
        }
        assert_eq!(counters.traces.dropped(), 3);
        assert_eq!(counters.logs.dropped(), 0);
        assert_eq!(receiver.try_recv().expect("an item").item, 0, "the oldest items stay");
        let text = counters.exposition();
        let line = "nuthatch_otlp_dropped_total{signal=\"traces\",cause=\"queue-full\"} 3\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_queue_is_bounded_by_bytes_too() {
        let counters = Arc::new(Counters::default());
        let (queue, mut receiver) = Queue::new(&counters, |all| &all.logs);
        let half = MAX_BYTES as usize / 2;
        for number in 0..4 {
            queue.push(number, half);
        }
        assert_eq!(counters.logs.dropped(), 2);
        // An item that is being sent still takes memory.
        let sent = receiver.try_recv().expect("an item");
        queue.push(4, half);
        assert_eq!(counters.logs.dropped(), 3);
        drop(sent);
        queue.push(5, half);
        assert_eq!(counters.logs.dropped(), 3);
        assert_eq!(counters.unsent(), 2);
        while receiver.try_recv().is_ok() {}
        assert_eq!(
            (counters.unsent(), counters.logs.waiting_bytes.load(Ordering::Relaxed)),
            (0, 0)
        );
    }

    #[test]
    fn long_texts_count_with_their_length() {
        let provider = SdkLoggerProvider::builder().build();
        let mut record = provider.logger("test").create_log_record();
        let before = item_len::of_record(&record);
        record.set_body("b".repeat(1000).into());
        record.add_attribute("key", "v".repeat(5000));
        let len = item_len::of_record(&record) - before;
        assert!((6000..6200).contains(&len), "{len}");
    }
}
