//! Metrics in the text format of Prometheus.

use std::fmt::{Display, Write};

/// A text of metrics whose names have the same prefix.
///
/// A metric whose name ends in `_total` is a counter; all others are gauges. Names and labels must
/// be valid as they are: nothing is escaped.
#[derive(Debug)]
pub struct MetricsText {
    prefix: &'static str,
    text: String,
}

impl MetricsText {
    /// Returns an empty text. Names are written behind `prefix`, such as `nuthatch_rpc_`.
    #[must_use]
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// Adds a metric without labels.
    pub fn metric(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help);
        let _ = writeln!(self.text, "{}{name} {value}", self.prefix);
    }

    /// Adds a metric with one label, and a sample for each of its values.
    pub fn by_label<L: Display>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        samples: impl IntoIterator<Item = (L, u64)>,
    ) {
        self.head(name, help);
        for (of, value) in samples {
            let _ = writeln!(self.text, "{}{name}{{{label}=\"{of}\"}} {value}", self.prefix);
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }

    /// Writes the description and the type of a metric. Writing to a string cannot fail.
    fn head(&mut self, name: &str, help: &str) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        let _ = writeln!(self.text, "# HELP {}{name} {help}", self.prefix);
        let _ = writeln!(self.text, "# TYPE {}{name} {kind}", self.prefix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_between_counters_and_gauges() {
        let mut text = MetricsText::new("a_");
        text.metric("open", "Open calls.", 2);
        text.by_label("sent_total", "Sent.", "to", [("x", 1), ("y", 0)]);
        assert_eq!(
            text.finish(),
            "# HELP a_open Open calls.\n# TYPE a_open gauge\na_open 2\n\
             # HELP a_sent_total Sent.\n# TYPE a_sent_total counter\n\
             a_sent_total{to=\"x\"} 1\na_sent_total{to=\"y\"} 0\n"
        );
    }
}
