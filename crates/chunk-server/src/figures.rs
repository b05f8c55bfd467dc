//! What the server counts.

use nuthatch_listen::MetricsText;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The statuses that are told one by one.
const STATUSES: [u16; 14] = [200, 206, 304, 400, 401, 403, 404, 405, 412, 416, 500, 502, 503, 504];

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answers by status, and those with others.
    answers: [AtomicU64; STATUSES.len() + 1],
    /// Bodies that ended before they were whole.
    cut_off: AtomicU64,
    sent: AtomicU64,
    open: AtomicU64,
    connections: AtomicU64,
}

/// Something that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct Open<T: AsRef<Tally>>(T, fn(&Tally) -> &AtomicU64);

impl<T: AsRef<Tally>> Open<T> {
    /// A request.
    pub(crate) fn request(tally: T) -> Self {
        Self::new(tally, |tally| &tally.open)
    }

    /// A connection.
    pub(crate) fn connection(tally: T) -> Self {
        Self::new(tally, |tally| &tally.connections)
    }

    fn new(tally: T, of: fn(&Tally) -> &AtomicU64) -> Self {
        of(tally.as_ref()).fetch_add(1, Relaxed);
        Self(tally, of)
    }

    pub(crate) fn tally(&self) -> &Tally {
        self.0.as_ref()
    }
}

impl<T: AsRef<Tally>> Drop for Open<T> {
    fn drop(&mut self) {
        (self.1)(self.0.as_ref()).fetch_sub(1, Relaxed);
    }
}

impl Tally {
    pub(crate) fn answered(&self, status: u16) {
        let at = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len());
        self.answers[at].fetch_add(1, Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn cut_off(&self) {
        self.cut_off.fetch_add(1, Relaxed);
    }

    /// Adds all of it to a text of metrics.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let answers = self.answers.iter().enumerate().map(|(at, count)| {
            let status = STATUSES.get(at).map_or("other".to_owned(), u16::to_string);
            (status, count.load(Relaxed))
        });
        text.by_label("answers_total", "Answers, by their status.", "status", answers);
        let load = |count: &AtomicU64| count.load(Relaxed);
        text.metric("answers_cut_off_total", "Answers that ended early.", load(&self.cut_off));
        text.metric("sent_bytes_total", "Bytes of bodies.", load(&self.sent));
        text.metric("requests_open", "Requests that are under way.", load(&self.open));
        text.metric("connections", "Connections of clients.", load(&self.connections));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Shared(Arc<Tally>);

    impl AsRef<Tally> for Shared {
        fn as_ref(&self) -> &Tally {
            &self.0
        }
    }

    #[test]
    fn what_is_open_is_counted_until_it_ends() {
        let shared = Shared::default();
        let open = Open::request(shared.clone());
        open.tally().answered(206);
        open.tally().answered(299);
        open.tally().sent(5);
        let line = |expected: &str| {
            let mut text = MetricsText::new("nuthatch_chunks_");
            shared.0.write(&mut text);
            text.finish().lines().any(|line| line == expected)
        };
        assert!(line("nuthatch_chunks_requests_open 1"));
        drop(open);
        assert!(line("nuthatch_chunks_requests_open 0"));
        assert!(line("nuthatch_chunks_answers_total{status=\"206\"} 1"));
        assert!(line("nuthatch_chunks_answers_total{status=\"other\"} 1"));
        assert!(line("# TYPE nuthatch_chunks_sent_bytes_total counter"));
        assert!(line("nuthatch_chunks_sent_bytes_total 5"));
    }
}
