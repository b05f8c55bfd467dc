//! The bytes of a range in order, from the cache, the origin or memory.

use crate::counts::Count;
use crate::error::Result;
use crate::reading::passthrough::Passthrough;
use crate::reading::version::{ByteSource, Version};
use crate::reading::window::{ReadAhead, Window};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Reads the bytes of a range in order. Dropping it ends its requests, unless other readers wait
/// for them.
#[derive(Debug)]
pub(crate) enum RangeReader {
    Window(Box<Window>),
    Passthrough(Passthrough),
    /// Bytes in memory.
    Ready(Bytes),
}

impl RangeReader {
    /// Begins to read a range of an object. `may_block` is whether the polling thread may read
    /// files itself.
    pub(crate) fn new(
        version: &Arc<Version>,
        range: Range<u64>,
        ahead: ReadAhead,
        may_block: bool,
    ) -> Result<Self> {
        if range.is_empty() {
            return Ok(Self::Ready(Bytes::new()));
        }
        Ok(match &version.source {
            ByteSource::Cached(cached) => {
                let window = Window::new(version.clone(), cached.clone(), range, ahead, may_block);
                Self::Window(Box::new(window))
            }
            ByteSource::Passthrough(cause) => {
                Self::Passthrough(Passthrough::begin(version, range, *cause)?)
            }
            ByteSource::InMemory(bytes) => {
                version.count(Count::FromOrigin, range.end - range.start);
                Self::Ready(bytes.slice(range.start as usize..range.end as usize))
            }
        })
    }

    /// Returns the next bytes, at least one, or `None` at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        match self {
            Self::Window(window) => window.poll_next(context),
            Self::Passthrough(direct) => direct.poll_next(context),
            Self::Ready(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Ready(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
        }
    }

    /// Continues at an offset, if that needs no new request. Returns whether it did.
    pub(crate) fn skip_to(&mut self, to: u64) -> bool {
        match self {
            Self::Window(window) => window.skip_to(to),
            Self::Passthrough(_) | Self::Ready(_) => false,
        }
    }
}
