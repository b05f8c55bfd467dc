//! The text format of metrics: that of Prometheus, or OpenMetrics for clients that accept it.

use crate::state::bucket_end_ns;
use std::fmt::{self, Display, Write};

/// Versions of the text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Version 0.0.4 of the Prometheus text format.
    Prometheus,
    /// Version 1.0.0 of OpenMetrics.
    OpenMetrics,
}

impl Format {
    /// Returns the `Content-Type` of the format.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Converts a page in the Prometheus text format to this format.
    pub fn page(self, text: &str) -> String {
        let mut page = Page::new(self);
        page.append(text);
        page.finish()
    }
}

/// Nanoseconds, displayed in seconds.
#[derive(Clone, Copy)]
pub(super) struct Seconds(pub(super) u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as f64 / 1e9).fmt(f)
    }
}

/// A label and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

/// Metrics as text, one family after the other.
pub(super) struct Page {
    text: String,
    format: Format,
}

/// A metric to which samples are added.
pub(super) struct Family<'p> {
    page: &'p mut Page,
    /// The name of the samples.
    name: String,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self { text: String::with_capacity(64 << 10), format }
    }

    /// Begins a counter. `name` is without the suffix `_total` that samples have.
    pub(super) fn counter(&mut self, name: &str, help: &str) -> Family<'_> {
        let samples = format!("{name}_total");
        let family = match self.format {
            Format::Prometheus => &samples,
            Format::OpenMetrics => name,
        };
        self.head(family, "counter", help);
        Family { page: self, name: samples }
    }

    /// Begins a gauge.
    pub(super) fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.head(name, "gauge", help);
        Family { page: self, name: name.to_owned() }
    }

    /// Begins a histogram of durations.
    pub(super) fn histogram(&mut self, name: &str, help: &str) -> Family<'_> {
        self.head(name, "histogram", help);
        Family { page: self, name: name.to_owned() }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        let unit = ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(unit));
        if let (Format::OpenMetrics, Some(unit)) = (self.format, unit) {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a `String` never fails.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// Adds metrics of another part of the program, in the Prometheus text format.
    pub(super) fn append(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.splitn(4, ' ');
            match (self.format, words.next(), words.next(), words.next(), words.next()) {
                // OpenMetrics names a counter without the suffix, and its samples with it.
                (Format::OpenMetrics, Some("#"), Some(word), Some(name), Some(rest)) => {
                    let name = name.strip_suffix("_total").unwrap_or(name);
                    self.line(format_args!("# {word} {name} {rest}"));
                }
                _ => self.line(format_args!("{line}")),
            }
        }
    }

    /// Returns the whole text.
    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample.
    pub(super) fn sample(&mut self, labels: &[Label<'_>], value: impl Display) -> &mut Self {
        self.add("", labels, value);
        self
    }

    /// Adds the sample of a metric without labels if its value is known.
    pub(super) fn known(&mut self, value: Option<impl Display>) {
        if let Some(value) = value {
            self.sample(&[], value);
        }
    }

    /// Adds the buckets, sum and count of a histogram. Buckets end at powers of two of nanoseconds
    /// whose base-2 logarithms are in `logarithms`. A duration is below the end of its bucket.
    pub(super) fn times(
        &mut self,
        labels: &[Label<'_>],
        counts: &[u64],
        sum_ns: u64,
        logarithms: std::ops::RangeInclusive<u32>,
    ) {
        let mut below = 0;
        for (bucket, count) in counts.iter().enumerate() {
            below += count;
            let end = bucket_end_ns(bucket);
            if end.is_power_of_two() && logarithms.contains(&end.ilog2()) {
                let end = Seconds(end).to_string();
                self.add("_bucket", &[labels, &[("le", &end)]].concat(), below);
            }
        }
        self.add("_bucket", &[labels, &[("le", "+Inf")]].concat(), below);
        self.add("_sum", labels, Seconds(sum_ns));
        self.add("_count", labels, below);
    }

    fn add(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        let text = &mut self.page.text;
        text.push_str(&self.name);
        text.push_str(suffix);
        for (at, (name, value)) in labels.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            text.push_str(name);
            text.push_str("=\"");
            escape(value, text);
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        self.page.line(format_args!(" {value}"));
    }
}

fn escape(value: &str, text: &mut String) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            character => text.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(format: Format) -> String {
        let mut page = Page::new(format);
        page.counter("sent_bytes", "Bytes.").sample(&[("to", "a\"b\\c\nd")], 12);
        page.gauge("items", "Items.").sample(&[], 3);
        page.finish()
    }

    #[test]
    fn the_formats_differ_in_the_names_of_counters_and_at_the_end() {
        assert_eq!(
            page(Format::Prometheus),
            "# HELP sent_bytes_total Bytes.\n# TYPE sent_bytes_total counter\n\
             sent_bytes_total{to=\"a\\\"b\\\\c\\nd\"} 12\n\
             # HELP items Items.\n# TYPE items gauge\nitems 3\n"
        );
        assert_eq!(
            page(Format::OpenMetrics),
            "# HELP sent_bytes Bytes.\n# TYPE sent_bytes counter\n# UNIT sent_bytes bytes\n\
             sent_bytes_total{to=\"a\\\"b\\\\c\\nd\"} 12\n\
             # HELP items Items.\n# TYPE items gauge\nitems 3\n# EOF\n"
        );
    }

    #[test]
    fn extra_metrics_are_in_both_formats() {
        let prometheus = page(Format::Prometheus);
        assert_eq!(Format::Prometheus.page(&prometheus), prometheus);
        let open = page(Format::OpenMetrics).replace("# UNIT sent_bytes bytes\n", "");
        assert_eq!(Format::OpenMetrics.page(&prometheus), open);
    }

    #[test]
    fn buckets_add_up() {
        let mut counts = vec![0; 40];
        // Below 64 ns, below 160 ns and below 320 ns.
        (counts[0], counts[6], counts[10]) = (5, 2, 1);
        let mut page = Page::new(Format::Prometheus);
        page.histogram("t_seconds", "Times.").times(&[("of", "x")], &counts, 900, 7..=8);
        let text = page.finish();
        let samples: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            samples,
            [
                "t_seconds_bucket{of=\"x\",le=\"0.000000128\"} 5",
                "t_seconds_bucket{of=\"x\",le=\"0.000000256\"} 7",
                "t_seconds_bucket{of=\"x\",le=\"+Inf\"} 8",
                "t_seconds_sum{of=\"x\"} 0.0000009",
                "t_seconds_count{of=\"x\"} 8",
            ]
        );
    }
}
