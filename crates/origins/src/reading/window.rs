//! A window that moves over an object: the pieces that are read next, in order, and what is fetched
//! ahead of them.

use crate::counts::Count;
use crate::error::{Error, Result};
use crate::reading::fetch::Share;
use crate::reading::file_task::Work;
use crate::reading::plan::{Piece, Source, plan, read};
use crate::reading::version::{Kept, Version};
use bytes::Bytes;
use nuthatch_chunks::Fetched;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// How many pieces of the cache are read at once.
const READS: usize = 2;

/// How far a window reaches beyond the piece that is read next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    now: u64,
    most: u64,
}

impl Ahead {
    /// As far as that from the start on: what is in the window will be read.
    pub(crate) fn fixed(len: u64) -> Self {
        Self { now: len, most: len }
    }

    /// Nothing at first, then twice as far with each piece that is read, up to a length.
    pub(crate) fn growing(most: u64) -> Self {
        Self { now: 0, most }
    }

    fn grow(&mut self, block_len: u64) {
        self.now = (self.now * 2).max(block_len).min(self.most);
    }
}

/// A window of an object that is kept in the cache.
pub(crate) struct Window {
    version: Arc<Version>,
    kept: Arc<Kept>,
    /// What is still to be read.
    rest: Range<u64>,
    /// Up to where there are pieces.
    planned: u64,
    ahead: Ahead,
    /// Whether the thread that polls may wait for files.
    may_wait: bool,
    pieces: VecDeque<Piece>,
    planning: Option<Planning>,
    /// A share in a request that brings more than the window.
    whole: Option<Arc<Share>>,
}

/// A plan that is being made.
struct Planning {
    /// Whether it is for the first piece, once more.
    again: bool,
    work: Work<Vec<Piece>>,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Window");
        shown.field("rest", &self.rest).field("planned", &self.planned);
        shown.field("ahead", &self.ahead).field("pieces", &self.pieces.len());
        shown.finish_non_exhaustive()
    }
}

/// Why the first piece did not come.
enum Miss {
    /// It is to be looked for again.
    Again,
    Failed(Error),
}

impl Window {
    pub(crate) fn new(
        version: Arc<Version>,
        kept: Arc<Kept>,
        range: Range<u64>,
        ahead: Ahead,
        may_wait: bool,
    ) -> Self {
        let planned = range.start;
        let (pieces, planning, whole) = (VecDeque::new(), None, None);
        Self { version, kept, rest: range, planned, ahead, may_wait, pieces, planning, whole }
    }

    /// Goes on at an offset, if it lies in the window. What was fetched in between stays in the
    /// cache.
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

