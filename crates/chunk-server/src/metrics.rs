//! Counters of the server, and its metrics as text.

use nuthatch_chunks::Stat;
use nuthatch_listen::MetricsText;
use nuthatch_origins::{Counts, NotKept};
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

    /// Adds the counters to a text of metrics.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let responses = self.responses.iter().enumerate().map(|(at, count)| {
            let status = STATUSES.get(at).map_or("other".to_owned(), u16::to_string);
            (status, count.load(Relaxed))
        });
        text.counter("nuthatch_chunks_responses", "Responses, by status.")
            .by_label("status", responses);
        let load = |count: &AtomicU64| count.load(Relaxed);
        text.counter("nuthatch_chunks_responses_cut_off", "Responses that ended early.")
            .sample(&[], load(&self.cut_off));
        text.counter("nuthatch_chunks_sent_bytes", "Bytes of bodies sent to clients.")
            .sample(&[], load(&self.sent));
        text.gauge("nuthatch_chunks_requests_open", "Requests in progress.")
            .sample(&[], load(&self.open));
        text.gauge("nuthatch_chunks_connections", "Open client connections.")
            .sample(&[], load(&self.connections));
    }
}

/// Adds what the object cache read, and from where.
pub(crate) fn write_counts(text: &mut MetricsText, counts: &Counts) {
    let causes = NotKept::ALL.map(|cause| (cause.code(), counts.not_kept_by(cause)));
    let help = "Blocks sent to clients and not kept in the cache, by cause.";
    text.counter("nuthatch_chunks_not_kept", help).by_label("cause", causes);
    for (name, help, value) in [
        ("nuthatch_chunks_from_cache_bytes", "Bytes read from the cache.", counts.from_cache),
        ("nuthatch_chunks_from_origin_bytes", "Bytes read from the origin.", counts.from_origin),
        (
            "nuthatch_chunks_coalesced_bytes",
            "Bytes read from the fetch of another request.",
            counts.coalesced,
        ),
        (
            "nuthatch_chunks_fetched_bytes",
            "Bytes that the origin sent, including bytes that no client read.",
            counts.fetched,
        ),
        ("nuthatch_chunks_origin_requests", "Requests to the origin for bytes.", counts.requests),
        (
            "nuthatch_chunks_origin_checks",
            "Requests to the origin for the current version of an object.",
            counts.checks,
        ),
        ("nuthatch_chunks_origin_retries", "Retried requests to the origin.", counts.retries),
        (
            "nuthatch_chunks_fetch_lock_timeouts",
            "Fetches whose wait for the fetch lock of another process timed out.",
            counts.fetch_lock_timeouts,
        ),
        (
            "nuthatch_chunks_stale",
            "Objects opened in a version that the origin could not confirm.",
            counts.stale,
        ),
    ] {
        text.counter(name, help).sample(&[], value);
    }
}

/// Adds the metrics of the folder.
pub(crate) fn write_stat(text: &mut MetricsText, stat: &Stat) {
    for (name, help, value) in [
        (
            "nuthatch_chunks_cache_read_only",
            "1 if this process can only read the folder now, otherwise 0.",
            u64::from(stat.read_only),
        ),
        (
            "nuthatch_chunks_cache_bytes",
            "Bytes in use or reserved in the folder, by all processes.",
            stat.used,
        ),
        ("nuthatch_chunks_cache_limit_bytes", "Size limit of the folder in bytes.", stat.limit),
        (
            "nuthatch_chunks_cache_chunks",
            "Approximate number of chunks in the folder, including those with metadata.",
            stat.parts,
        ),
    ] {
        text.gauge(name, help).sample(&[], value);
    }
    for (name, help, value) in [
        ("nuthatch_chunks_cache_evicted", "Segments evicted by any process.", stat.evicted),
        (
            "nuthatch_chunks_cache_displaced",
            "Chunks that the index dropped because it was full and could not grow.",
            stat.displaced,
        ),
        ("nuthatch_chunks_cache_damaged", "Damaged chunks found by this process.", stat.damaged),
    ] {
        text.counter(name, help).sample(&[], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_listen::MetricsFormat;
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
            let mut text = MetricsText::new(MetricsFormat::Prometheus);
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
