//! Reads the head of an HTTP response.

use super::metadata::{Head, Stamp};
use crate::clock::now;
use crate::error::Error;
use crate::retry::{Cause, Fault};
use crate::status::{is_transient, stale_if_error};
use reqwest::StatusCode;
use reqwest::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG,
    HeaderMap, HeaderName, LAST_MODIFIED, RETRY_AFTER,
};
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// How much older than the response a time of modification must be to identify a version: it has
/// whole seconds, so two writes within one second have the same.
const SETTLED: Duration = Duration::from_secs(2);

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(super) fn stamp(headers: &HeaderMap) -> Stamp {
    Stamp { etag: text(headers, ETAG), modified: text(headers, LAST_MODIFIED) }
}

/// The range that a response contains, and the length of the object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// `None` if the requested range cannot be satisfied.
    pub(super) range: Option<Range<u64>>,
    pub(super) len: Option<u64>,
}

pub(super) fn content_range(headers: &HeaderMap) -> Option<ContentRange> {
    parse_content_range(&text(headers, CONTENT_RANGE)?)
}

fn parse_content_range(value: &str) -> Option<ContentRange> {
    let (range, len) = value.strip_prefix("bytes")?.trim_start().split_once('/')?;
    let len = if len.trim() == "*" { None } else { Some(len.trim().parse().ok()?) };
    if range.trim() == "*" {
        return Some(ContentRange { range: None, len });
    }
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let end = last.checked_add(1).filter(|end| *end > first && *end <= len.unwrap_or(u64::MAX))?;
    Some(ContentRange { range: Some(first..end), len })
}

pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    text(headers, CONTENT_LENGTH)?.parse().ok()
}

/// Returns the encoding of the body, or `None` if it is not encoded.
pub(super) fn encoding(headers: &HeaderMap) -> Option<String> {
    text(headers, CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
}

/// Parses the headers, except the length and the support of ranges.
pub(super) fn head(headers: &HeaderMap) -> Head {
    let stamp = stamp(headers);
    let parsed = |text: &Option<String>| httpdate::parse_http_date(text.as_deref()?).ok();
    let modified = parsed(&stamp.modified);
    let date = parsed(&text(headers, DATE)).unwrap_or_else(now);
    Head {
        validator: validator(&stamp, modified, date),
        stamp,
        modified,
        content_type: text(headers, CONTENT_TYPE),
        stale_if_error: text(headers, CACHE_CONTROL).and_then(|value| stale_if_error(&value)),
        ..Head::default()
    }
}

/// Returns the validator of a version. A strong tag is a validator. A weak tag can be the same for
/// different bytes, so it is one only together with the time of the last change. Such a time is one
/// if it is long enough ago.
fn validator(stamp: &Stamp, modified: Option<SystemTime>, date: SystemTime) -> Option<String> {
    let settled = || {
        let age = date.duration_since(modified?).ok()?;
        stamp.modified.as_ref().filter(|_| age >= SETTLED)
    };
    match (stamp.strong_tag(), &stamp.etag) {
        (Some(tag), _) => Some(tag.to_owned()),
        (None, Some(weak)) => Some(format!("{weak} {}", settled()?)),
        (None, None) => settled().cloned(),
    }
}

/// Returns the fault that an error status means.
pub(super) fn refused(status: StatusCode, headers: &HeaderMap, address: &str) -> Fault {
    refused_by_number(status.as_u16(), retry_after(headers), address)
}

/// Returns the fault that an error status means, if nothing but the status is known.
pub(super) fn refused_by_number(status: u16, after: Option<Duration>, address: &str) -> Fault {
    let address = address.to_owned();
    match status {
        401 | 403 | 407 => Error::Denied { address, reason: format!("status {status}") }.into(),
        404 | 410 => Error::NotFound { address }.into(),
        status if is_transient(status) => {
            Fault::Transient { cause: Cause::Status(status), retry_after: after }
        }
        _ => Error::Status { address, status, attempts: 1 }.into(),
    }
}

/// Parses `Retry-After`: how long to wait before the next request.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = text(headers, RETRY_AFTER)?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = httpdate::parse_http_date(&value).ok()?;
    Some(time.duration_since(now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_with_care() {
        let of = |range, len| Some(ContentRange { range, len });
        assert_eq!(parse_content_range("bytes 0-0/10"), of(Some(0..1), Some(10)));
        assert_eq!(parse_content_range("bytes 5-9/*"), of(Some(5..10), None));
        assert_eq!(parse_content_range("bytes */7"), of(None, Some(7)));
        let bad = ["", "bytes", "bytes 1-0/5", "bytes 0-5/5", "bytes -1/5", "bytes 0-x/5", "0-1/5"];
        for value in bad.into_iter().chain(["bytes 0-18446744073709551615/*"]) {
            assert_eq!(parse_content_range(value), None, "{value}");
        }
    }

    #[test]
    fn a_validator_tells_bytes_apart_or_is_none() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let text = httpdate::fmt_http_date(time);
        let of = |etag: Option<&str>, modified: bool, age| {
            let modified_text = modified.then(|| text.clone());
            let stamp = Stamp { etag: etag.map(Into::into), modified: modified_text };
            validator(&stamp, modified.then_some(time), time + Duration::from_secs(age))
        };
        assert_eq!(of(Some("\"a\""), true, 0).as_deref(), Some("\"a\""));
        assert_eq!(of(Some("W/\"a\""), false, 60), None);
        assert_eq!(of(Some("W/\"a\""), true, 60), Some(format!("W/\"a\" {text}")));
        assert_eq!(of(Some("W/\"a\""), true, 1), None);
        assert_eq!(of(None, true, 60), Some(text.clone()));
        assert_eq!(of(None, true, 1), None);
        assert_eq!(of(None, false, 60), None);
    }

    #[test]
    fn statuses_that_pass_are_told_from_those_that_stay() {
        for status in [408, 425, 429, 500, 502, 503, 504, 529] {
            let fault = refused_by_number(status, None, "a");
            assert!(matches!(fault, Fault::Transient { .. }), "{status}: {fault:?}");
        }
        for status in [301, 304, 400, 401, 403, 404, 405, 410, 416, 418, 501, 505] {
            let fault = refused_by_number(status, None, "a");
            assert!(matches!(fault, Fault::Permanent(_)), "{status}: {fault:?}");
        }
    }
}
