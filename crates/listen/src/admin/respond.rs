//! Requests to the admin endpoint and their responses.

use crate::exposition::MetricsFormat;
use crate::metrics_source::MetricsSource;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

const INDEX: &str = "<!doctype html>
<html lang=\"en\">
<title>Nuthatch</title>
<h1>Nuthatch</h1>
<ul>
<li><a href=\"/metrics\">/metrics</a>: metrics for Prometheus</li>
<li><a href=\"/healthz\">/healthz</a>: health: 200, or 503 while it stops or is unhealthy</li>
</ul>
";

/// Returns the response to a request. The body of the request is not read.
pub(super) fn respond<B>(
    request: &Request<B>,
    source: &dyn MetricsSource,
) -> Response<Full<Bytes>> {
    let page = match request.uri().path() {
        "/" => Page::new(HTML, INDEX),
        "/metrics" => {
            let format = preferred_format(request.headers());
            Page::new(format.content_type(), source.metrics(format))
        }
        "/healthz" if source.is_stopping() => Page::unavailable("stopping"),
        "/healthz" => match source.problem() {
            Some(problem) => Page::unavailable(&problem),
            None => Page::new(TEXT, "ok\n"),
        },
        _ => {
            let text = "not found: expected /, /metrics or /healthz\n";
            Page { status: StatusCode::NOT_FOUND, ..Page::new(TEXT, text) }
        }
    };
    let read = [Method::GET, Method::HEAD].contains(request.method());
    if read || page.status == StatusCode::NOT_FOUND {
        return page.response();
    }
    let refusal = Page::new(TEXT, "method not allowed: expected GET or HEAD\n");
    let refusal = Page { status: StatusCode::METHOD_NOT_ALLOWED, ..refusal };
    let mut response = refusal.response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

/// A response with a text.
struct Page {
    status: StatusCode,
    content_type: &'static str,
    text: Bytes,
}

impl Page {
    fn new(content_type: &'static str, text: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type, text: text.into() }
    }

    fn unavailable(reason: &str) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self { status, ..Self::new(TEXT, format!("{reason}\n")) }
    }

    fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Returns the metrics format that the `Accept` headers prefer: OpenMetrics if it is named and no
/// other format has a higher weight.
fn preferred_format(headers: &HeaderMap) -> MetricsFormat {
    let (mut open, mut text) = (0.0, 0.0);
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut weight, mut known) = (1.0_f64, true);
        for part in parts {
            match part.split_once('=') {
                Some(("q", q)) => weight = q.trim().parse().unwrap_or(0.0),
                Some(("version", version)) if kind == "application/openmetrics-text" => {
                    known = ["1.0.0", "0.0.1"].contains(&version.trim_matches('"'));
                }
                _ => {}
            }
        }
        match kind.as_str() {
            "application/openmetrics-text" if known => open = weight.max(open),
            "text/plain" | "text/*" | "*/*" => text = weight.max(text),
            _ => {}
        }
    }
    if open > 0.0 && open >= text { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_format_is_used() {
        use MetricsFormat::{OpenMetrics, Prometheus};
        for (accept, expected) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/html", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text; version=1.0.0; q=0.5, text/plain; q=0.2", OpenMetrics),
            ("application/openmetrics-text;version=0.0.1,text/plain;q=0.5", OpenMetrics),
            ("application/openmetrics-text;q=0.2,text/plain;version=0.0.4;q=0.5", Prometheus),
            ("application/openmetrics-text;version=2.0.0", Prometheus),
            ("application/openmetrics-text;q=0", Prometheus),
            ("application/openmetrics-text;q=much", Prometheus),
            (";;q=,,=", Prometheus),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(preferred_format(&headers), expected, "{accept}");
        }
        assert_eq!(preferred_format(&HeaderMap::new()), Prometheus);
    }
}
