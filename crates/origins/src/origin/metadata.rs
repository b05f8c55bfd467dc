//! What origins say about an object, and the comparison of versions.

use crate::error::{Error, Result};
use std::ops::Range;
use std::time::SystemTime;

/// What an origin said of an object when it was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// How many bytes it has; `None` if only reading it to its end tells.
    pub(crate) len: Option<u64>,
    pub(crate) stamp: Stamp,
    /// What tells this version from any other, byte by byte. `None` if nothing does.
    pub(crate) validator: Option<String>,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) content_type: Option<String>,
    /// Whether ranges of it can be had; otherwise each request brings all of it.
    pub(crate) ranges: bool,
    /// For how long the origin allows this to be used while it cannot be reached, in seconds.
    pub(crate) stale_if_error: Option<u64>,
}

/// What comes with every answer and differs when the object does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) etag: Option<String>,
    /// When it was modified, as the origin wrote it.
    pub(crate) modified: Option<String>,
}

impl Stamp {
    /// Whether an answer with this stamp is of the version with the other one. A strong tag alone
    /// tells; a weak one may stay as it is when bytes change, so it takes the time as well.
    pub(crate) fn fits(&self, opened: &Self) -> bool {
        match opened.strong_tag() {
            Some(tag) => self.etag.as_deref() == Some(tag),
            None => self == opened,
        }
    }

    /// The tag, if no two versions have it.
    pub(super) fn strong_tag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|tag| !is_weak(tag))
    }

    /// For errors.
    pub(crate) fn describe(&self) -> String {
        match (self.strong_tag(), &self.etag, &self.modified) {
            (Some(tag), ..) => tag.to_owned(),
            (None, Some(weak), Some(time)) => format!("{weak} of {time}"),
            (None, Some(only), None) | (None, None, Some(only)) => only.clone(),
            (None, None, None) => "a version without any validator".into(),
        }
    }
}

/// What every range is compared with.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) address: String,
    pub(crate) len: u64,
    pub(crate) stamp: Stamp,
}

impl Opened {
    /// The error of an answer that is of another version.
    pub(crate) fn changed(&self, is: impl Into<String>) -> Error {
        Error::Changed { address: self.address.clone(), was: self.stamp.describe(), is: is.into() }
    }

    /// Compares what came with an answer.
    pub(crate) fn check(&self, stamp: &Stamp, len: Option<u64>) -> Result<()> {
        if !stamp.fits(&self.stamp) {
            return Err(self.changed(stamp.describe()));
        }
        match len {
            Some(len) if len != self.len => {
                Err(self.changed(format!("{len} bytes long, not {}", self.len)))
            }
            _ => Ok(()),
        }
    }

    /// The error of an answer that is of this version, and not what was asked for.
    pub(crate) fn odd(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        let (expected, found) = (expected.into(), found.into());
        Error::Answer { address: self.address.clone(), expected, found }
    }
}

/// An answer to a request for a range.
pub(crate) struct Ranged<B> {
    /// Which bytes it says it has: they may begin before the range, and end before it.
    pub(crate) range: Range<u64>,
    pub(crate) body: B,
}

fn is_weak(tag: &str) -> bool {
    tag.starts_with("W/") || tag.starts_with("w/")
}

impl<B> Ranged<B> {
    pub(super) fn map_body<T>(self, map: impl FnOnce(B) -> T) -> Ranged<T> {
        Ranged { range: self.range, body: map(self.body) }
    }
}
