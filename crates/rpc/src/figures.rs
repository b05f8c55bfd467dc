//! What the server counts.

use crate::access::Right;
use http::HeaderMap;
use nuthatch_listen::MetricsText;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tonic::Code;

/// The calls of the store, and what a token must allow for them. `Txn` looks by itself before it
/// writes.
const METHODS: &[(&str, Right)] = &[
    ("Get", Right::Read),
    ("GetMany", Right::Read),
    ("Put", Right::Write),
    ("PutIf", Right::Write),
    ("Delete", Right::Write),
    ("DeleteRange", Right::Write),
    ("Scan", Right::Read),
    ("Count", Right::Read),
    ("Batch", Right::Write),
    ("Watch", Right::Read),
    ("Txn", Right::Read),
    ("Stat", Right::Read),
    ("Tables", Right::Read),
    ("CreateTable", Right::Write),
    ("Backup", Right::Read),
];

/// The path of the service.
const SERVICE: &str = "/nuthatch.store.v1.Store/";

/// Which call it is; `None` for those of other services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method(Option<usize>);

impl Method {
    pub(crate) fn of(path: &str) -> Self {
        let name = path.strip_prefix(SERVICE);
        Self(name.and_then(|name| METHODS.iter().position(|(method, _)| *method == name)))
    }

    /// What a token must allow; `None` for health and reflection, which need none.
    pub(crate) fn right(self) -> Option<Right> {
        self.0.map(|method| METHODS[method].1)
    }
}

#[derive(Default)]
struct Line {
    begun: AtomicU64,
    failed: AtomicU64,
    open: AtomicU64,
    sent: AtomicU64,
}

/// The name and the help text of a metric, and its counter.
type Family = (&'static str, &'static str, fn(&Line) -> &AtomicU64);

/// What is counted, for each call.
pub(crate) struct Figures(Vec<Line>);

impl Figures {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(METHODS.iter().map(|_| Line::default()).collect()))
    }

    /// A call begins.
    pub(crate) fn begin(self: &Arc<Self>, method: Method) -> Counted {
        if let Some(line) = method.0.and_then(|method| self.0.get(method)) {
            line.begun.fetch_add(1, Ordering::Relaxed);
            line.open.fetch_add(1, Ordering::Relaxed);
        }
        Counted { figures: Arc::clone(self), method, ended: false }
    }

    /// Calls that are under way.
    pub(crate) fn open(&self) -> u64 {
        self.0.iter().map(|line| line.open.load(Ordering::Relaxed)).sum()
    }

    /// Adds all of it to a text of metrics.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let families: [Family; 4] = [
            ("calls_total", "Calls that began.", |line| &line.begun),
            ("calls_failed_total", "Calls that ended with an error or were given up.", |line| {
                &line.failed
            }),
            ("calls_open", "Calls that are under way.", |line| &line.open),
            ("sent_bytes_total", "Bytes of answers.", |line| &line.sent),
        ];
        for (name, help, field) in families {
            let value = |line| field(line).load(Ordering::Relaxed);
            let lines = METHODS.iter().zip(&self.0);
            text.by_label(name, help, "method", lines.map(|((of, _), line)| (of, value(line))));
        }
    }
}

/// A call that is counted. It is over when this is dropped.
pub(crate) struct Counted {
    figures: Arc<Figures>,
    method: Method,
    ended: bool,
}

impl Counted {
    fn line(&self) -> Option<&Line> {
        self.method.0.and_then(|method| self.figures.0.get(method))
    }

    /// Bytes of its answer go out.
    pub(crate) fn sent(&self, bytes: usize) {
        if let Some(line) = self.line() {
            line.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Headers or trailers go out, perhaps with a status.
    pub(crate) fn began(&mut self, headers: &HeaderMap) {
        if let Some(status) = headers.get("grpc-status") {
            self.ended(Code::from_bytes(status.as_bytes()));
        }
    }

    /// The call has this status.
    pub(crate) fn ended(&mut self, code: Code) {
        if let Some(line) = self.line().filter(|_| !self.ended && code != Code::Ok) {
            line.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.ended = true;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // A call without a status was given up by its client.
        self.ended(Code::Cancelled);
        if let Some(line) = self.line() {
            line.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::store_server::SERVICE_NAME;

    #[test]
    fn every_call_of_the_definition_is_counted_and_needs_a_right() {
        let definition = include_str!("../proto/store.proto");
        let calls = definition.lines().filter_map(|line| line.trim().strip_prefix("rpc "));
        let calls: Vec<_> = calls.filter_map(|line| Some(line.split_once('(')?.0)).collect();
        assert_eq!(calls, METHODS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        assert_eq!(format!("/{SERVICE_NAME}/"), SERVICE);
        for call in calls {
            assert!(Method::of(&format!("{SERVICE}{call}")).right().is_some(), "{call}");
        }
        assert_eq!(Method::of("/grpc.health.v1.Health/Check").right(), None);
    }

    #[test]
    fn calls_are_counted_from_their_beginning_to_their_end() {
        let figures = Figures::new();
        let mut call = figures.begin(Method::of("/nuthatch.store.v1.Store/Get"));
        call.sent(5);
        assert_eq!(figures.open(), 1);
        call.ended(Code::NotFound);
        call.ended(Code::NotFound);
        drop(call);
        drop(figures.begin(Method::of("/elsewhere/Get")));
        let mut text = MetricsText::new("nuthatch_rpc_");
        figures.write(&mut text);
        let text = text.finish();
        for line in ["calls_total", "calls_failed_total"] {
            assert!(text.contains(&format!("nuthatch_rpc_{line}{{method=\"Get\"}} 1\n")), "{text}");
        }
        assert!(text.contains("nuthatch_rpc_calls_open{method=\"Get\"} 0\n"), "{text}");
        assert!(text.contains("nuthatch_rpc_sent_bytes_total{method=\"Get\"} 5\n"), "{text}");
    }
}
