//! Responses of origins about an object, and the comparison of versions.

use crate::error::{Error, Result};
use std::ops::Range;
use std::time::SystemTime;

/// The response of an origin about an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// The length in bytes; `None` if only reading to the end reveals it.
    pub(crate) len: Option<u64>,
    pub(crate) stamp: Stamp,
    /// Identifies this version: equal validators mean equal bytes. `None` if the origin sends none.
    pub(crate) validator: Option<String>,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) content_type: Option<String>,
    /// Whether the origin supports ranges; otherwise each response has the whole object.
    pub(crate) ranges: bool,
    /// The seconds for which the origin allows a stale version while it is unavailable.
    pub(crate) stale_if_error: Option<u64>,
}

/// The headers of each response that differ between versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) etag: Option<String>,
    /// The time of modification as the origin wrote it.
    pub(crate) modified: Option<String>,
}

impl Stamp {
    /// Returns whether a response with this stamp has the version of the other one. A strong tag
    /// suffices; a weak one may stay the same when bytes change, so the time is compared too.
    pub(crate) fn matches(&self, opened: &Self) -> bool {
        match opened.strong_tag() {
            Some(tag) => self.etag.as_deref() == Some(tag),
            None => self == opened,
        }
    }

    /// Returns the tag if it is strong.
    pub(super) fn strong_tag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|tag| !is_weak(tag))
    }

    /// Returns a text for errors.
    pub(crate) fn describe(&self) -> String {
        match (self.strong_tag(), &self.etag, &self.modified) {
            (Some(tag), ..) => tag.to_owned(),
            (None, Some(weak), Some(time)) => format!("{weak} of {time}"),
            (None, Some(only), None) | (None, None, Some(only)) => only.clone(),
            (None, None, None) => "a version without any validator".into(),
        }
    }
}

/// The version that each response is compared with.
#[derive(Clone, Debug)]
pub(crate) struct OpenedVersion {
    pub(crate) address: String,
    pub(crate) len: u64,
    pub(crate) stamp: Stamp,
}

impl OpenedVersion {
    /// Returns the error for a response with another version.
    pub(crate) fn changed(&self, is: impl Into<String>) -> Error {
        Error::Changed { address: self.address.clone(), was: self.stamp.describe(), is: is.into() }
    }

    /// Checks that a response has this version.
    pub(crate) fn check(&self, stamp: &Stamp, len: Option<u64>) -> Result<()> {
        if !stamp.matches(&self.stamp) {
            return Err(self.changed(stamp.describe()));
        }
        match len {
            Some(len) if len != self.len => {
                Err(self.changed(format!("{len} bytes long, not {}", self.len)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for a response with this version that does not fit the request.
    pub(crate) fn unexpected(
        &self,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Error {
        let (expected, found) = (expected.into(), found.into());
        Error::Response { address: self.address.clone(), expected, found }
    }
}

/// A response to a request for a range.
pub(crate) struct RangeResponse<B> {
    /// The range that it contains: it may begin before the requested range, and end before its end.
    pub(crate) range: Range<u64>,
    pub(crate) body: B,
}

fn is_weak(tag: &str) -> bool {
    tag.starts_with("W/") || tag.starts_with("w/")
}

impl<B> RangeResponse<B> {
    pub(super) fn map_body<T>(self, map: impl FnOnce(B) -> T) -> RangeResponse<T> {
        RangeResponse { range: self.range, body: map(self.body) }
    }
}
