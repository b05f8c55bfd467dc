//! The thread that sends batches.
//!
//! Each signal has a task of its own on one thread. A batch for which the collector is unavailable
//! stays until it is accepted, with growing pauses; the queue behind it fills, and drops what does
//! not fit. Metrics are sent once: the next export has their newer values.

use super::config::Config;
use super::counters::{Counters, SignalCounters};
use super::metrics;
use super::process::now;
use super::queue::{LogItem, Queued};
use super::transport::{Sent, Transport};
use nuthatch_listen::{MetricsFormat, MetricsSource};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::logs::tonic::group_logs_by_resource_and_scope;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::LogBatch;
use opentelemetry_sdk::trace::SpanData;
use prost::Message;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver as DoneReceiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, dispatcher, warn};

/// Maximum number of items in a request.
const MAX_BATCH: usize = 512;
/// The pause after the first failed attempt, which doubles up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The maximum time to export what is queued when the program ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// The minimum time between two lines of the log about one signal, except the last one.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);
/// The reason for dropped items if no request failed.
const QUEUE_FULL: &str = "the queue was full";

/// What the thread reads.
pub(super) struct Input {
    pub(super) logs: Receiver<Queued<LogItem>>,
    pub(super) spans: Receiver<Queued<SpanData>>,
    pub(super) source: Arc<OnceLock<Arc<dyn MetricsSource>>>,
}

/// The running thread.
pub(super) struct Exporter {
    stop: watch::Sender<bool>,
    /// Closed when the thread has ended.
    done: DoneReceiver<()>,
}

impl Exporter {
    /// Starts the thread.
    pub(super) fn start(
        config: Config,
        resource: &Resource,
        input: Input,
        counters: &Arc<Counters>,
        dispatch: &Dispatch,
    ) -> io::Result<Self> {
        let client = Transport::client(&config)?;
        let transport = |signal| Transport::new(&client, &config, signal);
        let resource = ResourceAttributesWithSchema::from(resource);
        let (stop, stopped) = watch::channel(false);
        let task = |signal, of: fn(&Counters) -> &SignalCounters| Task {
            signal,
            transport: transport(signal),
            counters: (Arc::clone(counters), of),
            stopped: stopped.clone(),
            dispatch: dispatch.clone(),
            report: Report::default(),
        };
        let logs = task("logs", |all| &all.logs);
        let traces = task("traces", |all| &all.traces);
        let metrics = task("metrics", |all| &all.metrics);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (is_done, done) = sync_channel(0);
        thread::Builder::new().name("nuthatch-otlp".to_owned()).spawn(move || {
            let _is_done: SyncSender<()> = is_done;
            let Input { logs: log_items, spans, source } = input;
            // What the HTTP client logs here must not become new log records.
            tracing::subscriber::with_default(NoSubscriber::default(), || {
                runtime.block_on(async {
                    let encode_logs = |batch: &[Queued<LogItem>]| encode_logs(batch, &resource);
                    let encode_spans = |batch: &[Queued<SpanData>]| encode_spans(batch, &resource);
                    tokio::join!(
                        logs.run(log_items, config.log_delay, encode_logs),
                        traces.run(spans, config.span_delay, encode_spans),
                        metrics.run_metrics(&source, &config, &resource),
                    );
                });
            });
        })?;
        Ok(Self { stop, done })
    }

    /// Exports what is queued, and waits for its end within a limit.
    pub(super) fn stop(self, counters: &Counters) {
        self.stop.send_replace(true);
        if self.done.recv_timeout(FLUSH_TIMEOUT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            // Without items, only the last values of metrics were not accepted.
            let (lost, dropped_before) = (counters.unsent(), counters.unreported());
            if lost > 0 {
                warn!(target: "nuthatch::otlp", lost, dropped_before, "the collector did not \
                    accept the last log records and spans in time");
            }
        }
    }
}

