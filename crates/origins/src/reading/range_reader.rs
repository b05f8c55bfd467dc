//! Bytes of a range in order, wherever they come from.

use crate::counts::Count;
use crate::error::Result;
use crate::reading::passthrough::Direct;
use crate::reading::version::{Kind, Version};
use crate::reading::window::{Ahead, Window};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes of a range in order. Dropping it ends what it has under way, unless others wait for it.
#[derive(Debug)]
pub(crate) enum Pieces {
    Window(Box<Window>),
    Direct(Direct),
    /// Bytes that are in memory.
    Ready(Bytes),
}

impl Pieces {
    /// The pieces of a range within an object. `may_wait` says whether the thread that polls does
    /// file work itself.
    pub(crate) fn new(
        version: &Arc<Version>,
        range: Range<u64>,
        ahead: Ahead,
        may_wait: bool,
    ) -> Result<Self> {
        if range.is_empty() {
            return Ok(Self::Ready(Bytes::new()));
        }
        Ok(match &version.kind {
            Kind::Kept(kept) => {
                let window = Window::new(version.clone(), kept.clone(), range, ahead, may_wait);
                Self::Window(Box::new(window))
            }
            Kind::PassedOn(cause) => Self::Direct(Direct::begin(version, range, *cause)?),
            Kind::Whole(bytes) => {
                version.count(Count::FromOrigin, range.end - range.start);
                Self::Ready(bytes.slice(range.start as usize..range.end as usize))
            }
        })
    }

    /// The next bytes, never none of them; `None` at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        match self {
            Self::Window(window) => window.poll_next(context),
            Self::Direct(direct) => direct.poll_next(context),
            Self::Ready(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Ready(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
        }
    }

    /// Goes on at an offset, if that needs nothing new.
    pub(crate) fn skip_to(&mut self, to: u64) -> bool {
        match self {
            Self::Window(window) => window.skip_to(to),
            Self::Direct(_) | Self::Ready(_) => false,
        }
    }
}
