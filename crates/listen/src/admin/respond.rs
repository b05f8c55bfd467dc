//! Requests to the admin endpoint and their responses.

use super::access::{Access, TokenCheck};
use super::live::{LiveCache, Privacy};
use super::origin::{self, Audience, Refusal};
use super::page_files;
use super::refusals::Cause;
use crate::exposition::MetricsFormat;
use crate::metrics_source::MetricsSource;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use std::time::Instant;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Nothing is loaded from other hosts, no page of another site may embed this one, and no script
/// may make HTML from text.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                              img-src 'self'; connect-src 'self'; base-uri 'none'; \
                              form-action 'none'; frame-ancestors 'none'; \
                              require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of all responses.
const HEADERS: [(HeaderName, &str); 7] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// What the responses of an endpoint depend on.
pub(super) struct Site<'a> {
    pub(super) source: &'a dyn MetricsSource,
    pub(super) access: &'a Access,
    pub(super) live: &'a LiveCache,
    /// Whether the request came from the network. No browser uses a socket file.
    pub(super) is_network: bool,
}

/// Returns the response to a request. The body of the request is not read.
pub(super) fn respond<B>(request: &Request<B>, site: &Site<'_>) -> Response<Full<Bytes>> {
    if site.is_network
        && let Some(audience) = audience(request.uri().path())
        && let Err(refusal) = origin::check(request, site.access, audience)
    {
        site.access.note_refused(match refusal {
            Refusal::Host(_) => Cause::Host,
            Refusal::CrossSite => Cause::CrossSite,
        });
        return Page::refused(&refusal).response();
    }
    let page = page(request, site);
    let read = [Method::GET, Method::HEAD].contains(request.method());
    if read || page.status == StatusCode::NOT_FOUND {
        return page.response();
    }
    let refusal = Page::new(TEXT, "method not allowed: expected GET or HEAD\n");
    let refusal = Page { status: StatusCode::METHOD_NOT_ALLOWED, ..refusal };
    refusal.with(ALLOW, "GET, HEAD").response()
}

/// Returns which requests for a path are checked; `None` if there is nothing at it.
fn audience(path: &str) -> Option<Audience> {
    match path {
        "/metrics" | "/healthz" => Some(Audience::Programs),
        "/live.json" => Some(Audience::People),
        path => page_files::find(path).map(|_| Audience::People),
    }
}

fn page<B>(request: &Request<B>, site: &Site<'_>) -> Page {
    let source = site.source;
    match request.uri().path() {
        "/metrics" => {
            let format = preferred_format(request.headers());
            Page::new(format.content_type(), source.metrics(format))
        }
        "/healthz" if source.is_stopping() => Page::unavailable("stopping"),
        "/healthz" => match source.problem() {
            Some(problem) => Page::unavailable(&problem),
            None => Page::new(TEXT, "ok\n"),
        },
        "/live.json" => live(request.headers(), site),
        path => {
            let text = "not found: expected /, /metrics, /healthz or /live.json\n";
            let absent = || Page { status: StatusCode::NOT_FOUND, ..Page::new(TEXT, text) };
            let file = page_files::find(path);
            file.map_or_else(absent, |file| Page::new(file.content_type, file.text))
        }
    }
}

/// Returns the report of the live page, with private values if the request has the token.
fn live(headers: &HeaderMap, site: &Site<'_>) -> Page {
    let now = Instant::now();
    let privacy = match headers.get(AUTHORIZATION).map(HeaderValue::as_bytes) {
        None => Privacy::Hidden,
        Some(value) => match site.access.check(bearer_token(value).unwrap_or_default(), now) {
            TokenCheck::Accepted => Privacy::Shown,
            TokenCheck::Wrong => {
                site.access.note_refused(Cause::WrongToken);
                let expected = if site.access.has_token() {
                    "the one of the admin token file"
                } else {
                    "none, since the server has no admin token file"
                };
                let text = format!("wrong token: expected {expected}\n");
                let page = Page { status: StatusCode::UNAUTHORIZED, ..Page::new(TEXT, text) };
                return page.with(WWW_AUTHENTICATE, "Bearer");
            }
            TokenCheck::TooMany => {
                site.access.note_refused(Cause::TooManyTokens);
                let text = "too many wrong tokens: try again in 10 seconds\n";
                let status = StatusCode::TOO_MANY_REQUESTS;
                return Page { status, ..Page::new(TEXT, text) }.with(RETRY_AFTER, "10");
            }
        },
    };
    let shown = (privacy, site.access.has_token());
    Page::new(JSON, site.live.json(site.source, shown, now))
}

/// Returns the token of an `Authorization` header.
fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// A response with a text.
struct Page {
    status: StatusCode,
    content_type: &'static str,
    text: Bytes,
    header: Option<(HeaderName, &'static str)>,
}

impl Page {
    fn new(content_type: &'static str, text: impl Into<Bytes>) -> Self {
        Self { status: StatusCode::OK, content_type, text: text.into(), header: None }
    }

    fn unavailable(reason: &str) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self { status, ..Self::new(TEXT, format!("{reason}\n")) }
    }

    fn refused(refusal: &Refusal) -> Self {
        let (status, text) = match refusal {
            Refusal::Host(host) => (
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "unknown host: expected localhost, an address, or a name of the setting \
                     admin-host, found {host:?}; if this name is one of the server, add \
                     --admin-host NAME\n"
                ),
            ),
            Refusal::CrossSite => (
                StatusCode::FORBIDDEN,
                "request of another site: expected one of a page of this server; open its address \
                 in the browser\n"
                    .to_owned(),
            ),
        };
        Self { status, ..Self::new(TEXT, text) }
    }

    fn with(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        for (name, value) in HEADERS.into_iter().chain(self.header) {
            headers.insert(name, HeaderValue::from_static(value));
        }
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
