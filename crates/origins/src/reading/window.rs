//! A window that moves over an object: the planned ranges that are read next, and those that are
//! fetched ahead.

use crate::counts::Count;
use crate::error::{Error, Result};
use crate::reading::fetch::FetchHandle;
use crate::reading::file_task::FileTask;
use crate::reading::plan::{PlannedRange, RangeSource, plan, read};
use crate::reading::version::{CachedVersion, Version};
use bytes::Bytes;
use nuthatch_chunks::Fetched;
use nuthatch_trace_context::Span;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The maximum number of blocks that are read from the cache at once.
const MAX_CONCURRENT_READS: usize = 2;

/// How far a window reaches beyond the range that is read next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    current: u64,
    max: u64,
}

impl ReadAhead {
    /// Creates a window of `len` bytes: the reader needs the whole range.
    pub(crate) fn fixed(len: u64) -> Self {
        Self { current: len, max: len }
    }

    /// Creates an empty window, which doubles with each range that is read, up to `max` bytes.
    pub(crate) fn growing(max: u64) -> Self {
        Self { current: 0, max }
    }

    fn grow(&mut self, block_len: u64) {
        self.current = (self.current * 2).max(block_len).min(self.max);
    }
}

/// A window of an object whose blocks are cached.
pub(crate) struct Window {
    version: Arc<Version>,
    cached: Arc<CachedVersion>,
    /// The range that is not read yet.
    rest: Range<u64>,
    /// The end of the planned ranges.
    planned: u64,
    ahead: ReadAhead,
    /// Whether the polling thread may read files.
    may_block: bool,
    pieces: VecDeque<PlannedRange>,
    planning: Option<Planning>,
    /// A handle to a request that fetches more than the window.
    whole_fetch: Option<Arc<FetchHandle>>,
}

/// A plan that is being made.
struct Planning {
    /// Whether it replaces the first planned range, whose bytes did not arrive.
    is_retry: bool,
    work: FileTask<Vec<PlannedRange>>,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Window");
        shown.field("rest", &self.rest).field("planned", &self.planned);
        shown.field("ahead", &self.ahead).field("pieces", &self.pieces.len());
        shown.finish_non_exhaustive()
    }
}

/// Why the bytes of the first planned range did not arrive.
enum Miss {
    /// It must be planned again.
    Again,
    Failed(Error),
}

impl Window {
    pub(crate) fn new(
        version: Arc<Version>,
        cached: Arc<CachedVersion>,
        range: Range<u64>,
        ahead: ReadAhead,
        may_block: bool,
    ) -> Self {
        let planned = range.start;
        let (pieces, planning, whole_fetch) = (VecDeque::new(), None, None);
        Self {
            version,
            cached,
            rest: range,
            planned,
            ahead,
            may_block,
            pieces,
            planning,
            whole_fetch,
        }
    }

    /// Continues at an offset, if the window contains it. Blocks that were fetched in between stay
    /// in the cache.
    pub(crate) fn skip_to(&mut self, to: u64) -> bool {
        if to < self.rest.start || to >= self.planned || self.planning.is_some() {
            return false;
        }
        self.rest.start = to;
        while self.pieces.front().is_some_and(|piece| piece.range.end <= to) {
            self.pieces.pop_front();
        }
        true
    }

