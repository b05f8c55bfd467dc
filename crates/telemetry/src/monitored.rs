//! A source of metrics together with the counters of the exporter.

use nuthatch_listen::{LiveReport, MetricsFormat, MetricsSource};

/// The end of a text in OpenMetrics.
const END: &str = "# EOF\n";

/// A source of metrics, followed by the counters of the exporter if there is one.
pub struct Monitored<S> {
    pub(crate) source: S,
    pub(crate) own: Option<Box<dyn Fn() -> String + Send + Sync>>,
}

impl<S: MetricsSource> MetricsSource for Monitored<S> {
    fn metrics(&self, format: MetricsFormat) -> String {
        let mut text = self.source.metrics(format);
        if let Some(own) = &self.own {
            if text.ends_with(END) {
                text.truncate(text.len() - END.len());
            }
            text.push_str(&format.convert(&own()));
        }
        text
    }

    fn is_stopping(&self) -> bool {
        self.source.is_stopping()
    }

    fn problem(&self) -> Option<String> {
        self.source.problem()
    }

    fn live(&self) -> LiveReport {
        self.source.live()
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
    fn own_counters_follow_in_both_formats() {
        let own = || "# TYPE b_total counter\nb_total 2\n".to_owned();
        let all = Monitored { source: Source, own: Some(Box::new(own)) };
        let prometheus = "# TYPE a gauge\na 1\n# TYPE b_total counter\nb_total 2\n";
        assert_eq!(all.metrics(MetricsFormat::Prometheus), prometheus);
        let open = "# TYPE a gauge\na 1\n# TYPE b counter\nb_total 2\n# EOF\n";
        assert_eq!(all.metrics(MetricsFormat::OpenMetrics), open);
        let alone = Monitored { source: Source, own: None };
        assert_eq!(alone.metrics(MetricsFormat::Prometheus), "# TYPE a gauge\na 1\n");
    }
}
