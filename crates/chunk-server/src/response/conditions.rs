//! Conditions of a request: whether the object has the version that they name.

use http::HeaderMap;
use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of an object, as responses name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    /// The entity tag, with its quotes.
    pub(crate) etag: Option<String>,
    /// The time of modification in whole seconds, the precision of headers.
    pub(crate) modified: Option<SystemTime>,
}

/// How the server responds to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// With the object, or with the ranges that the request names.
    Answer,
    /// With the whole object: the ranges are for another version.
    Whole,
    /// With 304: the client has this version.
    NotModified,
    /// With 412: the request is for another version.
    Failed,
}

impl Version {
    pub(crate) fn new(etag: Option<&str>, modified: Option<SystemTime>) -> Self {
        Self { etag: etag.map(str::to_owned), modified: modified.and_then(whole_seconds) }
    }

    /// Evaluates the conditions of a request in the order of RFC 9110.
    pub(crate) fn judge(&self, headers: &HeaderMap) -> Verdict {
        let unless_matched = headers.contains_key(IF_NONE_MATCH);
        if headers.contains_key(IF_MATCH) {
            if !self.is_among(headers, &IF_MATCH, strong) {
                return Verdict::Failed;
            }
        } else if let Some(date) = date(headers, &IF_UNMODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified > date)
        {
            return Verdict::Failed;
        }
        if unless_matched {
            if self.is_among(headers, &IF_NONE_MATCH, weak) {
                return Verdict::NotModified;
            }
        } else if let Some(date) = date(headers, &IF_MODIFIED_SINCE)
            && self.modified.is_some_and(|modified| modified <= date)
        {
            return Verdict::NotModified;
        }
        if self.suits_ranges(headers) { Verdict::Answer } else { Verdict::Whole }
    }

    /// Returns whether a header has the tag of this version; `*` is any version.
    fn is_among(
        &self,
        headers: &HeaderMap,
        name: &HeaderName,
        same: fn(&[u8], &[u8]) -> bool,
    ) -> bool {
        let mut tags = headers.get_all(name).iter().flat_map(|value| tags(value.as_bytes()));
        tags.any(|tag| match &self.etag {
            _ if tag == b"*" => true,
            Some(own) => same(tag, own.as_bytes()),
            None => false,
        })
    }

    /// Returns whether the ranges are for this version: there is no `If-Range`, or it names it.
    fn suits_ranges(&self, headers: &HeaderMap) -> bool {
        let Some(named) = headers.get(IF_RANGE) else { return true };
        match named.as_bytes() {
            tag @ ([b'"', ..] | [b'W', b'/', ..]) => {
                self.etag.as_ref().is_some_and(|own| strong(tag, own.as_bytes()))
            }
            _ => date(headers, &IF_RANGE).is_some_and(|date| self.modified == Some(date)),
        }
    }
}

fn whole_seconds(time: SystemTime) -> Option<SystemTime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(since.as_secs()))
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

/// Returns whether two tags are strong and equal.
fn strong(one: &[u8], other: &[u8]) -> bool {
    one == other && !one.starts_with(b"W/")
}

