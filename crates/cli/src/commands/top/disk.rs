//! The disk tier of a server: its counters, and their line.

use super::exposition::Metrics;
use super::quantity::{bytes, count, rate};
use serde_json::{Value, json};

/// The counters of a disk tier at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    /// Gauges.
    bytes: f64,
    limit: f64,
    items: f64,
    queued: f64,
    is_recovering: bool,
    is_off: bool,
    /// Counters.
    hits: f64,
    reads: f64,
    written: f64,
    dropped: f64,
}

impl Disk {
    /// Returns the counters of a server. `None` without a disk tier.
    pub(super) fn of(points: &Metrics) -> Option<Self> {
        let value = |name: &str| points.value(name).unwrap_or_default();
        Some(Self {
            limit: points.value("nuthatch_disk_limit_bytes")?,
            bytes: value("nuthatch_disk_bytes"),
            items: value("nuthatch_disk_items"),
            queued: value("nuthatch_disk_queued_reads"),
            is_recovering: value("nuthatch_disk_recovering") > 0.0,
            is_off: value("nuthatch_disk_off") > 0.0,
            hits: value("nuthatch_disk_hits_total"),
            reads: value("nuthatch_disk_reads_total"),
            written: value("nuthatch_disk_written_items_total"),
            dropped: value("nuthatch_disk_dropped_items_total"),
        })
    }

    /// Returns this with counters per second, for an interval that began with `earlier`.
    pub(super) fn since(self, earlier: Option<Self>, interval_s: f64) -> Self {
        let earlier = earlier.unwrap_or_default();
        let per = |now: f64, before: f64| {
            if interval_s > 0.0 { (now - before) / interval_s } else { 0.0 }
        };
        Self {
            hits: per(self.hits, earlier.hits),
            reads: per(self.reads, earlier.reads),
            written: per(self.written, earlier.written),
            dropped: per(self.dropped, earlier.dropped),
            ..self
        }
    }

    /// Returns the line, and whether it reports a problem.
    pub(super) fn line(self) -> (String, bool) {
        let (used, limit, items) = (bytes(self.bytes), bytes(self.limit), count(self.items));
        let (hits, reads) = (rate(self.hits), rate(self.reads));
        let (written, dropped) = (rate(self.written), rate(self.dropped));
        let queued = count(self.queued);
        let state = match (self.is_off, self.is_recovering) {
            (true, _) => "; off: nothing is written",
            (false, true) => "; recovering",
            (false, false) => "",
        };
        let text = format!(
            "disk      {used} of {limit}, items {items}; hits {hits}, reads {reads}, queued \
             {queued}; written {written}, dropped {dropped}{state}"
        );
        (text, self.is_off)
    }

    /// Returns the counters per second and the gauges as JSON.
    pub(super) fn json(self) -> Value {
        json!({
            "bytes": self.bytes,
            "limit_bytes": self.limit,
            "items": self.items,
            "queued_reads": self.queued,
            "hits_per_second": self.hits,
            "reads_per_second": self.reads,
            "written_per_second": self.written,
            "dropped_per_second": self.dropped,
            "is_recovering": self.is_recovering,
            "is_off": self.is_off,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hits: u32, off: u32) -> Disk {
        let text = format!(
            "nuthatch_disk_limit_bytes 2097152\nnuthatch_disk_bytes 1048576\n\
             nuthatch_disk_items 5000\nnuthatch_disk_hits_total {hits}\nnuthatch_disk_off {off}\n"
        );
        Disk::of(&Metrics::parse(&text).expect("metrics")).expect("a disk tier")
    }

    #[test]
    fn the_line_has_rates_and_the_state() {
        let disk = at(300, 0).since(Some(at(100, 0)), 10.0);
        let expected = "disk      1.0 MiB of 2.0 MiB, items 5,000; hits 20/s, reads 0/s, queued 0; \
                        written 0/s, dropped 0/s";
        assert_eq!(disk.line(), (expected.to_owned(), false));
        assert_eq!(disk.json()["hits_per_second"], 20.0);
        let (text, is_problem) = at(300, 1).line();
        assert!(is_problem && text.ends_with("off: nothing is written"), "{text}");
    }

    #[test]
    fn a_server_without_a_disk_tier_has_no_line() {
        assert!(Disk::of(&Metrics::parse("nuthatch_items 1\n").expect("metrics")).is_none());
    }
}
