//! Parses metrics in the text format of Prometheus.

use nuthatch_listen::MetricSample;
use std::collections::BTreeMap;

/// A sample of a metric: its labels and its value.
#[derive(Debug, PartialEq)]
struct MetricPoint {
    labels: Vec<(String, String)>,
    value: f64,
}

/// The points of all metrics, by name.
#[derive(Debug, Default)]
pub(super) struct Metrics(BTreeMap<String, Vec<MetricPoint>>);

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// The upper bounds of the buckets in seconds, the last one infinite, with cumulative counts.
    pub(super) buckets: Vec<(f64, f64)>,
    /// The sum of all durations in seconds.
    pub(super) sum: f64,
}

impl Metrics {
    /// Parses the metrics of a text. Errors have the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut points = Self::default();
        for (at, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, point) = parse(line).ok_or_else(|| {
                let shortened: String = line.chars().take(80).collect();
                let expected = "expected a metric such as name{label=\"value\"} 1";
                format!("GET /metrics: line {}: {expected}, found {shortened:?}", at + 1)
            })?;
            points.0.entry(name).or_default().push(point);
        }
        Ok(points)
    }

    fn of(&self, name: &str) -> &[MetricPoint] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a metric without labels.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.of(name).first().map(|point| point.value)
    }

    /// Returns the value of a label in the first point of a metric.
    pub(super) fn label(&self, name: &str, label: &str) -> Option<&str> {
        self.of(name).first().and_then(|point| point.label(label))
    }

    /// Returns the values of a metric by the value of a label, in the order of the text.
    pub(super) fn by<'a>(
        &'a self,
        name: &str,
        label: &'a str,
    ) -> impl Iterator<Item = (&'a str, f64)> {
        self.of(name).iter().filter_map(move |point| Some((point.label(label)?, point.value)))
    }

    /// Returns the histograms of a metric by the value of a label.
    pub(super) fn histograms_by(&self, name: &str, label: &str) -> BTreeMap<String, Histogram> {
        let mut all: BTreeMap<String, Histogram> = BTreeMap::new();
        for point in self.of(&format!("{name}_bucket")) {
            let end = point.label("le").and_then(|end| end.parse().ok());
            if let (Some(of), Some(end)) = (point.label(label), end) {
                all.entry(of.to_owned()).or_default().buckets.push((end, point.value));
            }
        }
        for (of, sum) in self.by(&format!("{name}_sum"), label) {
            all.entry(of.to_owned()).or_default().sum = sum;
        }
        for times in all.values_mut() {
            times.buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        all
    }
}

impl MetricPoint {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|label| label.0 == name).map(|label| label.1.as_str())
    }
}

/// Parses a line with a sample.
fn parse(line: &str) -> Option<(String, MetricPoint)> {
    let MetricSample { name, labels, value } = MetricSample::parse(line)?;
    let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Some((name.to_owned(), MetricPoint { labels, value: value.parse().ok()? }))
}

impl Histogram {
    /// Returns the number of durations.
    pub(super) fn count(&self) -> f64 {
        self.buckets.last().map_or(0.0, |bucket| bucket.1)
    }

    /// Returns the durations since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let mut times = self.clone();
        times.sum -= earlier.sum;
        if times.buckets.len() == earlier.buckets.len() {
            let buckets = times.buckets.iter_mut().zip(&earlier.buckets);
            buckets.for_each(|(now, before)| now.1 -= before.1);
        }
        times
    }

    /// Adds a histogram with the same buckets.
    pub(super) fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            let buckets = self.buckets.iter_mut().zip(&other.buckets);
            buckets.for_each(|(sum, one)| sum.1 += one.1);
        }
    }

    /// Returns a quantile in seconds, interpolated within its bucket. `None` without durations.
    pub(super) fn quantile(&self, part: f64) -> Option<f64> {
        let rank = self.count() * part;
        if rank <= 0.0 {
            return None;
        }
        let at = self.buckets.iter().position(|bucket| bucket.1 >= rank)?;
        let (start, below) = at.checked_sub(1).map_or((0.0, 0.0), |at| self.buckets[at]);
        let (end, up_to) = self.buckets[at];
        if end.is_infinite() {
            return Some(start);
        }
        Some(start + (end - start) * (rank - below) / (up_to - below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_their_labels() {
        let text = "# HELP a A.\n# TYPE a gauge\na 1\nb{x=\"1\",y=\"q\\\"\\\\\\n}\"} 2.5e3\n\n\
                    b{x=\"2\", y=\"\",} 3 1700000000000\nc{} +Inf\n# EOF\n";
        let points = Metrics::parse(text).expect("a text");
        assert_eq!(points.value("a"), Some(1.0));
        assert_eq!(points.by("b", "x").collect::<Vec<_>>(), [("1", 2500.0), ("2", 3.0)]);
        assert_eq!(points.label("b", "y"), Some("q\"\\\n}"));
        assert_eq!(points.value("c"), Some(f64::INFINITY));
        assert_eq!((points.value("d"), points.label("a", "x")), (None, None));
    }

    #[test]
    fn invalid_lines_are_errors_with_their_number() {
        for line in ["a", "a{", "a{b} 1", "a{b=\"c} 1", "a b", "a 1 b", "a 1 2 3", "{} 1", "<html>"]
        {
            let problem = Metrics::parse(&format!("a 1\n{line}\n")).expect_err(line);
            assert!(problem.starts_with("GET /metrics: line 2: expected a metric"), "{problem}");
        }
        let long = Metrics::parse(&"x".repeat(10_000)).expect_err("no metric");
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let text = "t_bucket{of=\"x\",le=\"0.2\"} 50\nt_bucket{of=\"x\",le=\"+Inf\"} 100\n\
                    t_bucket{of=\"x\",le=\"0.1\"} 0\nt_bucket{of=\"x\",le=\"0.4\"} 99\n\
                    t_sum{of=\"x\"} 20\nt_count{of=\"x\"} 100\n";
        let times = &Metrics::parse(text).expect("a text").histograms_by("t", "of")["x"];
        assert!((times.count() - 100.0).abs() < 1e-9 && (times.sum - 20.0).abs() < 1e-9);
        for (part, expected) in [(0.25, 0.15), (0.5, 0.2), (0.99, 0.4), (1.0, 0.4)] {
            let found = times.quantile(part).expect("a time");
            assert!((found - expected).abs() < 1e-9, "{part}: {found}");
        }
        assert_eq!(times.since(times).quantile(0.5), None);
        assert_eq!(Histogram::default().quantile(0.5), None);
        let mut twice = times.clone();
        twice.add(times);
        assert_eq!(twice.quantile(0.5), times.quantile(0.5));
        assert_eq!(twice.since(times), *times);
    }
}