/// Returns whether two tags are equal, weak or strong.
fn weak(one: &[u8], other: &[u8]) -> bool {
    opaque(one) == opaque(other)
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Returns the tags of a list, up to the first invalid one. Tags may contain commas.
fn tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        rest = &rest[start..];
        let len = if rest.starts_with(b"*") {
            1
        } else {
            let quoted = rest.len() - opaque(rest).len();
            let inner = rest[quoted..].strip_prefix(b"\"")?;
            quoted + 2 + inner.iter().position(|byte| *byte == b'"')?
        };
        let (tag, after) = rest.split_at(len);
        rest = after;
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Answer, Failed, NotModified, Whole};
    use http::HeaderValue;

    const EARLY: &str = "Mon, 02 Jan 2023 03:04:04 GMT";
    const THEN: &str = "Mon, 02 Jan 2023 03:04:05 GMT";
    const LATE: &str = "Mon, 02 Jan 2023 03:04:06 GMT";

    #[track_caller]
    fn judged(version: &Version, headers: &[(HeaderName, &str)], expected: Verdict) {
        let header = |(name, value): &(HeaderName, &str)| {
            (name.clone(), HeaderValue::from_str(value).expect("a value"))
        };
        assert_eq!(version.judge(&headers.iter().map(header).collect()), expected, "{headers:?}");
    }

    fn version(etag: &str) -> Version {
        let then = httpdate::parse_http_date(THEN).expect("a date") + Duration::from_millis(300);
        Version::new(Some(etag), Some(then))
    }

    #[test]
    fn tags_decide() {
        let strong = version("\"a,b\"");
        judged(&strong, &[], Answer);
        judged(&strong, &[(IF_MATCH, "\"x\", \"a,b\"")], Answer);
        judged(&strong, &[(IF_MATCH, "*")], Answer);
        judged(&strong, &[(IF_MATCH, "W/\"a,b\"")], Failed);
        judged(&strong, &[(IF_MATCH, "\"a\",b\"")], Failed);
        judged(&strong, &[(IF_MATCH, "nonsense")], Failed);
        judged(&strong, &[(IF_NONE_MATCH, "W/\"a,b\"")], NotModified);
        judged(&strong, &[(IF_NONE_MATCH, " ,\"x\",\"a,b\"")], NotModified);
        judged(&strong, &[(IF_NONE_MATCH, "*")], NotModified);
        judged(&strong, &[(IF_NONE_MATCH, "\"x\"")], Answer);
        judged(&strong, &[(IF_NONE_MATCH, "\"a,b")], Answer);
        judged(&strong, &[(IF_RANGE, "\"a,b\"")], Answer);
        judged(&strong, &[(IF_RANGE, "\"x\"")], Whole);
        let weak = version("W/\"a\"");
        judged(&weak, &[(IF_MATCH, "W/\"a\"")], Failed);
        judged(&weak, &[(IF_NONE_MATCH, "\"a\"")], NotModified);
        judged(&weak, &[(IF_RANGE, "W/\"a\"")], Whole);
        let nameless = Version::default();
        judged(&nameless, &[(IF_NONE_MATCH, "\"a\"")], Answer);
        judged(&nameless, &[(IF_MATCH, "\"a\"")], Failed);
        judged(&nameless, &[(IF_RANGE, "\"a\"")], Whole);
    }

    #[test]
    fn times_decide_where_no_tags_are_named() {
        let version = version("\"a\"");
        judged(&version, &[(IF_MODIFIED_SINCE, EARLY)], Answer);
        judged(&version, &[(IF_MODIFIED_SINCE, THEN)], NotModified);
        judged(&version, &[(IF_MODIFIED_SINCE, LATE)], NotModified);
        judged(&version, &[(IF_MODIFIED_SINCE, "yesterday")], Answer);
        judged(&version, &[(IF_MODIFIED_SINCE, LATE), (IF_NONE_MATCH, "\"x\"")], Answer);
        judged(&version, &[(IF_UNMODIFIED_SINCE, EARLY)], Failed);
        judged(&version, &[(IF_UNMODIFIED_SINCE, THEN)], Answer);
        judged(&version, &[(IF_UNMODIFIED_SINCE, EARLY), (IF_MATCH, "\"a\"")], Answer);
        judged(&version, &[(IF_RANGE, THEN)], Answer);
        judged(&version, &[(IF_RANGE, LATE)], Whole);
        judged(&version, &[(IF_RANGE, "yesterday")], Whole);
        judged(&Version::default(), &[(IF_MODIFIED_SINCE, LATE)], Answer);
        judged(&Version::default(), &[(IF_RANGE, THEN)], Whole);
    }
}
