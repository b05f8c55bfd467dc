//! Bodies of answers: texts and ranges of an object, read as the client takes them.

use crate::figures::{Open, Tally};
use crate::server::Shared;
use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use nuthatch_listen::OpenCall;
use nuthatch_origins::{ByteStream, ChunkedObject, Error};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A part of a body.
enum Piece {
    Text(Bytes),
    Range(Range<u64>),
}

/// The body of an answer.
pub(crate) struct Content {
    pieces: VecDeque<Piece>,
    object: Option<ChunkedObject>,
    /// The range that is being read.
    stream: Option<ByteStream>,
    /// Bytes that were waited for before the answer began.
    first: Option<Bytes>,
    /// Bytes that are still to come.
    left: u64,
    /// The request, which is under way until its body has gone.
    open: Option<Open<Shared>>,
    /// Keeps the connection from being idle until the body has gone.
    call: Option<OpenCall>,
}

impl Content {
    fn of(pieces: VecDeque<Piece>, object: Option<ChunkedObject>) -> Self {
        let len = |piece: &Piece| match piece {
            Piece::Text(text) => text.len() as u64,
            Piece::Range(range) => range.end - range.start,
        };
        let left = pieces.iter().map(len).sum();
        Self { pieces, object, stream: None, first: None, left, open: None, call: None }
    }

    /// A text.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::of([Piece::Text(text.into())].into(), None)
    }

    pub(crate) fn empty() -> Self {
        Self::of(VecDeque::new(), None)
    }

    /// A range of an object.
    pub(crate) fn range(object: &ChunkedObject, range: Range<u64>) -> Self {
        Self::of([Piece::Range(range)].into(), Some(object.clone()))
    }

    /// Several ranges, each with a head, and what divides them.
    pub(crate) fn ranges(
        object: &ChunkedObject,
        ranges: Vec<Range<u64>>,
        boundary: &str,
        content_type: &str,
    ) -> Self {
        let len = object.len();
        let mut pieces = VecDeque::with_capacity(ranges.len() * 2 + 1);
        for range in ranges {
            let text = format!(
                "\r\n--{boundary}\r\nContent-Type: {content_type}\r\n\
                 Content-Range: {}\r\n\r\n",
                content_range(&range, len)
            );
            pieces.extend([Piece::Text(text.into()), Piece::Range(range)]);
        }
        pieces.push_back(Piece::Text(format!("\r\n--{boundary}--\r\n").into()));
        Self::of(pieces, Some(object.clone()))
    }

    /// How many bytes are still to come.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    /// Nothing of it: the body of an answer to `HEAD`.
    pub(crate) fn without_bytes(mut self) -> Self {
        self.pieces.clear();
        self.left = 0;
        self
    }

    /// Counts as long as it is not sent.
    pub(crate) fn counted(mut self, open: Open<Shared>) -> Self {
        self.open = Some(open);
        self
    }

    /// Keeps the call of a connection in progress until this body is sent.
    pub(crate) fn of_call(mut self, call: OpenCall) -> Self {
        self.call = Some(call);
        self
    }

    /// Waits for the first bytes of the object, so that what goes wrong then has a status of its
    /// own.
    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        let mut ranges = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Range(range) => Some(range.clone()),
            Piece::Text(_) => None,
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
            match self.pieces.front() {
                None => return Poll::Ready(None),
                Some(Piece::Text(_)) => {
                    let Some(Piece::Text(text)) = self.pieces.pop_front() else { continue };
                    if !text.is_empty() {
                        return Poll::Ready(Some(Ok(text)));
                    }
                }
                Some(Piece::Range(range)) => {
                    if let Some(first) = self.first.take() {
                        return Poll::Ready(Some(Ok(first)));
                    }
                    if range.is_empty() {
                        self.pieces.pop_front();
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
                            self.pieces.pop_front();
                        }
                        other => return other,
                    }
                }
            }
        }
    }

    fn tally(&self) -> Option<&Tally> {
        self.open.as_ref().map(Open::tally)
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.next(context).map(|next| {
            let next = next?;
            if let Ok(bytes) = &next {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                if let Some(tally) = self.tally() {
                    tally.sent(bytes.len());
                }
            }
            Some(next.map(Frame::data))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        if let Some(tally) = self.tally().filter(|_| self.left > 0) {
            tally.cut_off();
        }
    }
}

/// A range as `Content-Range` tells it.
pub(crate) fn content_range(range: &Range<u64>, len: u64) -> String {
    format!("bytes {}-{}/{len}", range.start, range.end - 1)
}

/// Something that no object has in it: 128 random bits.
pub(crate) fn boundary() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("nuthatch-{:016x}{:016x}", random(), random())
}
