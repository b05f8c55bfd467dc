//! Metrics as text, in the format of Prometheus or in OpenMetrics.

use std::fmt::{self, Display, Write};
use std::ops::RangeInclusive;

/// The formats of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Version 0.0.4 of the Prometheus text format.
    Prometheus,
    /// Version 1.0.0 of OpenMetrics.
    OpenMetrics,
}

impl MetricsFormat {
    /// Returns the `Content-Type` of the format.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Converts a text in the Prometheus text format to this format.
    #[must_use]
    pub fn convert(self, text: &str) -> String {
        let mut converted = MetricsText::new(self);
        converted.append(text);
        converted.finish()
    }
}

/// The initial capacity of a text in bytes.
const INITIAL_CAPACITY: usize = 64 << 10;

/// Nanoseconds, displayed in seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as f64 / 1e9).fmt(f)
    }
}

/// A label and its value.
pub type Label<'a> = (&'a str, &'a str);

/// A text of metrics, one family after the other.
///
/// Names and help texts are written as they are and must be valid. Values of labels are escaped.
#[derive(Debug)]
pub struct MetricsText {
    text: String,
    format: MetricsFormat,
}

/// A metric to which samples are added.
#[derive(Debug)]
pub struct MetricFamily<'t> {
    metrics: &'t mut MetricsText,
    /// The name of the samples.
    name: String,
}

impl MetricsText {
    /// Returns an empty text.
    #[must_use]
    pub fn new(format: MetricsFormat) -> Self {
        Self { text: String::with_capacity(INITIAL_CAPACITY), format }
    }

    /// Begins a counter. `name` is without the suffix `_total` that samples have.
    pub fn counter(&mut self, name: &str, help: &str) -> MetricFamily<'_> {
        let samples = format!("{name}_total");
        let family = match self.format {
            MetricsFormat::Prometheus => &samples,
            MetricsFormat::OpenMetrics => name,
        };
        self.head(family, "counter", help);
        MetricFamily { metrics: self, name: samples }
    }

    /// Begins a gauge.
    pub fn gauge(&mut self, name: &str, help: &str) -> MetricFamily<'_> {
        self.head(name, "gauge", help);
        MetricFamily { metrics: self, name: name.to_owned() }
    }

    /// Begins a histogram of durations.
    pub fn histogram(&mut self, name: &str, help: &str) -> MetricFamily<'_> {
        self.head(name, "histogram", help);
        MetricFamily { metrics: self, name: name.to_owned() }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        let unit = ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(unit));
        if let (MetricsFormat::OpenMetrics, Some(unit)) = (self.format, unit) {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a `String` never fails.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// Adds metrics of another part of the program, in the Prometheus text format.
    pub fn append(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.splitn(4, ' ');
            match (self.format, words.next(), words.next(), words.next(), words.next()) {
                // OpenMetrics names a counter without the suffix, and its samples with it.
                (MetricsFormat::OpenMetrics, Some("#"), Some(word), Some(name), Some(rest)) => {
                    let name = name.strip_suffix("_total").unwrap_or(name);
                    self.line(format_args!("# {word} {name} {rest}"));
                }
                _ => self.line(format_args!("{line}")),
            }
        }
    }

    /// Returns the whole text.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl MetricFamily<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: &[Label<'_>], value: impl Display) -> &mut Self {
        self.add("", labels, value);
        self
    }

    /// Adds the sample of a metric without labels if its value is known.
    pub fn sample_if_known(&mut self, value: Option<impl Display>) {
        if let Some(value) = value {
            self.sample(&[], value);
        }
    }

    /// Adds a sample for each value of a label.
    pub fn by_label<L: AsRef<str>>(
        &mut self,
        label: &str,
        samples: impl IntoIterator<Item = (L, impl Display)>,
    ) {
        for (of, value) in samples {
            self.sample(&[(label, of.as_ref())], value);
        }
    }

    /// Adds the buckets, the sum and the count of a histogram of durations.
    ///
    /// `buckets` has the end of each bucket in nanoseconds, in ascending order, and the number of
    /// durations in it; each is below the end. Only buckets that end at a power of two are written,
    /// if its base-2 logarithm is in `logarithms`; the counts of the others are in the next one
    /// that is.
    pub fn durations(
        &mut self,
        labels: &[Label<'_>],
        buckets: impl IntoIterator<Item = (u64, u64)>,
        sum_ns: u64,
        logarithms: RangeInclusive<u32>,
    ) {
        let mut below = 0;
        for (end_ns, count) in buckets {
            below += count;
            if end_ns.is_power_of_two() && logarithms.contains(&end_ns.ilog2()) {
                let end = Seconds(end_ns).to_string();
                self.add("_bucket", &[labels, &[("le", &end)]].concat(), below);
            }
        }
        self.add("_bucket", &[labels, &[("le", "+Inf")]].concat(), below);
        self.add("_sum", labels, Seconds(sum_ns));
        self.add("_count", labels, below);
    }

    fn add(&mut self, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        let text = &mut self.metrics.text;
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
        self.metrics.line(format_args!(" {value}"));
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

    fn text(format: MetricsFormat) -> String {
        let mut text = MetricsText::new(format);
        text.counter("sent_bytes", "Bytes.").sample(&[("to", "a\"b\\c\nd")], 12);
        text.gauge("items", "Items.").sample(&[], 3);
        text.finish()
    }

    #[test]
    fn the_formats_differ_in_the_names_of_counters_and_at_the_end() {
        assert_eq!(
            text(MetricsFormat::Prometheus),
            "# HELP sent_bytes_total Bytes.\n# TYPE sent_bytes_total counter\n\
             sent_bytes_total{to=\"a\\\"b\\\\c\\nd\"} 12\n\
             # HELP items Items.\n# TYPE items gauge\nitems 3\n"
        );
        assert_eq!(
            text(MetricsFormat::OpenMetrics),
            "# HELP sent_bytes Bytes.\n# TYPE sent_bytes counter\n# UNIT sent_bytes bytes\n\
             sent_bytes_total{to=\"a\\\"b\\\\c\\nd\"} 12\n\
             # HELP items Items.\n# TYPE items gauge\nitems 3\n# EOF\n"
        );
    }

    #[test]
    fn extra_metrics_are_in_both_formats() {
        let prometheus = text(MetricsFormat::Prometheus);
        assert_eq!(MetricsFormat::Prometheus.convert(&prometheus), prometheus);
        let open = text(MetricsFormat::OpenMetrics).replace("# UNIT sent_bytes bytes\n", "");
        assert_eq!(MetricsFormat::OpenMetrics.convert(&prometheus), open);
    }

    #[test]
    fn each_value_of_a_label_has_a_sample() {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        text.gauge("a_open", "Open calls.").sample(&[], 2);
        text.counter("a_sent", "Sent.").by_label("to", [("x", 1), ("y", 0)]);
        assert_eq!(
            text.finish(),
            "# HELP a_open Open calls.\n# TYPE a_open gauge\na_open 2\n\
             # HELP a_sent_total Sent.\n# TYPE a_sent_total counter\n\
             a_sent_total{to=\"x\"} 1\na_sent_total{to=\"y\"} 0\n"
        );
    }

    #[test]
    fn buckets_add_up() {
        let buckets = [(64, 5), (96, 0), (128, 0), (192, 2), (256, 0), (384, 1), (512, 0)];
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        text.histogram("t_seconds", "Times.").durations(&[("of", "x")], buckets, 900, 7..=8);
        let text = text.finish();
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
