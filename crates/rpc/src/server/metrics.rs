//! Counters of calls.

use crate::server::methods::Method;
use http::HeaderMap;
use nuthatch_listen::{MetricFamily, MetricsText};
use nuthatch_trace_context::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tonic::Code;
use tracing::field::Empty;

#[derive(Default)]
struct MethodCounters {
    begun: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    open: AtomicU64,
    sent: AtomicU64,
}

/// The counters of all calls, by method.
pub(crate) struct CallCounters(Vec<MethodCounters>);

impl CallCounters {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Method::names().map(|_| MethodCounters::default()).collect()))
    }

    /// Counts a call that begins.
    pub(crate) fn begin(self: &Arc<Self>, method: Method) -> CountedCall {
        if let Some(line) = method.index().and_then(|method| self.0.get(method)) {
            line.begun.fetch_add(1, Ordering::Relaxed);
            line.open.fetch_add(1, Ordering::Relaxed);
        }
        let counters = Arc::clone(self);
        let (has_status, has_response, span) = (false, false, Span::none());
        CountedCall { counters, method, has_status, has_response, span }
    }

    /// Returns the number of calls in progress.
    pub(crate) fn open(&self) -> u64 {
        self.0.iter().map(|line| line.open.load(Ordering::Relaxed)).sum()
    }

    /// Adds the counters to a text of metrics.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let help = "Calls that were started.";
        self.write_family(text.counter("nuthatch_rpc_calls", help), |line| &line.begun);
        let help = "Calls that failed, or that the client ended before the response.";
        self.write_family(text.counter("nuthatch_rpc_calls_failed", help), |line| &line.failed);
        let help = "Calls that the client ended in the response, such as a scan whose rest it did \
                    not need.";
        let family = text.counter("nuthatch_rpc_calls_cancelled", help);
        self.write_family(family, |line| &line.cancelled);
        let help = "Calls in progress.";
        self.write_family(text.gauge("nuthatch_rpc_calls_open", help), |line| &line.open);
        let help = "Bytes of sent responses.";
        self.write_family(text.counter("nuthatch_rpc_sent_bytes", help), |line| &line.sent);
    }

    /// Adds one of the counters, by method.
    fn write_family(
        &self,
        mut family: MetricFamily<'_>,
        counter: fn(&MethodCounters) -> &AtomicU64,
    ) {
        let value = |line| counter(line).load(Ordering::Relaxed);
        let lines = Method::names().zip(&self.0);
        family.by_label("method", lines.map(|(method, line)| (method, value(line))));
    }
}

/// A call that is counted as open until this is dropped.
pub(crate) struct CountedCall {
    counters: Arc<CallCounters>,
    method: Method,
    has_status: bool,
    /// Whether the response has begun.
    has_response: bool,
    /// The span of the call.
    span: Span,
}

impl CountedCall {
    /// Makes the span of the call, whose parent is that of the client. There is none for methods of
    /// other services. It ends when this is dropped.
    pub(crate) fn begin_span(&mut self, headers: &HeaderMap) -> Span {
        let name = self.method.index().and_then(|method| Method::names().nth(method));
        if let Some(name) = name {
            self.span = nuthatch_trace_context::span!(
                "store call",
                "server",
                otel.status_code = Empty,
                rpc.system = "grpc",
                rpc.service = "nuthatch.store.v1.Store",
                rpc.method = name,
                rpc.grpc.status_code = Empty,
            );
            let header = |name: &str| headers.get(name)?.to_str().ok();
            nuthatch_trace_context::set_parent(&self.span, header);
        }
        self.span.clone()
    }

    fn line(&self) -> Option<&MethodCounters> {
        self.method.index().and_then(|method| self.counters.0.get(method))
    }

    /// Counts bytes of the response.
    pub(crate) fn count_sent(&self, bytes: usize) {
        if let Some(line) = self.line() {
            line.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Records that the response has begun, and the status in its headers or trailers, if they have
    /// one.
    pub(crate) fn note_headers(&mut self, headers: &HeaderMap) {
        self.has_response = true;
        if let Some(status) = headers.get("grpc-status") {
            self.note_status(Code::from_bytes(status.as_bytes()));
        }
    }

    /// Records the status of the call.
    pub(crate) fn note_status(&mut self, code: Code) {
        if self.has_status {
            return;
        }
        self.has_status = true;
        self.span.record("rpc.grpc.status_code", code as i32);
        let Some(line) = self.line() else { return };
        match code {
            Code::Ok => {}
            // Clients end streams whose rest they do not need, so this is no failure. One that ends
            // a call before the response has waited in vain, such as until its deadline.
            Code::Cancelled if self.has_response => {
                line.cancelled.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                line.failed.fetch_add(1, Ordering::Relaxed);
                self.span.record("otel.status_code", "error");
            }
        }
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        // The client ended the call before it had a status.
        self.note_status(Code::Cancelled);
        if let Some(line) = self.line() {
            line.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_listen::MetricsFormat;

    #[test]
    fn calls_are_counted_from_their_beginning_to_their_end() {
        let counters = CallCounters::new();
        let mut call = counters.begin(Method::of("/nuthatch.store.v1.Store/Get"));
        call.count_sent(5);
        assert_eq!(counters.open(), 1);
        call.note_status(Code::NotFound);
        call.note_status(Code::NotFound);
        drop(call);
        drop(counters.begin(Method::of("/elsewhere/Get")));
        drop(counters.begin(Method::of("/nuthatch.store.v1.Store/Put")));
        let mut scan = counters.begin(Method::of("/nuthatch.store.v1.Store/Scan"));
        scan.note_headers(&HeaderMap::new());
        drop(scan);
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        counters.write(&mut text);
        let text = text.finish();
        for line in ["calls_total", "calls_failed_total"] {
            assert!(text.contains(&format!("nuthatch_rpc_{line}{{method=\"Get\"}} 1\n")), "{text}");
        }
        for line in [
            "calls_failed_total{method=\"Put\"} 1",
            "calls_failed_total{method=\"Scan\"} 0",
            "calls_cancelled_total{method=\"Put\"} 0",
            "calls_cancelled_total{method=\"Scan\"} 1",
        ] {
            assert!(text.contains(&format!("nuthatch_rpc_{line}\n")), "{text}");
        }
        assert!(text.contains("nuthatch_rpc_calls_open{method=\"Get\"} 0\n"), "{text}");
        assert!(text.contains("nuthatch_rpc_sent_bytes_total{method=\"Get\"} 5\n"), "{text}");
    }
}