    /// Returns the next bytes, or `None` at the end of the range.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        while !self.rest.is_empty() {
            self.plan_ahead();
            self.poll_planning(context);
            let is_retry = self.planning.as_ref().is_some_and(|planning| planning.is_retry);
            let first = self.pieces.front().filter(|_| !is_retry);
            if first.is_none_or(|piece| matches!(piece.source, RangeSource::Missed)) {
                if self.planning.is_some() {
                    return Poll::Pending;
                }
                self.plan_again();
                continue;
            }
            match ready!(self.poll_first(context)) {
                Ok((bytes, count)) => return Poll::Ready(Some(Ok(self.take_first(bytes, count)))),
                Err(Miss::Failed(error)) => return Poll::Ready(Some(Err(error))),
                Err(Miss::Again) => self.mark_missed(),
            }
        }
        Poll::Ready(None)
    }

    /// Plans the next ranges when less than half of the window is left.
    fn plan_ahead(&mut self) {
        let left = self.planned - self.rest.start;
        let enough = left > 0 && (left > self.ahead.current / 2 || self.planned >= self.rest.end);
        if enough || self.planning.is_some() {
            return;
        }
        let block_len = self.cached.block_len;
        let target = self.rest.start + self.ahead.current.max(1);
        let target = target.div_ceil(block_len).saturating_mul(block_len).min(self.rest.end);
        if target > self.planned {
            let range = self.planned..target;
            self.planned = target;
            self.begin(range, false);
        }
    }

    /// Plans the first range again. Only one plan is made at a time, so a plan for later ranges is
    /// completed first.
    fn plan_again(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.begin(piece.range, true);
        }
    }

    /// Marks the first range as missed: it was evicted, or its request failed.
    fn mark_missed(&mut self) {
        if let Some(piece) = self.pieces.front_mut() {
            piece.source = RangeSource::Missed;
        }
    }

    fn begin(&mut self, range: Range<u64>, is_retry: bool) {
        // Fetches that the plan begins belong to the span of the reader.
        let span = Span::current();
        let work = FileTask::begin((&self.version, &self.cached), self.may_block, {
            move |version, cached, chunks| span.in_scope(|| plan(version, cached, chunks, &range))
        });
        self.planning = Some(Planning { is_retry, work });
    }

    fn poll_planning(&mut self, context: &mut Context<'_>) {
        let Some(planning) = &mut self.planning else { return };
        let Poll::Ready(pieces) = planning.work.poll(context) else { return };
        let is_retry = planning.is_retry;
        self.planning = None;
        if !self.version.head.ranges {
            let handle = pieces.iter().find_map(|piece| match &piece.source {
                RangeSource::OwnFetch(_, handle) => Some(handle.clone()),
                RangeSource::Cached(_) | RangeSource::SharedFetch(..) | RangeSource::Missed => None,
            });
            self.whole_fetch = handle.or(self.whole_fetch.take());
        }
        if is_retry {
            pieces.into_iter().rev().for_each(|piece| self.pieces.push_front(piece));
        } else {
            self.pieces.extend(pieces);
        }
    }

    /// Returns the bytes of the first planned range, and where they came from.
    fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<Result<(Bytes, Count), Miss>> {
        self.begin_reads();
        let Some(piece) = self.pieces.front_mut() else { return Poll::Pending };
        let range = piece.range.clone();
        let (fetched, of, count) = match &mut piece.source {
            RangeSource::Cached(Some(work)) => {
                let bytes = ready!(work.poll(context)).ok_or(Miss::Again);
                let count = self.version.source_of(&self.cached, &range, Count::FromCache);
                return Poll::Ready(bytes.map(|bytes| (bytes, count)));
            }
            RangeSource::Cached(None) | RangeSource::Missed => {
                return Poll::Ready(Err(Miss::Again));
            }
            RangeSource::OwnFetch(waiting, handle) => {
                let fetched = ready!(Pin::new(&mut *waiting).poll(context));
                if fetched == Fetched::Failed {
                    let error = handle.error().unwrap_or_else(Error::closed);
                    return Poll::Ready(Err(Miss::Failed(error)));
                }
                (fetched, waiting.range(), Count::FromOrigin)
            }
            RangeSource::SharedFetch(waiting, since) => {
                let fetched = ready!(Pin::new(&mut *waiting).poll(context));
                if fetched == Fetched::Failed {
                    let error = self.version.engine.failure_since(&self.cached.key, *since);
                    return Poll::Ready(Err(error.map_or(Miss::Again, Miss::Failed)));
                }
                let count = self.version.source_of(&self.cached, &range, Count::Coalesced);
                (fetched, waiting.range(), count)
            }
        };
        let Fetched::Bytes(bytes) = fetched else { return Poll::Ready(Err(Miss::Again)) };
        let within = (range.start - of.start) as usize..(range.end - of.start) as usize;
        if within.end > bytes.len() {
            return Poll::Ready(Err(Miss::Again));
        }
        Poll::Ready(Ok((Bytes::from_owner(bytes).slice(within), count)))
    }

    /// Begins to read the first planned ranges, if they are in the cache.
    fn begin_reads(&mut self) {
        let (both, may_block) = ((&self.version, &self.cached), self.may_block);
        let reads = if may_block { 1 } else { MAX_CONCURRENT_READS };
        for piece in self.pieces.iter_mut().take(reads) {
            if let RangeSource::Cached(work @ None) = &mut piece.source {
                let range = piece.range.clone();
                let read = move |version: &Arc<Version>, cached: &CachedVersion, chunks: &_| {
                    read(version, cached, chunks, &range)
                };
                *work = Some(FileTask::begin(both, may_block, read));
            }
        }
    }

    /// Removes the first planned range and returns its bytes from the position of the reader.
    fn take_first(&mut self, mut bytes: Bytes, count: Count) -> Bytes {
        if let Some(piece) = self.pieces.pop_front() {
            let skipped = self.rest.start - piece.range.start;
            bytes = bytes.slice(skipped as usize..);
            self.rest.start = piece.range.end;
        }
        self.ahead.grow(self.cached.block_len);
        self.version.count(count, bytes.len() as u64);
        bytes
    }
}
