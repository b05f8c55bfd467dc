//! Responses to requests.

pub(crate) mod body;
mod cache_status;
mod conditions;
mod ranges;

use crate::metrics::InFlight;
use crate::site::Shared;
use body::{ResponseBody, boundary, content_range};
use cache_status::cache_status;
use conditions::{Verdict, Version};
use http::header::{
    ACCEPT_RANGES, AGE, ALLOW, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, RANGE, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode};
use nuthatch_origins::{ChunkedObject, Error};
use nuthatch_trace_context::{Instrument, Span};
use ranges::{RequestedRanges, requested_ranges};
use std::fmt::Display;
use std::future::Future;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tracing::field::Empty;
use tracing::{debug, warn};

/// How much of a response came from the cache (RFC 9211).
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// The content type of an object for which the origin reports none.
const DEFAULT_TYPE: &str = "application/octet-stream";

/// The text for a request whose origin did not respond in time.
const LATE: &str = "the origin did not respond in time";

/// A response without an object: a status and a text.
#[derive(Debug)]
struct Refusal(StatusCode, &'static str);

/// The credentials that the client of a connection has sent.
#[derive(Default)]
pub(crate) struct ClientCredentials {
    certificates: Option<Vec<CertificateDer<'static>>>,
    /// The token of the last request.
    token: Mutex<Option<Vec<u8>>>,
}

impl ClientCredentials {
    pub(crate) fn new(certificates: Option<Vec<CertificateDer<'static>>>) -> Self {
        Self { certificates, ..Self::default() }
    }

    pub(crate) fn certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.certificates.as_deref()
    }

    pub(crate) fn token(&self) -> Option<Vec<u8>> {
        self.lock_token().clone()
    }

    fn lock_token(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Responds to a request. The body of the request is not read.
pub(crate) async fn respond<B>(
    shared: &Shared,
    request: Request<B>,
    client: &ClientCredentials,
) -> Response<ResponseBody> {
    let open = InFlight::request(shared.clone());
    let head = request.method() == Method::HEAD;
    let span = request_span(&request);
    let responded = try_respond(shared, &request, client).instrument(span.clone()).await;
    let response = responded.unwrap_or_else(|refusal| refusal.response());
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        span.record("otel.status_code", "error");
    }
    debug!(
        target: "nuthatch::chunks", method = %request.method(),
        status = response.status().as_u16(), "answered"
    );
    open.counters().count_response(response.status().as_u16());
    response.map(|body| {
        let body = if head { body.without_bytes() } else { body };
        body.counted(open).within(span)
    })
}

/// Returns the span of a request, whose parent is that of the client.
fn request_span<B>(request: &Request<B>) -> Span {
    let span = nuthatch_trace_context::span!(
        "chunk request",
        "server",
        otel.status_code = Empty,
        http.request.method = request.method().as_str(),
        url.path = request.uri().path(),
        http.response.status_code = Empty,
    );
    nuthatch_trace_context::set_parent(&span, |name| request.headers().get(name)?.to_str().ok());
    span
}

async fn try_respond<B>(
    shared: &Shared,
    request: &Request<B>,
    client: &ClientCredentials,
) -> Result<Response<ResponseBody>, Refusal> {
    admit(shared, request.headers(), client)?;
    let (method, uri) = (request.method(), request.uri());
    if method != Method::GET && method != Method::HEAD {
        return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD"));
    }
    if uri.authority().is_some() {
        let text = "expected a path: this server caches one origin and is no proxy";
        return Err(Refusal(StatusCode::BAD_REQUEST, text));
    }
    let address = shared.prefix.join(uri.path(), uri.query());
    let address = address.map_err(|problem| Refusal(StatusCode::BAD_REQUEST, problem))?;
    let headers = request.headers();
    let attempt = || attempt(shared, &address, method, headers);
    if let Some(responded) = within_limit(shared.origin_timeout, attempt).await {
        return responded.map_err(|error| refusal(shared, &error));
    }
    shared.warn("late", &LATE);
    Err(Refusal(StatusCode::GATEWAY_TIMEOUT, LATE))
}

/// Opens an object, and waits for the first bytes of the response.
async fn attempt(
    shared: &Shared,
    address: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response<ResponseBody>, Error> {
    let object = shared.cache.object_as(address, &shared.credentials().access).await?;
    let mut response = object_response(&object, method, headers).await;
    if method != Method::HEAD {
        response.body_mut().begin().await?;
    }
    Ok(response)
}

/// Runs `attempt`, and runs it once more if the object changed between its opening and its first
/// bytes. Returns `None` if both attempts together take longer than `limit`.
async fn within_limit<T, F: Future<Output = Result<T, Error>>>(
    limit: Duration,
    attempt: impl Fn() -> F,
) -> Option<Result<T, Error>> {
    let attempts = async {
        match attempt().await {
            Err(Error::Changed { .. }) => attempt().await,
            responded => responded,
        }
    };
    timeout(limit, attempts).await.ok()
}

/// Refuses a request without a valid token.
fn admit(shared: &Shared, headers: &HeaderMap, client: &ClientCredentials) -> Result<(), Refusal> {
    let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let token = header.split_at_checked(7);
    let token = token.filter(|(word, _)| word.eq_ignore_ascii_case(b"bearer "));
    let token = token.map(|(_, token)| token.trim_ascii());
    // Before the check, so that removing the token meanwhile closes the connection.
    *client.lock_token() = token.map(<[u8]>::to_vec);
    if shared.credentials().admits(token) {
        return Ok(());
    }
    Err(Refusal(StatusCode::UNAUTHORIZED, "expected the header Authorization: Bearer TOKEN"))
}

/// Returns the response for an error, and logs the error. The response does not name the origin,
/// which may be confidential.
fn refusal(shared: &Shared, error: &Error) -> Refusal {
    let (status, text) = match error {
        Error::NotFound { .. } => {
            return Refusal(StatusCode::NOT_FOUND, "there is no such object");
        }
        Error::Address { .. } => {
            return Refusal(StatusCode::BAD_REQUEST, "no object can have this address");
        }
        Error::Denied { .. } => (StatusCode::FORBIDDEN, "the origin denied access"),
        Error::Status { status: 429 | 503, .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "the origin is overloaded or limits requests")
        }
        Error::Status { status: 504, .. } => (StatusCode::GATEWAY_TIMEOUT, LATE),
        Error::Unreachable { .. } | Error::Status { .. } | Error::Response { .. } => {
            (StatusCode::BAD_GATEWAY, "the origin failed or sent an invalid response")
        }
        Error::Offline { .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "not in the cache, and the server is offline")
        }
        Error::Changed { .. } => (StatusCode::BAD_GATEWAY, "the object changed during the request"),
        Error::Setup { .. } => {
            let text = "this server is not set up for its origin: see its log";
            (StatusCode::INTERNAL_SERVER_ERROR, text)
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "the cache cannot be used: see the log"),
    };
    shared.warn(error.code(), error);
    Refusal(status, text)
}