    /// The next bytes; `None` at the end of the range.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        while !self.rest.is_empty() {
            self.plan_ahead();
            self.poll_planning(context);
            let again = self.planning.as_ref().is_some_and(|planning| planning.again);
            let first = self.pieces.front().filter(|_| !again);
            if first.is_none_or(|piece| matches!(piece.source, Source::Missed)) {
                if self.planning.is_some() {
                    return Poll::Pending;
                }
                self.plan_again();
                continue;
            }
            match ready!(self.poll_first(context)) {
                Ok((bytes, count)) => return Poll::Ready(Some(Ok(self.give(bytes, count)))),
                Err(Miss::Failed(error)) => return Poll::Ready(Some(Err(error))),
                Err(Miss::Again) => self.miss_first(),
            }
        }
        Poll::Ready(None)
    }

    /// Begins to plan what comes after the pieces, when less than half of the window is left.
    fn plan_ahead(&mut self) {
        let left = self.planned - self.rest.start;
        let enough = left > 0 && (left > self.ahead.now / 2 || self.planned >= self.rest.end);
        if enough || self.planning.is_some() {
            return;
        }
        let block_len = self.kept.block_len;
        let target = self.rest.start + self.ahead.now.max(1);
        let target = target.div_ceil(block_len).saturating_mul(block_len).min(self.rest.end);
        if target > self.planned {
            let range = self.planned..target;
            self.planned = target;
            self.begin(range, false);
        }
    }

    /// Plans the first piece once more, if it did not come. There is one plan at a time, so one for
    /// what comes later is waited for first.
    fn plan_again(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.begin(piece.range, true);
        }
    }

    /// The first piece was evicted, or whoever fetched it gave up.
    fn miss_first(&mut self) {
        if let Some(piece) = self.pieces.front_mut() {
            piece.source = Source::Missed;
        }
    }

    fn begin(&mut self, range: Range<u64>, again: bool) {
        let work = Work::begin((&self.version, &self.kept), self.may_wait, {
            move |version, kept, chunks| plan(version, kept, chunks, &range)
        });
        self.planning = Some(Planning { again, work });
    }

    fn poll_planning(&mut self, context: &mut Context<'_>) {
        let Some(planning) = &mut self.planning else { return };
        let Poll::Ready(pieces) = planning.work.poll(context) else { return };
        let again = planning.again;
        self.planning = None;
        if !self.version.head.ranges {
            let share = pieces.iter().find_map(|piece| match &piece.source {
                Source::Mine(_, share) => Some(share.clone()),
                Source::Cached(_) | Source::Theirs(..) | Source::Missed => None,
            });
            self.whole = share.or(self.whole.take());
        }
        if again {
            pieces.into_iter().rev().for_each(|piece| self.pieces.push_front(piece));
        } else {
            self.pieces.extend(pieces);
        }
    }

    /// The bytes of the first piece, and where they came from.
    fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<Result<(Bytes, Count), Miss>> {
        self.begin_reads();
        let Some(piece) = self.pieces.front_mut() else { return Poll::Pending };
        let range = piece.range.clone();
        let (fetched, of, count) = match &mut piece.source {
            Source::Cached(Some(work)) => {
                let bytes = ready!(work.poll(context)).ok_or(Miss::Again);
                let count = self.version.source(&self.kept, &range, Count::FromCache);
                return Poll::Ready(bytes.map(|bytes| (bytes, count)));
            }
            Source::Cached(None) | Source::Missed => return Poll::Ready(Err(Miss::Again)),
            Source::Mine(waiting, share) => {
                let fetched = ready!(Pin::new(&mut *waiting).poll(context));
                if fetched == Fetched::Failed {
                    let error = share.error().unwrap_or_else(Error::closed);
                    return Poll::Ready(Err(Miss::Failed(error)));
                }
                (fetched, waiting.range(), Count::FromOrigin)
            }
            Source::Theirs(waiting, since) => {
                let fetched = ready!(Pin::new(&mut *waiting).poll(context));
                if fetched == Fetched::Failed {
                    let error = self.version.engine.failure_since(&self.kept.key, *since);
                    return Poll::Ready(Err(error.map_or(Miss::Again, Miss::Failed)));
                }
                let count = self.version.source(&self.kept, &range, Count::FromOthers);
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

    /// Has the first pieces read, those that are in the cache.
    fn begin_reads(&mut self) {
        let (both, may_wait) = ((&self.version, &self.kept), self.may_wait);
        let reads = if may_wait { 1 } else { READS };
        for piece in self.pieces.iter_mut().take(reads) {
            if let Source::Cached(work @ None) = &mut piece.source {
                let range = piece.range.clone();
                let read = move |version: &Arc<Version>, kept: &Kept, chunks: &_| {
                    read(version, kept, chunks, &range)
                };
                *work = Some(Work::begin(both, may_wait, read));
            }
        }
    }

    /// Takes the first piece away; whoever reads may have skipped some of it.
    fn give(&mut self, mut bytes: Bytes, count: Count) -> Bytes {
        if let Some(piece) = self.pieces.pop_front() {
            let skipped = self.rest.start - piece.range.start;
            bytes = bytes.slice(skipped as usize..);
            self.rest.start = piece.range.end;
        }
        self.ahead.grow(self.kept.block_len);
        self.version.count(count, bytes.len() as u64);
        bytes
    }
}
