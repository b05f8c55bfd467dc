//! Objects that are read through the cache.

pub(crate) mod blocking;
pub(crate) mod coverage;
mod cursor;
pub(crate) mod stream;

use crate::clock::now;
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::reading::range_reader::RangeReader;
use crate::reading::version::Version;
use crate::reading::window::ReadAhead;
use bytes::{Bytes, BytesMut};
use cursor::Cursor;
use nuthatch_chunks::Key;
use std::future::poll_fn;
use std::io::{self, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use stream::ByteStream;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};

/// An object that is read through the cache, in the version that it had when it was opened.
///
/// Clones share the version and the counts. With the traits of tokio, a clone begins to read at the
/// start of the object. Sequential reading fetches ahead; seeking and dropping end that.
#[derive(Debug)]
pub struct ChunkedObject {
    pub(crate) version: Arc<Version>,
    pub(crate) cursor: Cursor,
}

impl Clone for ChunkedObject {
    fn clone(&self) -> Self {
        Self::new(self.version.clone())
    }
}

impl ChunkedObject {
    pub(crate) fn new(version: Arc<Version>) -> Self {
        Self { version, cursor: Cursor::new(false) }
    }

    /// Returns the length of the object in bytes.
    pub fn len(&self) -> u64 {
        self.version.len()
    }

    /// Returns whether the object is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the address without secrets: see [`plain_address`](crate::plain_address).
    pub fn address(&self) -> &str {
        &self.version.opened.address
    }

    /// Returns the validator, which identifies this version and is a part of the key in the cache.
    /// `None` if the origin reports none.
    pub fn validator(&self) -> Option<&str> {
        self.version.head.validator.as_deref()
    }

    /// Returns the `ETag` with its quotes, if the origin sent one.
    pub fn etag(&self) -> Option<&str> {
        self.version.head.stamp.etag.as_deref()
    }

    /// Returns the time of the last modification, if the origin reported it.
    pub fn modified(&self) -> Option<SystemTime> {
        self.version.head.modified
    }

    /// Returns the content type, if the origin reported it.
    pub fn content_type(&self) -> Option<&str> {
        self.version.head.content_type.as_deref()
    }

    /// Returns the key in the cache. `None` if the object is not cached: there is no validator, or
    /// its address is too long for a key.
    pub fn key(&self) -> Option<&Key> {
        self.version.cached().map(|cached| &cached.key)
    }

    /// Returns whether the object was opened in a recorded version that its origin did not confirm:
    /// the origin was unavailable, or [`Settings::offline`](crate::Settings::offline) forbids
    /// requests to it.
    pub fn is_stale(&self) -> bool {
        self.version.stale_since().is_some()
    }

    /// Returns how long ago the origin confirmed the version, with a precision of one minute, or
    /// `None` if the object is not [stale](Self::is_stale).
    pub fn stale_age(&self) -> Option<Duration> {
        Some(now().duration_since(self.version.stale_since()?).unwrap_or_default())
    }

    /// Returns the counts of reads through this handle, its clones and its blocking objects.
    pub fn counts(&self) -> Counts {
        self.version.tally().counts()
    }

    /// Reads from an offset until the buffer is full or the object ends. Returns the number of
    /// bytes; 0 at the end of the object or behind it.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Changed`] if the origin has another version of the object by now, with
    /// [`Error::Offline`] if bytes are missing in the cache and the origin must not be contacted,
    /// and with the error of the origin if a request fails after all retries. The content of `out`
    /// is unspecified then.
    pub async fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let range = self.version.within(offset, out.len());
        let mut reader = self.demanded(range, false)?;
        let mut filled = 0;
        while let Some(bytes) = poll_fn(|context| reader.poll_next(context)).await {
            let bytes = bytes?;
            out[filled..filled + bytes.len()].copy_from_slice(&bytes);
            filled += bytes.len();
        }
        Ok(filled)
    }

    /// Reads a range into a new buffer.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Range`] if the range is reversed or ends beyond the object; otherwise as
    /// [`read_at`](Self::read_at).
    pub async fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        self.check(&range)?;
        let len = range.end - range.start;
        let mut reader = self.demanded(range, false)?;
        let mut all = BytesMut::new();
        while let Some(bytes) = poll_fn(|context| reader.poll_next(context)).await {
            let bytes = bytes?;
            if bytes.len() as u64 == len {
                return Ok(bytes);
            }
            all.reserve(len as usize - all.len());
            all.extend_from_slice(&bytes);
        }
        Ok(all.freeze())
    }

    /// Returns a range as a stream, in pieces of up to a block. Fetches ahead as far as the
    /// settings allow, but not beyond the range.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Range`] if the range is reversed or ends beyond the object, and with
    /// [`Error::Setup`] if the cache is closed or belongs to the parent process. The items of the
    /// stream fail as [`read_at`](Self::read_at).
    pub fn stream(&self, range: Range<u64>) -> Result<ByteStream> {
        self.check(&range)?;
        let ahead = ReadAhead::growing(self.version.engine.settings.read_ahead);
        Ok(ByteStream::new(RangeReader::new(&self.version, range, ahead, false)?))
    }

    /// Begins to read a range of which the reader needs every byte.
    pub(crate) fn demanded(&self, range: Range<u64>, may_block: bool) -> Result<RangeReader> {
        let settings = &self.version.engine.settings;
        let ahead = ReadAhead::fixed(settings.read_ahead.max(settings.max_request_len));
        RangeReader::new(&self.version, range, ahead, may_block)
    }

    fn check(&self, range: &Range<u64>) -> Result<()> {
        let (start, end, len) = (range.start, range.end, self.len());
        if start > end || end > len {
            return Err(Error::Range { start, end, len });
        }
        Ok(())
    }
}

impl AsyncRead for ChunkedObject {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { version, cursor } = self.get_mut();
        cursor.poll_read(version, context, out)
    }
}

impl AsyncSeek for ChunkedObject {
    fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        let Self { version, cursor } = self.get_mut();
        cursor.seek(version, to).map(drop)
    }

    fn poll_complete(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.cursor.position()))
    }
}
