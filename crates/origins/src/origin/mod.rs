//! Origins: who has the bytes, behind one interface for all kinds of them.

mod answer;
mod file;
mod http;
mod listening;
mod store;

use crate::access::Access;
use crate::address::{Address, Place};
use crate::attempts::Fault;
use crate::error::{Error, Result};
use crate::settings::Settings;
use bytes::Bytes;
use http::Http;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

pub(crate) use file::FileOrigin;
pub(crate) use http::HttpOrigin;
pub(crate) use store::{StoreOrigin, Stores};

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
    fn strong_tag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|tag| !answer::is_weak(tag))
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

/// Who has the bytes of one object.
#[derive(Debug)]
pub(crate) enum Origin {
    Http(HttpOrigin),
    Store(StoreOrigin),
    File(FileOrigin),
    /// One that must not be asked.
    Offline,
}

/// Bytes as they come.
pub(crate) enum Body {
    Http(http::HttpBody),
    Store(store::StoreBody),
    File(file::FileBody),
}

/// An answer to a request for a range.
pub(crate) struct Ranged {
    /// Which bytes it says it has: they may begin before the range, and end before it.
    pub(crate) range: Range<u64>,
    pub(crate) body: Body,
}

/// The clients that all objects of a cache share.
pub(crate) struct Clients {
    /// Made when it is first needed: that reads files, such as the certificates of the machine.
    http: OnceLock<Arc<Http>>,
    stores: Stores,
    settings: Settings,
}

/// The address in the form that keys have.
pub(crate) fn plain(address: Address) -> String {
    match address.place {
        Place::Store(place) => format!("{}/{}", store::located(&place), place.name),
        Place::Http(_) | Place::File(_) => address.plain,
    }
}

impl Clients {
    pub(crate) fn new(settings: &Settings) -> Self {
        let (http, stores) = (OnceLock::new(), Stores::new(settings));
        Self { http, stores, settings: settings.clone() }
    }

    /// Whether the origin of an object can be made without reading files.
    pub(crate) fn ready_for(&self, place: &Place) -> bool {
        match place {
            Place::Http(_) => self.http.get().is_some(),
            Place::Store(_) => false,
            Place::File(_) => true,
        }
    }

    fn http(&self) -> Result<&Arc<Http>> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        let http = Arc::new(Http::new(&self.settings)?);
        Ok(self.http.get_or_init(|| http))
    }

    /// The origin of an address, and the address in the form that keys have. May read files, of
    /// certificates and credentials.
    pub(crate) fn origin(&self, address: Address, access: &Access) -> Result<(Origin, String)> {
        let Address { place, plain } = address;
        Ok(match place {
            Place::Http(place) => {
                let origin = HttpOrigin::new(self.http()?.clone(), place, access, &plain)?;
                (Origin::Http(origin), plain)
            }
            Place::Store(place) => {
                let (origin, plain) = self.stores.origin(&place, &plain)?;
                (Origin::Store(origin), plain)
            }
            Place::File(path) => (Origin::File(FileOrigin::new(path, plain.clone())), plain),
        })
    }
}

impl Origin {
    /// Asks what the object is. The body is there if its length is not.
    pub(crate) async fn head(&self) -> Result<(Head, Option<Body>), Fault> {
        match self {
            Self::Http(origin) => origin.head().await,
            Self::Store(origin) => Ok((origin.head().await?, None)),
            Self::File(origin) => Ok((origin.head().await?, None)),
            Self::Offline => Err(Error::closed().into()),
        }
    }

    /// Asks for a range that is not empty and lies within the object.
    pub(crate) async fn get(&self, range: Range<u64>, opened: &Opened) -> Result<Ranged, Fault> {
        match self {
            Self::Http(origin) => origin.get(range, opened).await,
            Self::Store(origin) => origin.get(range, opened).await,
            Self::File(origin) => origin.get(range, opened).await,
            Self::Offline => {
                let missing = format!("bytes {}-{} are not in the cache", range.start, range.end);
                Err(Error::Offline { address: opened.address.clone(), missing }.into())
            }
        }
    }
}

impl Body {
    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        match self {
            Self::Http(body) => body.next().await,
            Self::Store(body) => body.next().await,
            Self::File(body) => body.next().await,
        }
    }
}
