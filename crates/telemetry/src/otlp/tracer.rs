//! Parents of spans, headers of requests, and spans of the past.

use super::process::now;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanContext, TraceContextExt, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use std::time::Duration;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Takes over and passes on the context of traces (W3C Trace Context).
pub(super) struct Tracer {
    tracer: SdkTracer,
    propagator: TraceContextPropagator,
}

impl Tracer {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self { tracer, propagator: TraceContextPropagator::new() }
    }
}

/// The headers of a request: `traceparent` and `tracestate`.
struct Headers<'h>(&'h str, &'h str);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(self.0),
            "tracestate" => Some(self.1),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

impl nuthatch_trace_context::Tracing for Tracer {
    fn set_parent(&self, span: &Span, traceparent: &str, tracestate: &str) {
        let headers = Headers(traceparent, tracestate);
        let parent = self.propagator.extract_with_context(&Context::new(), &headers);
        if parent.span().span_context().is_valid() {
            // A span that is not recorded has no parent.
            let _ = span.set_parent(parent);
        }
    }

    fn headers(&self, span: &Span) -> Vec<(&'static str, String)> {
        headers(span.context().span().span_context())
    }

    fn record(&self, name: &'static str, duration: Duration, attributes: &[(&'static str, &str)]) {
        let end = now();
        let attributes =
            attributes.iter().map(|(name, value)| KeyValue::new(*name, (*value).to_owned()));
        let span = self.tracer.span_builder(name);
        let span = span.with_start_time(end.checked_sub(duration).unwrap_or(end));
        let span = span.with_attributes(attributes);
        self.tracer.build_with_context(span, &Context::new()).end_with_timestamp(end);
    }
}

/// Returns the headers with the context of a span. There is none for an invalid one.
fn headers(context: &SpanContext) -> Vec<(&'static str, String)> {
    if !context.is_valid() {
        return Vec::new();
    }
    let (trace, span) = (context.trace_id(), context.span_id());
    let flags = context.trace_flags().to_u8();
    let mut headers = vec![("traceparent", format!("00-{trace}-{span}-{flags:02x}"))];
    let state = context.trace_state().header();
    if !state.is_empty() {
        headers.push(("tracestate", state));
    }
    headers
}
