//! Exports logs, metrics and traces with OTLP over HTTP.
//!
//! | module | content |
//! |---|---|
//! | `choices` | exporters and samplers that the environment names |
//! | `config` | the address of the collector, headers and intervals, from the environment |
//! | `counters` | the counters of exported and dropped items |
//! | `queue` | the bounded queues of log records and spans |
//! | `item_len` | the approximate memory of log records and spans |
//! | `exporter` | the thread that sends batches, with retries |
//! | `transport` | one request to the collector |
//! | `metrics` | metrics of an exposition as messages of OTLP |
//! | `process` | what describes this process, and the time |
//! | `tracer` | parents of spans, headers of requests, spans of the past |
//!
//! Threads that log or end a span put it into a queue and never wait. One thread sends all of it.

mod choices;
mod config;
mod counters;
mod exporter;
mod item_len;
mod metrics;
mod process;
mod queue;
mod tracer;
mod transport;

use crate::Error;
use config::Config;
use counters::Counters;
use exporter::{Exporter, Input};
use nuthatch_listen::MetricsSource;
use opentelemetry::trace::TracerProvider;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use process::{SCOPE, resource};
use queue::{LogQueue, Queue, SpanQueue};
use std::io;
use std::sync::{Arc, OnceLock};
use tracing::{Dispatch, Metadata};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::{Layer, Registry};

pub use config::check;

/// The exporter of this process.
pub(crate) struct Otlp {
    counters: Arc<Counters>,
    source: Arc<OnceLock<Arc<dyn MetricsSource>>>,
    loggers: SdkLoggerProvider,
    tracers: SdkTracerProvider,
    /// What the thread takes over at its start.
    input: Option<(Config, Resource, Input)>,
    exporter: Option<Exporter>,
}

impl Otlp {
    /// Reads the environment. Returns `None` if nothing is to be exported.
    pub(crate) fn new(setting: &str, service: &str) -> Result<Option<Self>, Error> {
        let Some(config) = Config::read(setting, crate::variable).map_err(Error::Setting)? else {
            return Ok(None);
        };
        let counters = Arc::new(Counters::default());
        let (logs, queued_logs) = Queue::new(&counters, |all| &all.logs);
        let (spans, queued_spans) = Queue::new(&counters, |all| &all.traces);
        let resource = resource(service);
        let loggers = SdkLoggerProvider::builder()
            .with_resource(resource.clone())
            .with_log_processor(LogQueue(logs))
            .build();
        let tracers = SdkTracerProvider::builder()
            .with_sampler(config.sampler.clone())
            .with_resource(resource.clone())
            .with_span_processor(SpanQueue(spans))
            .build();
        let source = Arc::default();
        let input = Input { logs: queued_logs, spans: queued_spans, source: Arc::clone(&source) };
        let input = Some((config, resource, input));
        Ok(Some(Self { counters, source, loggers, tracers, input, exporter: None }))
    }

    /// Does nothing: the environment is used.
    pub(crate) fn warn_if_unused(_setting: &str) {}

    /// Returns what the environment has that is ignored.
    pub(crate) fn warnings(&self) -> &[String] {
        self.config().map(|config| &config.warnings[..]).unwrap_or_default()
    }

    /// Returns the layer that makes log records of events.
    pub(crate) fn logs(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        if self.config().is_some_and(|config| config.logs) {
            OpenTelemetryTracingBridge::new(&self.loggers).boxed()
        } else {
            None::<tracing_subscriber::layer::Identity>.boxed()
        }
    }

    /// Returns the layer that exports the spans of traces.
    pub(crate) fn spans(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        if !self.config().is_some_and(|config| config.traces) {
            return None::<tracing_subscriber::layer::Identity>.boxed();
        }
        let is_trace = |metadata: &Metadata<'_>| {
            metadata.is_span() && metadata.target() == nuthatch_trace_context::TARGET
        };
        tracing_opentelemetry::layer()
            .with_tracer(self.tracers.tracer(SCOPE))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_level(false)
            .with_target(false)
            .with_filter(filter_fn(is_trace).with_max_level_hint(LevelFilter::INFO))
            .boxed()
    }

    fn config(&self) -> Option<&Config> {
        self.input.as_ref().map(|(config, ..)| config)
    }

    /// Starts the thread. It logs with `dispatch`.
    pub(crate) fn start(&mut self, dispatch: &Dispatch) -> io::Result<()> {
        let Some((config, resource, input)) = self.input.take() else { return Ok(()) };
        if config.traces {
            // Another tracer stays if the process has one.
            let tracer = tracer::Tracer::new(self.tracers.tracer(SCOPE));
            let _ = nuthatch_trace_context::install(Box::new(tracer));
        }
        let exporter = Exporter::start(config, &resource, input, &self.counters, dispatch)?;
        self.exporter = Some(exporter);
        Ok(())
    }

    /// Exports the metrics of a source from now on. Only the first source is exported.
    pub(crate) fn export_metrics(&self, source: Arc<dyn MetricsSource>) {
        let _ = self.source.set(source);
    }

    /// Returns a function that writes the counters in the Prometheus text format.
    pub(crate) fn exposition(&self) -> Box<dyn Fn() -> String + Send + Sync> {
        let counters = Arc::clone(&self.counters);
        Box::new(move || counters.exposition())
    }

    /// Exports what is queued, within a limit of time.
    pub(crate) fn stop(self) {
        if let Some(exporter) = self.exporter {
            exporter.stop(&self.counters);
        }
    }
}