fn encode_logs(batch: &[Queued<LogItem>], resource: &ResourceAttributesWithSchema) -> Vec<u8> {
    let records = batch.iter().map(|Queued { item: (record, scope), .. }| (record, scope));
    let records: Vec<_> = records.collect();
    let resource_logs = group_logs_by_resource_and_scope(&LogBatch::new(&records), resource);
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

fn encode_spans(batch: &[Queued<SpanData>], resource: &ResourceAttributesWithSchema) -> Vec<u8> {
    let spans = batch.iter().map(|queued| queued.item.clone()).collect();
    let resource_spans = group_spans_by_resource_and_scope(spans, resource);
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

/// The task of a signal.
struct Task {
    signal: &'static str,
    transport: Transport,
    counters: (Arc<Counters>, fn(&Counters) -> &SignalCounters),
    stopped: watch::Receiver<bool>,
    dispatch: Dispatch,
    report: Report,
}

/// When the log had the last line about a signal, and the last reason that it does not have.
#[derive(Default)]
struct Report {
    at: Option<Instant>,
    unlogged: Option<String>,
}

impl Task {
    /// Sends the items of a queue until the exporter stops and the queue is empty.
    async fn run<T>(
        mut self,
        mut queue: Receiver<T>,
        delay: Duration,
        encode: impl Fn(&[T]) -> Vec<u8>,
    ) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while self.fill(&mut queue, &mut batch, delay).await {
            let message = encode(&batch);
            self.send(message, batch.len() as u64).await;
            batch.clear();
        }
        self.report_last();
    }

    /// Waits for the first item, and then for more until the batch is full or the delay is over.
    /// Returns whether the batch has an item; if not, the exporter stops.
    async fn fill<T>(&self, queue: &mut Receiver<T>, batch: &mut Vec<T>, delay: Duration) -> bool {
        tokio::select! {
            biased;
            _ = queue.recv_many(batch, MAX_BATCH) => {}
            () = self.stopping() => {}
        }
        let fill = async {
            while batch.len() < MAX_BATCH {
                let free = MAX_BATCH - batch.len();
                if queue.recv_many(batch, free).await == 0 {
                    break;
                }
            }
        };
        tokio::select! {
            biased;
            _ = timeout(delay, fill) => {}
            () = self.stopping() => {}
        }
        while batch.len() < MAX_BATCH
            && let Ok(item) = queue.try_recv()
        {
            batch.push(item);
        }
        !batch.is_empty()
    }

    /// Waits until the exporter stops.
    async fn stopping(&self) {
        // The sender lives as long as the exporter; without it, the exporter has ended.
        let _ = self.stopped.clone().wait_for(|stopped| *stopped).await;
    }

    fn is_stopping(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Sends a message with `count` items, again and again while the collector is unavailable. At
    /// the end of the program there is one attempt.
    async fn send(&mut self, message: Vec<u8>, count: u64) {
        let mut pause = FIRST_PAUSE;
        loop {
            let was_stopping = self.is_stopping();
            let Err(retry_after) = self.try_send(message.clone(), count, was_stopping).await else {
                return;
            };
            let wait = pause.max(retry_after.unwrap_or_default()).min(MAX_PAUSE);
            pause = (pause * 2).min(MAX_PAUSE);
            tokio::select! {
                () = sleep(wait) => {}
                () = self.stopping() => {}
            }
        }
    }

    /// Sends a message once, and counts its items, unless it can be sent again. Then it returns the
    /// time that the collector asks for.
    async fn try_send(
        &mut self,
        message: Vec<u8>,
        count: u64,
        is_last: bool,
    ) -> Result<(), Option<Duration>> {
        let sent = self.transport.send(message).await;
        let counters = (self.counters.1)(&self.counters.0);
        match sent {
            Sent::Accepted { rejected, message } => {
                let rejected = rejected.min(count);
                counters.exported.fetch_add(count - rejected, Ordering::Relaxed);
                counters.rejected.fetch_add(rejected, Ordering::Relaxed);
                if rejected > 0 {
                    self.report(&format!("the collector rejected some: {message}"));
                } else if counters.unreported() > 0 {
                    self.report(QUEUE_FULL);
                }
                Ok(())
            }
            Sent::Unavailable { reason, retry_after } if !is_last => {
                self.report(&reason);
                Err(retry_after)
            }
            Sent::Unavailable { reason, .. } | Sent::Refused { reason } => {
                counters.failed.fetch_add(count, Ordering::Relaxed);
                self.report(&reason);
                Ok(())
            }
        }
    }

    /// Exports the metrics in each interval, and once more at the end.
    async fn run_metrics(
        mut self,
        source: &OnceLock<Arc<dyn MetricsSource>>,
        config: &Config,
        resource: &ResourceAttributesWithSchema,
    ) {
        let start = now();
        if !config.metrics {
            return;
        }
        loop {
            tokio::select! {
                () = sleep(config.metric_interval) => {}
                () = self.stopping() => {}
            }
            let is_last = self.is_stopping();
            if let Some(source) = source.get() {
                let read = || source.metrics(MetricsFormat::Prometheus);
                let text = dispatcher::with_default(&self.dispatch, read);
                let (message, count) = metrics::encode(&text, resource, (start, now()));
                // Of metrics, the next export has newer values.
                let _ = self.try_send(message, count, true).await;
            }
            if is_last {
                return self.report_last();
            }
        }
    }

    /// Logs at most once a minute why telemetry is not exported.
    fn report(&mut self, reason: &str) {
        let time = Instant::now();
        if self.report.at.is_some_and(|at| time.duration_since(at) < REPORT_INTERVAL) {
            self.report.unlogged = Some(reason.to_owned());
            return;
        }
        self.report = Report { at: Some(time), unlogged: None };
        self.log(reason);
    }

    /// Logs at the end what was dropped since the last line.
    fn report_last(&mut self) {
        if (self.counters.1)(&self.counters.0).unreported() > 0 {
            let reason = self.report.unlogged.take();
            self.log(reason.as_deref().unwrap_or(QUEUE_FULL));
        }
    }

    fn log(&self, reason: &str) {
        let counters = (self.counters.1)(&self.counters.0);
        let (signal, dropped) = (self.signal, counters.dropped());
        counters.reported.store(dropped, Ordering::Relaxed);
        dispatcher::with_default(&self.dispatch, || {
            warn!(target: "nuthatch::otlp", signal, reason, dropped,
                "telemetry is not exported");
        });
    }
}
