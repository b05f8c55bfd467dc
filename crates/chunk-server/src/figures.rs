//! What the server counts.

use std::fmt::Write;
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

    /// All of it in Prometheus's text.
    pub(crate) fn exposition(&self) -> String {
        let mut text = String::new();
        head(&mut text, "answers_total", "counter", "Answers, by their status.");
        for (at, count) in self.answers.iter().enumerate() {
            let status = STATUSES.get(at).map_or("other".to_owned(), u16::to_string);
            let count = count.load(Relaxed);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{PREFIX}answers_total{{status=\"{status}\"}} {count}");
        }
        let load = |count: &AtomicU64| count.load(Relaxed);
        one(&mut text, "answers_cut_off_total", "Answers that ended early.", load(&self.cut_off));
        one(&mut text, "sent_bytes_total", "Bytes of bodies.", load(&self.sent));
        one(&mut text, "requests_open", "Requests that are under way.", load(&self.open));
        one(&mut text, "connections", "Connections of clients.", load(&self.connections));
        text
    }
}

const PREFIX: &str = "nuthatch_chunks_";

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {PREFIX}{name} {help}");
    let _ = writeln!(text, "# TYPE {PREFIX}{name} {kind}");
}

/// A counter for each value of a label.
pub(crate) fn by_label(
    text: &mut String,
    name: &str,
    help: &str,
    label: &str,
    values: &[(&str, u64)],
) {
    head(text, name, "counter", help);
    for (of, value) in values {
        let _ = writeln!(text, "{PREFIX}{name}{{{label}=\"{of}\"}} {value}");
    }
}

/// A number without labels; those that only grow have names that end in `_total`.
pub(crate) fn one(text: &mut String, name: &str, help: &str, value: u64) {
    head(text, name, if name.ends_with("_total") { "counter" } else { "gauge" }, help);
    let _ = writeln!(text, "{PREFIX}{name} {value}");
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
        let line = |text: &str| shared.0.exposition().lines().any(|line| line == text);
        assert!(line("nuthatch_chunks_requests_open 1"));
        drop(open);
        assert!(line("nuthatch_chunks_requests_open 0"));
        assert!(line("nuthatch_chunks_answers_total{status=\"206\"} 1"));
        assert!(line("nuthatch_chunks_answers_total{status=\"other\"} 1"));
        assert!(line("# TYPE nuthatch_chunks_sent_bytes_total counter"));
        assert!(line("nuthatch_chunks_sent_bytes_total 5"));
    }
}
