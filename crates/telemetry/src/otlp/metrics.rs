//! Metrics of an exposition as messages of OTLP.
//!
//! Names, labels and values are those of `/metrics`: there is one source. A counter is a cumulative
//! monotonic sum, a histogram has the same bounds.

use super::process::SCOPE;
use nuthatch_listen::MetricSample;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use prost::Message;
use std::time::{SystemTime, UNIX_EPOCH};

/// The times of an export: when the program started, and now.
pub(super) type Times = (SystemTime, SystemTime);

/// Returns the message with the metrics of a text in the Prometheus format, and the number of its
/// points.
pub(super) fn encode(
    text: &str,
    resource: &ResourceAttributesWithSchema,
    times: Times,
) -> (Vec<u8>, u64) {
    let metrics = metrics(text, times);
    let count = metrics.iter().map(points).sum();
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let resource = Resource { attributes: resource.attributes.0.clone(), ..Resource::default() };
    let scope_metrics = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
    let resource_metrics = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![scope_metrics],
        ..ResourceMetrics::default()
    };
    let request = ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] };
    (request.encode_to_vec(), count)
}

fn points(metric: &Metric) -> u64 {
    let points = match &metric.data {
        Some(metric::Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(metric::Data::Sum(sum)) => sum.data_points.len(),
        Some(metric::Data::Histogram(histogram)) => histogram.data_points.len(),
        _ => 0,
    };
    points as u64
}

/// A family of an exposition.
#[derive(Default)]
struct Family<'t> {
    name: &'t str,
    help: &'t str,
    kind: &'t str,
    samples: Vec<MetricSample<'t>>,
}

/// Returns the metrics of a text. Families without samples are left out.
fn metrics(text: &str, times: Times) -> Vec<Metric> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(sample) = MetricSample::parse(line) {
            if let Some(family) = families.last_mut() {
                family.samples.push(sample);
            }
            continue;
        }
        let mut words = line.splitn(4, ' ');
        let (Some("#"), Some(word), Some(name), rest) =
            (words.next(), words.next(), words.next(), words.next().unwrap_or_default())
        else {
            continue;
        };
        if families.last().is_none_or(|family| family.name != name) {
            families.push(Family { name, ..Family::default() });
        }
        match (word, families.last_mut()) {
            ("HELP", Some(family)) => family.help = rest,
            ("TYPE", Some(family)) => family.kind = rest,
            _ => {}
        }
    }
    families.retain(|family| !family.samples.is_empty());
    families.iter().map(|family| metric(family, nanoseconds(times))).collect()
}

