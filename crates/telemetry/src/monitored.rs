//! A source of metrics together with those of its process and of the exporter.

use nuthatch_listen::{LiveReport, MetricsFormat, MetricsSource};

/// The end of a text in OpenMetrics.
const END: &str = "# EOF\n";

/// A source of metrics, followed by others, each in the format of Prometheus.
pub struct Monitored<S> {
    pub(crate) source: S,
    pub(crate) others: Vec<Box<dyn Fn() -> String + Send + Sync>>,
}

impl<S: MetricsSource> MetricsSource for Monitored<S> {
    fn metrics(&self, format: MetricsFormat) -> String {
        let mut text = self.source.metrics(format);
        for other in &self.others {
            if text.ends_with(END) {
                text.truncate(text.len() - END.len());
            }
            text.push_str(&format.convert(&other()));
        }
        text
    }

    fn is_stopping(&self) -> bool {
        self.source.is_stopping()
    }

    fn live(&self) -> LiveReport {
        self.source.live()
    }

    fn problem(&self) -> Option<String> {
        self.source.problem()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Source;

    impl MetricsSource for Source {
        fn metrics(&self, format: MetricsFormat) -> String {
            format.convert("# TYPE a gauge\na 1\n")
        }

        fn is_stopping(&self) -> bool {
            false
        }
    }

    #[test]
    fn others_follow_in_both_formats() {
        let other = || "# TYPE b_total counter\nb_total 2\n".to_owned();
        let all = Monitored { source: Source, others: vec![Box::new(other)] };
        let prometheus = "# TYPE a gauge\na 1\n# TYPE b_total counter\nb_total 2\n";
        assert_eq!(all.metrics(MetricsFormat::Prometheus), prometheus);
        let open = "# TYPE a gauge\na 1\n# TYPE b counter\nb_total 2\n# EOF\n";
        assert_eq!(all.metrics(MetricsFormat::OpenMetrics), open);
        let alone = Monitored { source: Source, others: Vec::new() };
        assert_eq!(alone.metrics(MetricsFormat::Prometheus), "# TYPE a gauge\na 1\n");
    }
}
