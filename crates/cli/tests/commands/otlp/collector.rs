//! A collector of OpenTelemetry, and an HTTP server with objects, for tests.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// A request that was received.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) path: String,
    /// The headers, with names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// What the server answers: a status, or nothing at all.
type Answer = dyn Fn(&Request, usize) -> Option<(u16, String)> + Send + Sync;

/// A server on loopback that keeps what it received. Its threads end with the test process.
pub(super) struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Request>>>,
}

/// A span with its attributes as texts.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) span: Span,
    pub(super) attributes: BTreeMap<String, String>,
}

impl Collector {
    /// Starts a collector that accepts everything.
    pub(super) fn start() -> Self {
        Self::with(|_, _| Some((200, String::new())))
    }

    /// Starts a server that answers a request, of which the number is given, with a status and a
    /// body; or not, which leaves the client waiting.
    pub(super) fn with(
        answer: impl Fn(&Request, usize) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::<Mutex<Vec<Request>>>::default();
        let (answer, requests): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&received));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
                let stream = stream.expect("a connection");
                thread::spawn(move || serve(&stream, &requests, &*answer));
            }
        });
        Self { address, received }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn received(&self) -> MutexGuard<'_, Vec<Request>> {
        self.received.lock().expect("no panic")
    }

    /// Returns the messages of a signal.
    fn messages<M: Message + Default>(&self, path: &str) -> Vec<M> {
        let of_signal = |request: &&Request| request.path == path;
        let received = self.received();
        let decode = |request: &Request| M::decode(&request.body[..]).expect("a message");
        received.iter().filter(of_signal).map(decode).collect()
    }

    /// Returns the log records, each with the target and the resource.
    pub(super) fn logs(&self) -> Vec<(String, LogRecord, Resource)> {
        let mut found = Vec::new();
        for message in self.messages::<ExportLogsServiceRequest>("/v1/logs") {
            for resource in message.resource_logs {
                for scope in resource.scope_logs {
                    let target = scope.scope.unwrap_or_default().name;
                    let of = resource.resource.clone().unwrap_or_default();
                    let records = scope.log_records.into_iter();
                    found.extend(records.map(|record| (target.clone(), record, of.clone())));
                }
            }
        }
        found
    }

    /// Returns all spans.
    pub(super) fn spans(&self) -> Vec<Found> {
        let messages = self.messages::<ExportTraceServiceRequest>("/v1/traces").into_iter();
        let resources = messages.flat_map(|message| message.resource_spans);
        let spans = resources.flat_map(|one| one.scope_spans).flat_map(|scope| scope.spans);
        spans.map(|span| Found { attributes: texts(&span.attributes), span }).collect()
    }

    /// Returns the first span with this name.
    pub(super) fn span(&self, name: &str) -> Option<Found> {
        self.spans().into_iter().find(|found| found.span.name == name)
    }

    /// Returns the samples of the last export of metrics, as in the text of Prometheus, and the
    /// metrics.
    pub(super) fn metrics(&self) -> (BTreeMap<String, f64>, Vec<Metric>) {
        let last = self.messages::<ExportMetricsServiceRequest>("/v1/metrics").pop();
        let resources = last.unwrap_or_default().resource_metrics.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_metrics);
        let metrics: Vec<_> = scopes.flat_map(|scope| scope.metrics).collect();
        (metrics.iter().flat_map(samples).collect(), metrics)
    }
}

/// Returns the samples of a metric, as in the text of Prometheus.
fn samples(metric: &Metric) -> Vec<(String, f64)> {
    let name = &metric.name;
    let data = metric.data.as_ref().expect("points");
    let numbers = match data {
        metric::Data::Gauge(gauge) => &gauge.data_points[..],
        metric::Data::Sum(sum) => &sum.data_points[..],
        _ => &[],
    };
    let mut samples = Vec::new();
    for point in numbers {
        let value = match point.value.expect("a value") {
            number_data_point::Value::AsInt(value) => value as f64,
            number_data_point::Value::AsDouble(value) => value,
        };
        samples.push((format!("{name}{}", labels(&point.attributes, None)), value));
    }
    if let metric::Data::Histogram(histogram) = data {
        for point in &histogram.data_points {
            let mut below = 0;
            let bounds = point.explicit_bounds.iter().map(f64::to_string);
            for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&point.bucket_counts) {
                below += count;
                let labels = labels(&point.attributes, Some(&bound));
                samples.push((format!("{name}_bucket{labels}"), below as f64));
            }
            let labels = labels(&point.attributes, None);
            samples.push((format!("{name}_sum{labels}"), point.sum.expect("a sum")));
            samples.push((format!("{name}_count{labels}"), point.count as f64));
        }
    }
    samples
}

fn labels(attributes: &[KeyValue], bound: Option<&str>) -> String {
    let mut labels = String::new();
    let bound = bound.map(|bound| ("le".to_owned(), bound.to_owned()));
    let all = attributes.iter().map(|one| (one.key.clone(), text(one.value.as_ref())));
    for (name, value) in all.chain(bound) {
        let before = if labels.is_empty() { '{' } else { ',' };
        let _ = write!(labels, "{before}{name}=\"{value}\"");
    }
    if !labels.is_empty() {
        labels.push('}');
    }
    labels
}

/// Returns attributes with their values as texts.
pub(super) fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    attributes.iter().map(|one| (one.key.clone(), text(one.value.as_ref()))).collect()
}

/// Returns a value as text.
pub(super) fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::BoolValue(value)) => value.to_string(),
        other => format!("{other:?}"),
    }
}

/// Responds to the requests of a connection until its end.
fn serve(mut stream: &TcpStream, received: &Mutex<Vec<Request>>, answer: &Answer) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let number = {
            let mut received = received.lock().expect("no panic");
            received.push(request.clone());
            received.len() - 1
        };
        match answer(&request, number) {
            Some((status, rest)) if rest.is_empty() => {
                let _ = write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
            }
            Some((status, rest)) => {
                let _ = write!(stream, "HTTP/1.1 {status} x\r\n{rest}");
            }
            None => {}
        }
    }
}

/// Reads a request. Returns `None` at the end of the connection.
fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut request = Request { path, ..Request::default() };
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let len = request.headers.get("content-length").map_or(0, |len| len.parse().expect("a length"));
    request.body.resize(len, 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
