//! Origins that speak HTTP.
//!
//! Each request forbids encodings and names the version, and its response is compared with both:
//! the client notices a server that ignores ranges, conditions or encodings. Redirects are followed
//! here, so that credentials for one host are not sent to another.

use super::metadata::{Head, OpenedVersion, RangeResponse, Stamp};
use super::response::{self, ContentRange, refused};
use crate::access::{self, Access};
use crate::address::HttpPlace;
use crate::error::{Error, Result};
use crate::netrc::Netrc;
use crate::retry::Fault;
use crate::settings::Settings;
use bytes::Bytes;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
    IF_UNMODIFIED_SINCE, LOCATION, RANGE,
};
use reqwest::{Client, Response, StatusCode, redirect};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use url::{Host, Url};

/// The maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 10;

/// An object on an HTTP server.
pub(crate) struct HttpOrigin {
    http: Arc<Http>,
    place: HttpPlace,
    headers: HeaderMap,
    /// The address without secrets.
    address: String,
}

impl fmt::Debug for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOrigin").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What all HTTP objects share.
pub(super) struct Http {
    /// Does not decode bodies or follow redirects.
    client: Client,
    netrc: Netrc,
}

impl Http {
    pub(super) fn new(settings: &Settings) -> Result<Self> {
        Ok(Self { client: client(settings)?, netrc: Netrc::load(&settings.netrc)? })
    }
}

