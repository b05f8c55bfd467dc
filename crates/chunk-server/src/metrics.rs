//! Counters of the server.

use nuthatch_listen::MetricsText;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The statuses with a counter of their own.
const STATUSES: [u16; 14] = [200, 206, 304, 400, 401, 403, 404, 405, 412, 416, 500, 502, 503, 504];

#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Responses by status; the last counter is for all other statuses.
    responses: [AtomicU64; STATUSES.len() + 1],
    /// Bodies that ended early.
    cut_off: AtomicU64,
    sent: AtomicU64,
    open: AtomicU64,
    connections: AtomicU64,
}

/// A request or connection, which is counted as open until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight<T: AsRef<Counters>>(T, fn(&Counters) -> &AtomicU64);

impl<T: AsRef<Counters>> InFlight<T> {
    /// Counts a request as open.
    pub(crate) fn request(counters: T) -> Self {
        Self::new(counters, |counters| &counters.open)
    }

    /// Counts a connection as open.
    pub(crate) fn connection(counters: T) -> Self {
        Self::new(counters, |counters| &counters.connections)
    }

    fn new(counters: T, of: fn(&Counters) -> &AtomicU64) -> Self {
        of(counters.as_ref()).fetch_add(1, Relaxed);
        Self(counters, of)
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.0.as_ref()
    }
}

impl<T: AsRef<Counters>> Drop for InFlight<T> {
    fn drop(&mut self) {
        (self.1)(self.0.as_ref()).fetch_sub(1, Relaxed);
    }
}

impl Counters {
    pub(crate) fn count_response(&self, status: u16) {
        let at = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len());
        self.responses[at].fetch_add(1, Relaxed);
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn count_cut_off(&self) {
        self.cut_off.fetch_add(1, Relaxed);
    }

    /// Adds all of it to a text of metrics.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let responses = self.responses.iter().enumerate().map(|(at, count)| {
            let status = STATUSES.get(at).map_or("other".to_owned(), u16::to_string);
            (status, count.load(Relaxed))
        });
        text.by_label("responses_total", "Responses, by status.", "status", responses);
        let load = |count: &AtomicU64| count.load(Relaxed);
        text.metric("responses_cut_off_total", "Responses that ended early.", load(&self.cut_off));
        text.metric("sent_bytes_total", "Bytes of bodies sent to clients.", load(&self.sent));
        text.metric("requests_open", "Requests in progress.", load(&self.open));
        text.metric("connections", "Open client connections.", load(&self.connections));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Shared(Arc<Counters>);

    impl AsRef<Counters> for Shared {
        fn as_ref(&self) -> &Counters {
            &self.0
        }
    }

    #[test]
    fn requests_are_counted_as_open_until_they_end() {
        let shared = Shared::default();
        let open = InFlight::request(shared.clone());
        open.counters().count_response(206);
        open.counters().count_response(299);
        open.counters().count_sent(5);
        let line = |expected: &str| {
            let mut text = MetricsText::new("nuthatch_chunks_");
            shared.0.write(&mut text);
            text.finish().lines().any(|line| line == expected)
        };
        assert!(line("nuthatch_chunks_requests_open 1"));
        drop(open);
        assert!(line("nuthatch_chunks_requests_open 0"));
        assert!(line("nuthatch_chunks_responses_total{status=\"206\"} 1"));
        assert!(line("nuthatch_chunks_responses_total{status=\"other\"} 1"));
        assert!(line("# TYPE nuthatch_chunks_sent_bytes_total counter"));
        assert!(line("nuthatch_chunks_sent_bytes_total 5"));
    }
}
