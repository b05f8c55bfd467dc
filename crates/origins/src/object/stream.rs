//! A range as a stream of bytes.

use crate::error::Result;
use crate::reading::range_reader::RangeReader;
use bytes::Bytes;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The bytes of a range, in order. Ends after the first error. Dropping it ends its read-ahead.
#[derive(Debug)]
pub struct ByteStream(Option<RangeReader>);

impl ByteStream {
    pub(crate) fn new(reader: RangeReader) -> Self {
        Self(Some(reader))
    }

    /// Returns the next bytes, at least one, or `None` at the end of the range and after an error.
    ///
    /// # Errors
    ///
    /// As [`ChunkedObject::read_at`](crate::ChunkedObject::read_at).
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(reader) = &mut self.0 else { return Poll::Ready(None) };
        let next = ready!(reader.poll_next(context));
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(next)
    }
}