fn client(settings: &Settings) -> Result<Client> {
    Client::builder()
        .user_agent(concat!("nuthatch/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .connect_timeout(settings.connect_timeout)
        .build()
        .map_err(|error| Error::setup("the HTTP client", reason(error)))
}

impl HttpOrigin {
    pub(super) fn new(
        http: Arc<Http>,
        mut place: HttpPlace,
        access: &Access,
        address: &str,
    ) -> Result<Self> {
        let mut headers = HeaderMap::new();
        for (number, (name, value)) in access.headers.iter().enumerate() {
            // The error does not show the name either: the caller may have mixed up name and value.
            let address = || format!("header {}", number + 1);
            let unexpected = |expected| Error::Address { address: address(), expected };
            let (name, mut value) = access::parse(name, value).map_err(unexpected)?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        if headers.contains_key(AUTHORIZATION) {
            // Credentials of the caller take precedence; a request has only one `Authorization`.
            place.user = None;
        } else if place.user.is_none() && is_private(&place.url) {
            place.user = place.url.host_str().and_then(|host| http.netrc.of(host));
        }
        Ok(Self { http, place, headers, address: address.to_owned() })
    }

    /// Requests the first byte. The response has the same information as `HEAD`, and is allowed for
    /// addresses that are only signed for reading.
    pub(super) async fn head(&self) -> Result<(Head, Option<HttpBody>), Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, HeaderValue::from_static("bytes=0-0"));
        let response = self.send(&headers).await?;
        let head = response::head(response.headers());
        let range = response::content_range(response.headers());
        match (response.status(), range) {
            (StatusCode::PARTIAL_CONTENT, Some(ContentRange { range: Some(range), len })) => {
                self.check_encoding(&response)?;
                if range.start != 0 {
                    return Err(self.unexpected("the first byte", format!("{range:?}")).into());
                }
                if len.is_none() {
                    // The server supports ranges but reports no length: the whole body is needed.
                    let response = self.send(&HeaderMap::new()).await?;
                    return self.whole(response);
                }
                Ok((Head { len, ranges: true, ..head }, None))
            }
            (StatusCode::PARTIAL_CONTENT, _) => {
                Err(self.unexpected("a valid Content-Range", "none").into())
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(ContentRange { len: Some(0), .. })) => {
                Ok((Head { len: Some(0), ranges: true, ..head }, None))
            }
            // Some servers respond to the first byte of an empty object with 416, without a length.
            (StatusCode::RANGE_NOT_SATISFIABLE, _) => {
                let response = self.send(&HeaderMap::new()).await?;
                self.whole(response)
            }
            _ => self.whole(response),
        }
    }

    /// Returns the head of a response, with its body if the length is unknown.
    fn whole(&self, response: Response) -> Result<(Head, Option<HttpBody>), Fault> {
        // Responses with errors may be encoded.
        if response.status() != StatusCode::OK {
            return Err(refused(response.status(), response.headers(), &self.address));
        }
        self.check_encoding(&response)?;
        let head = response::head(response.headers());
        let len = response::content_length(response.headers());
        let body = len.is_none().then(|| HttpBody(response));
        Ok((Head { len, ranges: false, ..head }, body))
    }

    pub(super) async fn get(
        &self,
        range: Range<u64>,
        opened: &OpenedVersion,
    ) -> Result<RangeResponse<HttpBody>, Fault> {
        let mut headers = HeaderMap::new();
        let last = range.end - 1;
        insert(&mut headers, RANGE, &format!("bytes={}-{last}", range.start));
        match (opened.stamp.strong_tag(), &opened.stamp.modified) {
            (Some(tag), _) => insert(&mut headers, IF_MATCH, tag),
            (None, Some(time)) => insert(&mut headers, IF_UNMODIFIED_SINCE, time),
            (None, None) => {}
        }
        let response = self.send(&headers).await?;
        let (status, stamp) = (response.status(), response::stamp(response.headers()));
        let said = response::content_range(response.headers());
        let found = match status {
            StatusCode::PARTIAL_CONTENT => {
                opened.check(&stamp, said.as_ref().and_then(|said| said.len))?;
                let found = said.and_then(|said| said.range);
                let matches =
                    |found: &Range<u64>| found.start == range.start && found.end <= range.end;
                let unexpected =
                    || opened.unexpected(format!("bytes {range:?}"), format!("{found:?}"));
                found.clone().filter(matches).ok_or_else(unexpected)?
            }
            StatusCode::OK => {
                opened.check(&stamp, response::content_length(response.headers()))?;
                0..opened.len
            }
            StatusCode::PRECONDITION_FAILED => {
                let unnamed = stamp == Stamp::default();
                let is = if unnamed { "another version".into() } else { stamp.describe() };
                return Err(opened.changed(is).into());
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let len = said.and_then(|said| said.len).filter(|len| *len != opened.len);
                let unexpected = || opened.unexpected(format!("bytes {range:?}"), "no such range");
                let changed = |len| opened.changed(format!("{len} bytes long"));
                return Err(len.map_or_else(unexpected, changed).into());
            }
            _ => return Err(refused(status, response.headers(), &self.address)),
        };
        self.check_encoding(&response)?;
        Ok(RangeResponse { range: found, body: HttpBody(response) })
    }

    /// Sends a request and follows redirects.
    async fn send(&self, headers: &HeaderMap) -> Result<Response, Fault> {
        let mut url = self.place.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.http.client.get(url.clone()).headers(headers.clone());
            request = request.header(ACCEPT_ENCODING, "identity");
            if same_host(&url, &self.place.url) {
                request = request.headers(self.headers.clone());
                // The context of the current span, if traces are exported.
                for (name, value) in nuthatch_trace_context::headers() {
                    request = request.header(name, value);
                }
                if let Some((user, password)) = &self.place.user {
                    request = request.basic_auth(user, password.as_ref());
                }
            }
            let response = request.send().await.map_err(|error| self.broken(error))?;
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| url.join(to).ok());
            let to = to.filter(|to| matches!(to.scheme(), "http" | "https"));
            let Some(to) = to else {
                return Err(self
                    .unexpected("a redirect to an http or https address", "another Location")
                    .into());
            };
            if url.scheme() == "https" && to.scheme() == "http" {
                return Err(self
                    .unexpected("a redirect to an https address", "one to http")
                    .into());
            }
            url = to;
        }
        Err(self.unexpected(format!("at most {MAX_REDIRECTS} redirects"), "more").into())
    }

    fn check_encoding(&self, response: &Response) -> Result<()> {
        match response::encoding(response.headers()) {
            Some(encoding) => {
                Err(self.unexpected("a plain body", format!("one encoded as {encoding}")))
            }
            None => Ok(()),
        }
    }

    fn unexpected(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        let (expected, found) = (expected.into(), found.into());
        Error::Response { address: self.address.clone(), expected, found }
    }

    fn broken(&self, error: reqwest::Error) -> Fault {
        if refuses_certificate(&error) {
            let (address, reason) = (self.address.clone(), reason(error));
            return Error::Unreachable { address, reason, attempts: 1 }.into();
        }
        broken(error)
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // The value comes from a header or consists of digits.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Returns whether the connection is encrypted or stays on this machine.
fn is_private(url: &Url) -> bool {
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    here || url.scheme() == "https"
}

fn same_host(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host_str() == other.host_str()
        && one.port_or_known_default() == other.port_or_known_default()
}

fn broken(error: reqwest::Error) -> Fault {
    let what = if error.is_connect() {
        "cannot connect"
    } else if error.is_timeout() {
        "timed out"
    } else {
        "the connection was lost"
    };
    Fault::broken(format!("{what}: {}", reason(error)))
}

/// Returns why a request failed, without the address that the client adds, which may have secrets.
fn reason(error: reqwest::Error) -> String {
    innermost(&error.without_url())
}

/// Returns the innermost error, which has the reason; the outer ones say where it happened.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns whether the TLS handshake failed, so that a retry cannot succeed.
fn refuses_certificate(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut error = Some(error);
    while let Some(inner) = error {
        let io = inner.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData) {
            return true;
        }
        // `source` does not return the error that an I/O error contains.
        let made_of = io.and_then(std::io::Error::get_ref);
        error = made_of.map(|error| error as _).or_else(|| inner.source());
    }
    false
}

/// The unread rest of a response.
pub(crate) struct HttpBody(Response);

impl HttpBody {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        self.0.chunk().await.map_err(broken)
    }
}
