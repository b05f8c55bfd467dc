//! Origins: HTTP servers, object stores and files, behind one interface.

mod clients;
mod file;
mod http;
mod last_status;
mod metadata;
mod response;
mod store;
mod store_client;

pub(crate) use clients::{Clients, plain};
pub use store_client::{StoreClient, store_client, store_failure};

pub(crate) use metadata::{Head, OpenedVersion, RangeResponse, Stamp};

use crate::error::Error;
use crate::retry::Fault;
use bytes::Bytes;
use file::{FileBody, FileOrigin};
use http::{HttpBody, HttpOrigin};
use std::ops::Range;
use store::{StoreBody, StoreOrigin};

/// The origin of one object.
#[derive(Debug)]
pub(crate) enum Origin {
    Http(HttpOrigin),
    Store(StoreOrigin),
    File(FileOrigin),
    /// An origin that must not be contacted.
    Offline,
}

/// The body of a response.
pub(crate) enum Body {
    Http(HttpBody),
    Store(StoreBody),
    File(FileBody),
}

impl Origin {
    /// Requests the version of the object. Returns the body if the length is unknown.
    pub(crate) async fn head(&self) -> Result<(Head, Option<Body>), Fault> {
        match self {
            Self::Http(origin) => {
                let (head, body) = origin.head().await?;
                Ok((head, body.map(Body::Http)))
            }
            Self::Store(origin) => Ok((origin.head().await?, None)),
            Self::File(origin) => Ok((origin.head().await?, None)),
            Self::Offline => Err(Error::closed().into()),
        }
    }

    /// Requests a range, which is not empty and within the object.
    pub(crate) async fn get(
        &self,
        range: Range<u64>,
        opened: &OpenedVersion,
    ) -> Result<RangeResponse<Body>, Fault> {
        match self {
            Self::Http(origin) => {
                let ranged = origin.get(range, opened).await?;
                Ok(ranged.map_body(Body::Http))
            }
            Self::Store(origin) => {
                let ranged = origin.get(range, opened).await?;
                Ok(ranged.map_body(Body::Store))
            }
            Self::File(origin) => {
                let ranged = origin.get(range, opened).await?;
                Ok(ranged.map_body(Body::File))
            }
            Self::Offline => {
                let missing = format!("bytes {}-{} are not in the cache", range.start, range.end);
                Err(Error::Offline { address: opened.address.clone(), missing }.into())
            }
        }
    }
}

impl Body {
    /// Returns the next bytes, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        match self {
            Self::Http(body) => body.next().await,
            Self::Store(body) => body.next().await,
            Self::File(body) => body.next().await,
        }
    }
}