impl Shared {
    /// Logs why a request failed, unless too many lines were logged for the same kind of error.
    fn warn(&self, kind: &'static str, reason: &dyn Display) {
        if let Some(unlogged) = self.log_limit.admit(kind, Instant::now()) {
            let origin = &self.prefix;
            warn!(target: "nuthatch::chunks", %origin, %reason, unlogged, "a request failed");
        }
    }
}

impl Refusal {
    fn response(&self) -> Response<ResponseBody> {
        let body = ResponseBody::text(format!("{}\n", self.1));
        let mut response = response(self.0, body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        match self.0 {
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

fn response(status: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    let len = body.len();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_LENGTH, len.into());
    response
}

/// Returns the response to a request for an object that exists.
async fn object_response(
    object: &ChunkedObject,
    method: &Method,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    let version = Version::new(object.etag(), object.modified());
    let len = object.len();
    let mut response = match version.judge(headers) {
        Verdict::Failed => response(StatusCode::PRECONDITION_FAILED, ResponseBody::empty()),
        Verdict::NotModified => {
            let mut response = response(StatusCode::NOT_MODIFIED, ResponseBody::empty());
            response.headers_mut().remove(CONTENT_LENGTH);
            response
        }
        verdict => {
            let named = headers.get(RANGE).map(HeaderValue::as_bytes);
            // Only GET has ranges.
            let named = named.filter(|_| verdict == Verdict::Answer && method == Method::GET);
            let ranges = named.map_or(RequestedRanges::All, |header| requested_ranges(header, len));
            response_with_bytes(object, ranges).await
        }
    };
    describe(response.headers_mut(), &version);
    if let Some(age) = object.stale_age() {
        set(response.headers_mut(), AGE, &age.as_secs().to_string());
    }
    response
}

/// Returns the response with the requested bytes.
async fn response_with_bytes(
    object: &ChunkedObject,
    requested: RequestedRanges,
) -> Response<ResponseBody> {
    let kind = object.content_type().and_then(|kind| HeaderValue::from_str(kind).ok());
    let kind = kind.unwrap_or(HeaderValue::from_static(DEFAULT_TYPE));
    let len = object.len();
    let (ranges, mut response) = match requested {
        RequestedRanges::Unsatisfiable => {
            let mut response = response(StatusCode::RANGE_NOT_SATISFIABLE, ResponseBody::empty());
            set(response.headers_mut(), CONTENT_RANGE, &format!("bytes */{len}"));
            return response;
        }
        RequestedRanges::All => {
            let all = 0..len;
            (vec![all.clone()], response(StatusCode::OK, ResponseBody::range(object, all)))
        }
        RequestedRanges::Some(ranges) => (ranges.clone(), partial(object, ranges, &kind)),
    };
    let headers = response.headers_mut();
    headers.entry(CONTENT_TYPE).or_insert(kind);
    set(headers, CACHE_STATUS, &cache_status(object, ranges).await);
    response
}

fn partial(
    object: &ChunkedObject,
    ranges: Vec<Range<u64>>,
    kind: &HeaderValue,
) -> Response<ResponseBody> {
    let status = StatusCode::PARTIAL_CONTENT;
    if let [range] = &ranges[..] {
        let content_range = content_range(range, object.len());
        let mut response = response(status, ResponseBody::range(object, range.clone()));
        set(response.headers_mut(), CONTENT_RANGE, &content_range);
        return response;
    }
    let (boundary, kind) = (boundary(), kind.to_str().unwrap_or(DEFAULT_TYPE));
    let body = ResponseBody::ranges(object, ranges, &boundary, kind);
    let mut response = response(status, body);
    let kind = format!("multipart/byteranges; boundary={boundary}");
    set(response.headers_mut(), CONTENT_TYPE, &kind);
    response
}

/// Adds the headers that each response about an object has.
fn describe(headers: &mut HeaderMap, version: &Version) {
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(etag) = &version.etag {
        set(headers, ETAG, etag);
    }
    if let Some(modified) = version.modified {
        set(headers, LAST_MODIFIED, &httpdate::fmt_http_date(modified));
    }
}

/// Adds a header, unless its value is not valid in a header.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// Returns the result of attempts that each take `each` and find the object changed.
    async fn after(each: Duration) -> Option<Result<(), Error>> {
        let attempt = || async {
            // The paused clock advances as soon as all tasks wait.
            let _ = timeout(each, pending::<()>()).await;
            let (was, is) = ("one".to_owned(), "two".to_owned());
            Err(Error::Changed { address: "a".to_owned(), was, is })
        };
        within_limit(Duration::from_mins(1), attempt).await
    }

    #[tokio::test(start_paused = true)]
    async fn both_attempts_share_one_limit() {
        let twice = after(Duration::from_secs(29)).await;
        assert!(matches!(twice, Some(Err(Error::Changed { .. }))), "{twice:?}");
        assert!(after(Duration::from_secs(31)).await.is_none());
    }
}
