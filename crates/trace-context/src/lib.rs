//! The context of traces across processes, without a dependency on OpenTelemetry.
//!
//! Crates make spans with `tracing`, with the target [`TARGET`]. A program that exports traces
//! [installs](install) what this crate cannot do without a library of traces: it takes the parent
//! of a span from a request, passes the context on, and records spans of the past. In other
//! programs these functions do nothing, and the spans are disabled.

use std::fmt::Display;
use std::sync::OnceLock;
use std::time::Duration;

#[doc(hidden)]
pub use tracing;
pub use tracing::{Instrument, Span};

/// The target of all spans. Filters of the log do not apply to it.
pub const TARGET: &str = "nuthatch::traces";

/// What exports traces.
pub trait Tracing: Send + Sync {
    /// Sets the parent of a span that has not been entered yet, from the headers `traceparent` and
    /// `tracestate` of W3C Trace Context. Invalid headers are ignored.
    fn set_parent(&self, span: &Span, traceparent: &str, tracestate: &str);

    /// Returns the headers for requests within a span: `traceparent` and `tracestate`. There is
    /// none if the span belongs to no trace.
    fn headers(&self, span: &Span) -> Vec<(&'static str, String)>;

    /// Records a span that ends now and began `duration` ago.
    fn record(&self, name: &'static str, duration: Duration, attributes: &[(&'static str, &str)]);
}

/// Makes a span of a trace: its name, its kind (internal, server or client), and fields.
///
/// ```
/// let span = nuthatch_trace_context::span!("read", "internal", file.size = 12);
/// ```
#[macro_export]
macro_rules! span {
    ($name:literal, $kind:literal $(, $($fields:tt)*)?) => {
        $crate::tracing::info_span!(
            target: $crate::TARGET,
            $name,
            otel.kind = $kind,
            otel.status_description = $crate::tracing::field::Empty,
            $($($fields)*)?
        )
    };
}

/// Marks a span as failed if the result is an error.
pub fn note_error<T, E: Display>(span: &Span, result: &Result<T, E>) {
    if let Err(error) = result {
        span.record("otel.status_description", tracing::field::display(error));
    }
}

static TRACING: OnceLock<Box<dyn Tracing>> = OnceLock::new();

/// Installs what exports the traces of this process. Returns whether it is the first one; others
/// are not used.
pub fn install(tracing: Box<dyn Tracing>) -> bool {
    TRACING.set(tracing).is_ok()
}

/// Sets the parent of a span that has not been entered yet from the headers of a request, of which
/// `header` returns the value by the name.
pub fn set_parent<'h>(span: &Span, header: impl Fn(&str) -> Option<&'h str>) {
    if let Some(tracing) = TRACING.get()
        && let Some(traceparent) = header("traceparent")
    {
        tracing.set_parent(span, traceparent, header("tracestate").unwrap_or_default());
    }
}

/// Returns the headers for requests within the current span: `traceparent` and `tracestate`. There
/// is none if traces are not exported or no span is current.
pub fn headers() -> Vec<(&'static str, String)> {
    TRACING.get().map(|tracing| tracing.headers(&Span::current())).unwrap_or_default()
}

/// Records a span that ends now and began `duration` ago, if traces are exported.
pub fn record(name: &'static str, duration: Duration, attributes: &[(&'static str, &str)]) {
    if let Some(tracing) = TRACING.get() {
        tracing.record(name, duration, attributes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Notes its calls.
    #[derive(Clone, Default)]
    struct Notes(Arc<Mutex<Vec<String>>>);

    impl Notes {
        fn add(&self, note: String) {
            self.0.lock().expect("no panic").push(note);
        }
    }

    impl Tracing for Notes {
        fn set_parent(&self, _: &Span, traceparent: &str, tracestate: &str) {
            self.add(format!("parent {traceparent} {tracestate}"));
        }

        fn headers(&self, _: &Span) -> Vec<(&'static str, String)> {
            vec![("traceparent", "00-1".to_owned())]
        }

        fn record(&self, name: &'static str, duration: Duration, of: &[(&'static str, &str)]) {
            self.add(format!("{name} {duration:?} {of:?}"));
        }
    }

    #[test]
    fn nothing_happens_until_traces_are_exported() {
        let header = |name: &str| (name == "traceparent").then_some("00-2");
        set_parent(&Span::none(), header);
        record("early", Duration::ZERO, &[]);
        assert_eq!(headers(), []);

        let notes = Notes::default();
        assert!(install(Box::new(notes.clone())));
        assert!(!install(Box::new(Notes::default())), "the first one stays");
        set_parent(&Span::none(), header);
        set_parent(&Span::none(), |_| None);
        record("slow", Duration::from_millis(2), &[("command", "GET")]);
        assert_eq!(headers(), [("traceparent", "00-1".to_owned())]);
        let notes = notes.0.lock().expect("no panic");
        assert_eq!(*notes, ["parent 00-2 ", "slow 2ms [(\"command\", \"GET\")]"]);
    }
}