fn metric(family: &Family<'_>, times: (u64, u64)) -> Metric {
    let cumulative = AggregationTemporality::Cumulative as i32;
    let data = match family.kind {
        "counter" => metric::Data::Sum(Sum {
            data_points: numbers(family, times),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        "histogram" => metric::Data::Histogram(Histogram {
            data_points: histograms(family, times),
            aggregation_temporality: cumulative,
        }),
        _ => metric::Data::Gauge(Gauge { data_points: numbers(family, (0, times.1)) }),
    };
    Metric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: unit(family.name).to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

/// Returns the unit of a metric, which is the end of its name.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    }
}

fn numbers(family: &Family<'_>, (start, now): (u64, u64)) -> Vec<NumberDataPoint> {
    let points = family.samples.iter().map(|sample| NumberDataPoint {
        attributes: attributes(&sample.labels),
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(number(sample.value)),
        ..NumberDataPoint::default()
    });
    points.collect()
}

/// Returns a value as an integer if it has no fraction, as in the text.
fn number(text: &str) -> number_data_point::Value {
    let integer = text.parse().map(number_data_point::Value::AsInt);
    integer.unwrap_or_else(|_| number_data_point::Value::AsDouble(double(text)))
}

fn double(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Returns the points of a histogram. In the text, each bucket counts those before it as well.
fn histograms(family: &Family<'_>, (start, now): (u64, u64)) -> Vec<HistogramDataPoint> {
    let mut points: Vec<HistogramDataPoint> = Vec::new();
    let mut below = 0;
    for sample in &family.samples {
        let suffix = sample.name.strip_prefix(family.name).unwrap_or_default();
        let (bound, labels): (Vec<_>, Vec<_>) =
            sample.labels.iter().cloned().partition(|(name, _)| *name == "le");
        let attributes = attributes(&labels);
        if points.last().is_none_or(|point| point.attributes != attributes) {
            below = 0;
            points.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: start,
                time_unix_nano: now,
                ..HistogramDataPoint::default()
            });
        }
        let Some(point) = points.last_mut() else { continue };
        let count = || sample.value.parse::<u64>().unwrap_or_default();
        match (suffix, bound.first()) {
            ("_bucket", Some((_, bound))) => {
                point.bucket_counts.push(count().saturating_sub(below));
                below = count();
                if bound != "+Inf" {
                    point.explicit_bounds.push(double(bound));
                }
            }
            ("_sum", _) => point.sum = Some(double(sample.value)),
            ("_count", _) => point.count = count(),
            _ => {}
        }
    }
    points
}

fn attributes(labels: &[(&str, String)]) -> Vec<KeyValue> {
    let attribute = |(name, value): &(&str, String)| KeyValue {
        key: (*name).to_owned(),
        value: Some(AnyValue { value: Some(any_value::Value::StringValue(value.clone())) }),
        ..KeyValue::default()
    };
    labels.iter().map(attribute).collect()
}

fn nanoseconds((start, now): Times) -> (u64, u64) {
    let since = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    };
    (since(start), since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_listen::{MetricsFormat, MetricsText};
    use std::time::Duration;

    fn times() -> Times {
        (UNIX_EPOCH + Duration::from_secs(1), UNIX_EPOCH + Duration::from_secs(2))
    }

    #[test]
    fn counters_and_gauges_have_the_values_of_the_text() {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        text.counter("a_bytes", "All.").sample(&[("to", "x\"\ny")], 3).sample(&[], u64::MAX);
        text.gauge("b_seconds", "Some.").sample(&[], 0.5);
        text.gauge("c", "None.").by_label("of", [] as [(&str, u64); 0]);
        let metrics = metrics(&text.finish(), times());
        let [a, b] = &metrics[..] else { panic!("{metrics:?}") };
        assert_eq!((&*a.name, &*a.description, &*a.unit), ("a_bytes_total", "All.", "By"));
        let Some(metric::Data::Sum(sum)) = &a.data else { panic!("{a:?}") };
        assert!(sum.is_monotonic);
        assert_eq!(sum.aggregation_temporality, AggregationTemporality::Cumulative as i32);
        let [first, second] = &sum.data_points[..] else { panic!("{sum:?}") };
        assert_eq!(first.value, Some(number_data_point::Value::AsInt(3)));
        assert_eq!(first.attributes, attributes(&[("to", "x\"\ny".to_owned())]));
        assert_eq!(
            (first.start_time_unix_nano, first.time_unix_nano),
            (10_u64.pow(9), 2 * 10_u64.pow(9))
        );
        // Beyond the integers of the protocol.
        assert_eq!(second.value, Some(number_data_point::Value::AsDouble(u64::MAX as f64)));
        assert_eq!(b.unit, "s");
        let Some(metric::Data::Gauge(gauge)) = &b.data else { panic!("{b:?}") };
        assert_eq!(gauge.data_points[0].value, Some(number_data_point::Value::AsDouble(0.5)));
    }

    #[test]
    fn buckets_of_histograms_do_not_add_up() {
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        let mut family = text.histogram("t_seconds", "Times.");
        let buckets = [(128, 5), (256, 2), (512, 0), (1024, 1)];
        family.durations(&[("of", "x")], buckets, 900, 7..=9);
        family.durations(&[("of", "y")], [(128, 1)], 100, 7..=9);
        let metrics = metrics(&text.finish(), times());
        let Some(metric::Data::Histogram(histogram)) = &metrics[0].data else { panic!() };
        let [x, y] = &histogram.data_points[..] else { panic!("{histogram:?}") };
        assert_eq!(x.attributes, attributes(&[("of", "x".to_owned())]));
        assert_eq!(x.bucket_counts, [5, 2, 0, 1]);
        assert_eq!(x.explicit_bounds, [0.000_000_128, 0.000_000_256, 0.000_000_512]);
        assert_eq!((x.count, x.sum), (8, Some(0.000_000_9)));
        assert_eq!((&y.bucket_counts[..], y.count), (&[1, 0][..], 1));
        assert_eq!(points(&metrics[0]), 2);
    }
}
