//! A range as a stream of bytes.

use crate::error::Result;
use bytes::Bytes;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes of an object, in order. Ends after the first error. Dropping it puts an end to what it
/// fetches ahead.
#[derive(Debug)]
pub struct ByteStream {}

impl ByteStream {
    /// The next bytes, never none of them; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(None)
    }
}
