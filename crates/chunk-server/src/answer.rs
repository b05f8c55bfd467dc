//! Requests, and their answers.

use crate::body::{Content, boundary, content_range};
use crate::conditions::{Verdict, Version};
use crate::figures::Open;
use crate::kept::cache_status;
use crate::ranges::{Wanted, wanted};
use crate::server::Shared;
use http::header::{
    ACCEPT_RANGES, AGE, ALLOW, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, RANGE, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode};
use nuthatch_origins::{ChunkedObject, Error};
use std::fmt::Display;
use std::future::Future;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tracing::{debug, warn};

/// What the cache had of an answer: RFC 9211.
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// What an object is of which the origin does not say more.
const ANY_TYPE: &str = "application/octet-stream";

const LATE: &str = "the origin does not answer in time";

/// An answer without an object: a status and a text.
#[derive(Debug)]
struct Refusal(StatusCode, &'static str);

/// The credentials that the client of a connection has sent.
#[derive(Default)]
pub(crate) struct Shown {
    certificates: Option<Vec<CertificateDer<'static>>>,
    /// The token of the last request.
    token: Mutex<Option<Vec<u8>>>,
}

impl Shown {
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

/// Answers a request. Its body is not read.
pub(crate) async fn answer<B>(
    shared: &Shared,
    request: Request<B>,
    shown: &Shown,
) -> Response<Content> {
    let open = Open::request(shared.clone());
    let head = request.method() == Method::HEAD;
    let answered = whole_answer(shared, &request, shown).await;
    let response = answered.unwrap_or_else(|refusal| refusal.response());
    debug!(
        target: "nuthatch::chunks", method = %request.method(),
        status = response.status().as_u16(), "answered"
    );
    open.tally().answered(response.status().as_u16());
    response.map(|content| {
        let content = if head { content.without_bytes() } else { content };
        content.counted(open)
    })
}

async fn whole_answer<B>(
    shared: &Shared,
    request: &Request<B>,
    shown: &Shown,
) -> Result<Response<Content>, Refusal> {
    admit(shared, request.headers(), shown)?;
    let (method, uri) = (request.method(), request.uri());
    if method != Method::GET && method != Method::HEAD {
        return Err(Refusal(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD"));
    }
    if uri.authority().is_some() {
        let text = "expected a path: this is a cache of one origin, and no proxy";
        return Err(Refusal(StatusCode::BAD_REQUEST, text));
    }
    let address = shared.prefix.join(uri.path(), uri.query());
    let address = address.map_err(|problem| Refusal(StatusCode::BAD_REQUEST, problem))?;
    let headers = request.headers();
    let attempt = || attempt(shared, &address, method, headers);
    if let Some(answered) = in_time(shared.origin_within, attempt).await {
        return answered.map_err(|error| refusal(shared, &error));
    }
    shared.warn("late", &LATE);
    Err(Refusal(StatusCode::GATEWAY_TIMEOUT, LATE))
}

/// Asks what an object is, and waits for the first bytes of the answer.
async fn attempt(
    shared: &Shared,
    address: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response<Content>, Error> {
    let object = shared.cache.object_as(address, &shared.credentials().access).await?;
    let mut response = of_object(&object, method, headers).await;
    if method != Method::HEAD {
        response.body_mut().begin().await?;
    }
    Ok(response)
}

/// Attempts something, and once more if the object changed between the question what it is and its
/// first bytes. `None` if all of that takes longer than it may.
async fn in_time<T, F: Future<Output = Result<T, Error>>>(
    limit: Duration,
    attempt: impl Fn() -> F,
) -> Option<Result<T, Error>> {
    let attempts = async {
        match attempt().await {
            Err(Error::Changed { .. }) => attempt().await,
            answered => answered,
        }
    };
    timeout(limit, attempts).await.ok()
}

/// Refuses a request without a token that is admitted.
fn admit(shared: &Shared, headers: &HeaderMap, shown: &Shown) -> Result<(), Refusal> {
    let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let token = header.split_at_checked(7);
    let token = token.filter(|(word, _)| word.eq_ignore_ascii_case(b"bearer "));
    let token = token.map(|(_, token)| token.trim_ascii());
    // Before it is looked up, so that a token which is removed meanwhile closes the connection.
    *shown.lock_token() = token.map(<[u8]>::to_vec);
    if shared.credentials().admits(token) {
        return Ok(());
    }
    Err(Refusal(StatusCode::UNAUTHORIZED, "expected the header Authorization: Bearer TOKEN"))
}

/// What is told to clients of an error. More is in the log: it may be nobody else's business what
/// the origin is called.
fn refusal(shared: &Shared, error: &Error) -> Refusal {
    let (status, text) = match error {
        Error::NotFound { .. } => {
            return Refusal(StatusCode::NOT_FOUND, "there is no such object");
        }
        Error::Address { .. } => {
            return Refusal(StatusCode::BAD_REQUEST, "there can be no such object");
        }
        Error::Denied { .. } => (StatusCode::FORBIDDEN, "the origin does not allow it"),
        Error::Status { status: 429 | 503, .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "the origin has too much to do")
        }
        Error::Status { status: 504, .. } => (StatusCode::GATEWAY_TIMEOUT, LATE),
        Error::Unreachable { .. } | Error::Status { .. } | Error::Answer { .. } => {
            (StatusCode::BAD_GATEWAY, "the origin cannot be read")
        }
        Error::Offline { .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "the cache does not have it, and asks no origin")
        }
        Error::Changed { .. } => (StatusCode::BAD_GATEWAY, "the object is being changed"),
        Error::Setup { .. } => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the cache is not set up as it ought to be")
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "the cache cannot be used"),
    };
    shared.warn(error.code(), error);
    Refusal(status, text)
}

impl Shared {
    /// Logs why a request was not answered, unless too many were logged for the same kind of error.
    fn warn(&self, kind: &'static str, reason: &dyn Display) {
        if let Some(unlogged) = self.log_limit.admit(kind, Instant::now()) {
            let origin = &self.prefix;
            warn!(target: "nuthatch::chunks", %origin, %reason, unlogged, "not answered");
        }
    }
}

impl Refusal {
    fn response(&self) -> Response<Content> {
        let content = Content::text(format!("{}\n", self.1));
        let mut response = response(self.0, content);
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

fn response(status: StatusCode, content: Content) -> Response<Content> {
    let len = content.len();
    let mut response = Response::new(content);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_LENGTH, len.into());
    response
}

/// The answer to a request for an object that there is.
async fn of_object(
    object: &ChunkedObject,
    method: &Method,
    headers: &HeaderMap,
) -> Response<Content> {
    let version = Version::new(object.etag(), object.modified());
    let len = object.len();
    let mut response = match version.judge(headers) {
        Verdict::Failed => response(StatusCode::PRECONDITION_FAILED, Content::empty()),
        Verdict::NotModified => {
            let mut response = response(StatusCode::NOT_MODIFIED, Content::empty());
            response.headers_mut().remove(CONTENT_LENGTH);
            response
        }
        verdict => {
            let named = headers.get(RANGE).map(HeaderValue::as_bytes);
            // Ranges are those of GET alone.
            let named = named.filter(|_| verdict == Verdict::Answer && method == Method::GET);
            let wanted = named.map_or(Wanted::All, |header| wanted(header, len));
            with_bytes(object, wanted).await
        }
    };
    describe(response.headers_mut(), &version);
    if let Some(age) = object.stale_age() {
        set(response.headers_mut(), AGE, &age.as_secs().to_string());
    }
    response
}

/// An answer with the bytes that are wanted.
async fn with_bytes(object: &ChunkedObject, wanted: Wanted) -> Response<Content> {
    let kind = object.content_type().and_then(|kind| HeaderValue::from_str(kind).ok());
    let kind = kind.unwrap_or(HeaderValue::from_static(ANY_TYPE));
    let len = object.len();
    let (ranges, mut response) = match wanted {
        Wanted::Nothing => {
            let mut response = response(StatusCode::RANGE_NOT_SATISFIABLE, Content::empty());
            set(response.headers_mut(), CONTENT_RANGE, &format!("bytes */{len}"));
            return response;
        }
        Wanted::All => {
            let all = 0..len;
            (vec![all.clone()], response(StatusCode::OK, Content::range(object, all)))
        }
        Wanted::Some(ranges) => (ranges.clone(), partial(object, ranges, &kind)),
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
) -> Response<Content> {
    let status = StatusCode::PARTIAL_CONTENT;
    if let [range] = &ranges[..] {
        let told = content_range(range, object.len());
        let mut response = response(status, Content::range(object, range.clone()));
        set(response.headers_mut(), CONTENT_RANGE, &told);
        return response;
    }
    let (boundary, kind) = (boundary(), kind.to_str().unwrap_or(ANY_TYPE));
    let content = Content::ranges(object, ranges, &boundary, kind);
    let mut response = response(status, content);
    let kind = format!("multipart/byteranges; boundary={boundary}");
    set(response.headers_mut(), CONTENT_TYPE, &kind);
    response
}

/// What answers tell of every object.
fn describe(headers: &mut HeaderMap, version: &Version) {
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Some(etag) = &version.etag {
        set(headers, ETAG, etag);
    }
    if let Some(modified) = version.modified {
        set(headers, LAST_MODIFIED, &httpdate::fmt_http_date(modified));
    }
}

/// Adds a header, unless its value cannot be one.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// What comes of attempts that take so long, and find the object changed each time.
    async fn after(each: Duration) -> Option<Result<(), Error>> {
        let attempt = || async {
            // The clock goes on as soon as nothing else does.
            let _ = timeout(each, pending::<()>()).await;
            let (was, is) = ("one".to_owned(), "two".to_owned());
            Err(Error::Changed { address: "a".to_owned(), was, is })
        };
        in_time(Duration::from_mins(1), attempt).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_attempt_has_no_time_of_its_own() {
        let twice = after(Duration::from_secs(29)).await;
        assert!(matches!(twice, Some(Err(Error::Changed { .. }))), "{twice:?}");
        assert!(after(Duration::from_secs(31)).await.is_none());
    }
}
