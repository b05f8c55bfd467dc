//! An object that is read through the cache.

use crate::blocking::BlockingObject;
use crate::cache::ObjectCache;
use crate::counts::Counts;
use crate::error::Result;
use crate::stream::ByteStream;
use bytes::Bytes;
use nuthatch_chunks::Key;
use std::io::{self, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};

/// An object that is read through the cache, in the version that it had when it was opened.
///
/// A clone shares what was found out when it was opened, and its counts; as a reader with tokio's
/// traits it begins at the start of the object. Sequential reading fetches ahead; seeking and
/// dropping put an end to that.
#[derive(Clone, Debug)]
pub struct ChunkedObject {
    len: u64,
    address: String,
}

impl ChunkedObject {
    /// Opens an object through [`ObjectCache::shared`].
    pub async fn open(address: &str) -> Result<Self> {
        ObjectCache::shared()?.object(address).await
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address without secrets: see [`plain_address`](crate::plain_address).
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What tells this version of it from others, as it is a part of the key in the cache. `None`
    /// if the origin says nothing of that kind.
    pub fn validator(&self) -> Option<&str> {
        None
    }

    /// Its `ETag`, with its quotes, if the origin gave one.
    pub fn etag(&self) -> Option<&str> {
        None
    }

    /// When it was last modified, if the origin said so.
    pub fn modified(&self) -> Option<SystemTime> {
        None
    }

    /// What kind of data the origin says it is.
    pub fn content_type(&self) -> Option<&str> {
        None
    }

    /// Its key in the cache. `None` if nothing of it is kept: there is no validator, or its address
    /// is too long for a key.
    pub fn key(&self) -> Option<&Key> {
        None
    }

    /// What was read of it, by this handle and its clones.
    pub fn counts(&self) -> Counts {
        Counts::default()
    }

    /// Reads from an offset on until the buffer is full or the object ends. Answers how many bytes
    /// that were; none from the end on.
    pub async fn read_at(&self, _offset: u64, _out: &mut [u8]) -> Result<usize> {
        Ok(0)
    }

    /// Reads a range into a buffer of its own.
    pub async fn bytes(&self, _range: Range<u64>) -> Result<Bytes> {
        Ok(Bytes::new())
    }

    /// A range as a stream, in pieces of up to a block. Fetches ahead as far as the settings allow,
    /// and no further than the range.
    pub fn stream(&self, _range: Range<u64>) -> Result<ByteStream> {
        Ok(ByteStream {})
    }

    /// The same object for threads, from the start.
    #[must_use]
    pub fn blocking(&self) -> BlockingObject {
        BlockingObject::new(self.clone())
    }
}

impl AsyncRead for ChunkedObject {
    fn poll_read(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for ChunkedObject {
    fn start_seek(self: Pin<&mut Self>, _to: SeekFrom) -> io::Result<()> {
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(0))
    }
}
