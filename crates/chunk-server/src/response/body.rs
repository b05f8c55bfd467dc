//! Bodies of responses: texts and ranges of an object, read as fast as the client receives them.

use crate::metrics::{Counters, InFlight};
use crate::site::Shared;
use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use nuthatch_listen::OpenCall;
use nuthatch_origins::{ByteStream, ChunkedObject, Error};
use nuthatch_trace_context::Span;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A part of a body.
enum Part {
    Text(Bytes),
    Range(Range<u64>),
}

/// The body of a response.
pub(crate) struct ResponseBody {
    parts: VecDeque<Part>,
    object: Option<ChunkedObject>,
    /// The range that is being read.
    stream: Option<ByteStream>,
    /// The first bytes of the object, which arrived before the head was sent.
    first: Option<Bytes>,
    /// Number of bytes that are not sent yet.
    left: u64,
    /// Counts the request as open until the body is sent.
    open: Option<InFlight<Shared>>,
    /// Keeps the connection from being idle until the body is sent.
    call: Option<OpenCall>,
    /// The span of the request, which ends with the body.
    span: Span,
}

impl ResponseBody {
    fn of(parts: VecDeque<Part>, object: Option<ChunkedObject>) -> Self {
        let len = |part: &Part| match part {
            Part::Text(text) => text.len() as u64,
            Part::Range(range) => range.end - range.start,
        };
        let left = parts.iter().map(len).sum();
        let (stream, first, open, call) = (None, None, None, None);
        Self { parts, object, stream, first, left, open, call, span: Span::none() }
    }

    /// Returns a body with a text.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::of([Part::Text(text.into())].into(), None)
    }

    pub(crate) fn empty() -> Self {
        Self::of(VecDeque::new(), None)
    }

    /// Returns a body with a range of an object.
    pub(crate) fn range(object: &ChunkedObject, range: Range<u64>) -> Self {
        Self::of([Part::Range(range)].into(), Some(object.clone()))
    }

    /// Returns a multipart body with several ranges of an object.
    pub(crate) fn ranges(
        object: &ChunkedObject,
        ranges: Vec<Range<u64>>,
        boundary: &str,
        content_type: &str,
    ) -> Self {
        let len = object.len();
        let mut parts = VecDeque::with_capacity(ranges.len() * 2 + 1);
        for range in ranges {
            let text = format!(
                "\r\n--{boundary}\r\nContent-Type: {content_type}\r\n\
                 Content-Range: {}\r\n\r\n",
                content_range(&range, len)
            );
            parts.extend([Part::Text(text.into()), Part::Range(range)]);
        }
        parts.push_back(Part::Text(format!("\r\n--{boundary}--\r\n").into()));
        Self::of(parts, Some(object.clone()))
    }

    /// Returns the number of bytes that are not sent yet.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    /// Removes all bytes, for the response to `HEAD`.
    pub(crate) fn without_bytes(mut self) -> Self {
        self.parts.clear();
        self.left = 0;
        self
    }

    /// Counts the request as open until this body is sent.
    pub(crate) fn counted(mut self, open: InFlight<Shared>) -> Self {
        self.open = Some(open);
        self
    }

    /// Reads the object within a span, until this body is sent.
    pub(crate) fn within(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// Keeps the call of a connection in progress until this body is sent.
    pub(crate) fn during_call(mut self, call: OpenCall) -> Self {
        self.call = Some(call);
        self
    }

    /// Waits for the first bytes of the object, so that an error before them is reported by the
    /// status of the response.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        let mut ranges = self.parts.iter().filter_map(|part| match part {
            Part::Range(range) => Some(range.clone()),
            Part::Text(_) => None,
        });
        if let (Some(range), Some(object)) = (ranges.next(), &self.object)
            && !range.is_empty()
        {
            let mut stream = object.stream(range)?;
            self.first = stream.next().await.transpose()?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        loop {
            match self.parts.front() {
                None => return Poll::Ready(None),
                Some(Part::Text(_)) => {
                    let Some(Part::Text(text)) = self.parts.pop_front() else { continue };
                    if !text.is_empty() {
                        return Poll::Ready(Some(Ok(text)));
                    }
                }
                Some(Part::Range(range)) => {
                    if let Some(first) = self.first.take() {
                        return Poll::Ready(Some(Ok(first)));
                    }
                    if range.is_empty() {
                        self.parts.pop_front();
                        continue;
                    }
                    let stream = match (&mut self.stream, &self.object) {
                        (Some(stream), _) => stream,
                        (None, Some(object)) => match object.stream(range.clone()) {
                            Ok(stream) => self.stream.insert(stream),
                            Err(error) => return Poll::Ready(Some(Err(error))),
                        },
                        (None, None) => return Poll::Ready(None),
                    };
                    match Pin::new(stream).poll_next(context) {
                        Poll::Ready(None) => {
                            self.stream = None;
                            self.parts.pop_front();
                        }
                        other => return other,
                    }
                }
            }
        }
    }

    fn counters(&self) -> Option<&Counters> {
        self.open.as_ref().map(InFlight::counters)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let span = self.span.clone();
        span.in_scope(|| self.next(context)).map(|next| {
            let next = next?;
            if let Ok(bytes) = &next {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                if let Some(counters) = self.counters() {
                    counters.count_sent(bytes.len());
                }
            }
            Some(next.map(Frame::data))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(counters) = self.counters().filter(|_| self.left > 0) {
            counters.count_cut_off();
        }
    }
}

/// Returns the value of `Content-Range` for a range.
pub(crate) fn content_range(range: &Range<u64>, len: u64) -> String {
    format!("bytes {}-{}/{len}", range.start, range.end - 1)
}

/// Returns a boundary that occurs in no object: it has 128 random bits, those of the seeds of hash
/// maps in the standard library.
pub(crate) fn boundary() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("nuthatch-{:016x}{:016x}", random(), random())
}
