//! Batches as a `futures::Stream`, read by threads of the store on demand.
//!
//! The source of a stream is owned by the stream, or by the thread that reads from it. A poll makes
//! a thread read one batch, and a few more if reading ahead. Dropping the stream drops the source
//! immediately, or as soon as the thread has noticed.

use crate::error::Result;
use crate::pages::Row;
use crate::panics::{self, caught};
use crate::process::Owner;
use crate::scan::Scan;
use crate::scans::batch::{Batches, RowBatch};
use crate::shared::Shared;
use crate::store::Store;
use crate::table::Table;
use futures_core::Stream;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Number of batches that are read ahead: enough for the reading thread to continue while the
/// consumer wakes up.
const BATCHES_AHEAD: usize = 4;

/// A source of batches. Called on a thread of the store.
pub(crate) trait Source: Send + 'static {
    type Batch: Send + 'static;

    /// Returns the next batch. May end early if the stream is cancelled.
    fn next(&mut self, cancelled: &AtomicBool) -> Result<Next<Self::Batch>>;

    /// Wakes a task when there may be more batches, after [`Next::NotYet`]. May wake it
    /// immediately.
    fn wake_when_more(&mut self, waker: Waker) {
        waker.wake();
    }
}

/// The result of [`Source::next`].
pub(crate) enum Next<B> {
    Batch(B),
    /// There may be more batches later.
    NotYet,
    End,
}

impl<B> From<Option<B>> for Next<B> {
    fn from(batch: Option<B>) -> Self {
        batch.map_or(Self::End, Self::Batch)
    }
}

/// A [`Stream`] of batches that threads of the store read on demand.
///
/// Nothing is read before the first poll. The transaction of a scan ends with the last batch, or
/// when the stream is dropped; a [`RowBatch`] that is kept keeps it open. A stream ends after its
/// first error.
pub struct BatchStream<B>(Box<dyn PollBatches<B>>);

/// A stream of the rows of a scan, without copying.
pub type RowStream = BatchStream<RowBatch>;

/// A stream with any source.
trait PollBatches<B>: Send {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<B>>>;
}

struct SourceStream<S: Source> {
    /// The process whose threads read; `None` after a poll in another process.
    owner: Option<Owner>,
    shared: Arc<Shared>,
    core: Arc<Core<S>>,
}

struct Core<S: Source> {
    state: Mutex<State<S>>,
    cancelled: AtomicBool,
    /// Maximum number of batches that are ready.
    max_ready: usize,
}

struct State<S: Source> {
    /// The source, unless a thread has it.
    source: Option<S>,
    /// Batches that were read and not consumed yet, in order.
    ready: VecDeque<Result<S::Batch>>,
    waker: Option<Waker>,
    is_done: bool,
}

impl<B: Send + 'static> BatchStream<B> {
    pub(crate) fn new<S>(shared: Arc<Shared>, source: S, read_ahead: bool) -> Self
    where
        S: Source<Batch = B>,
    {
        let (source, ready) = (Some(source), VecDeque::new());
        let state = Mutex::new(State { source, ready, waker: None, is_done: false });
        let max_ready = if read_ahead { BATCHES_AHEAD } else { 0 };
        let core = Core { state, cancelled: AtomicBool::new(false), max_ready };
        Self(Box::new(SourceStream { owner: Some(Owner::this()), shared, core: Arc::new(core) }))
    }
}

impl<B> Stream for BatchStream<B> {
    type Item = Result<B>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().0.poll(context)
    }
}

impl<B> fmt::Debug for BatchStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStream").finish_non_exhaustive()
    }
}

impl<S: Source> PollBatches<S::Batch> for SourceStream<S> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<S::Batch>>> {
        let Some(owner) = self.owner else { return Poll::Ready(None) };
        if let Err(error) = owner.check() {
            self.owner = None;
            return Poll::Ready(Some(Err(error)));
        }
        let mut state = self.core.lock();
        if let Some(ready) = state.ready.pop_front() {
            if state.ready.len() < self.core.max_ready {
                self.read(state);
            }
            return Poll::Ready(Some(ready));
        }
        if state.is_done {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        self.read(state);
        Poll::Pending
    }
}

impl<S: Source> SourceStream<S> {
    /// Makes a thread read the next batch, unless one is reading.
    fn read(&self, mut state: MutexGuard<'_, State<S>>) {
        let Some(source) = state.source.take() else { return };
        drop(state);
        let core = Arc::clone(&self.core);
        let submitted = self.shared.pool.submit(Box::new(move || core.fill(source)));
        if let Err(error) = submitted {
            let mut state = self.core.lock();
            state.ready.push_back(Err(error));
            state.is_done = true;
            let waker = state.waker.take();
            drop(state);
            wake(waker);
        }
    }
}

impl<S: Source> Core<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // The state is consistent after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the next batches. Called on a thread of the store.
    fn fill(&self, mut source: S) {
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                return;
            }
            // The closure of `stream_map` is the caller's, and may panic.
            let next = caught("read a stream", || source.next(&self.cancelled)).flatten();
            let mut state = self.lock();
            if self.cancelled.load(Ordering::Relaxed) {
                // The stream was dropped while this thread had the source, so the source is dropped
                // here.
                drop(state);
                return;
            }
            match next {
                Ok(Next::Batch(batch)) => state.ready.push_back(Ok(batch)),
                Ok(Next::NotYet) => {
                    // If no task waits, as when reading ahead, the next poll reads again.
                    if let Some(waker) = state.waker.take() {
                        source.wake_when_more(waker);
                    }
                    state.source = Some(source);
                    return;
                }
                Ok(Next::End) => state.is_done = true,
                Err(error) => {
                    state.ready.push_back(Err(error));
                    state.is_done = true;
                }
            }
            let waker = state.waker.take();
            if state.is_done {
                drop(state);
                // The transaction ends before the consumer gets the end.
                drop(source);
                return wake(waker);
            }
            let is_enough = state.ready.len() >= self.max_ready.max(1);
            if is_enough {
                state.source = Some(source);
                drop(state);
                return wake(waker);
            }
            drop(state);
            wake(waker);
        }
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        panics::wake(waker);
    }
}

impl<S: Source> Drop for SourceStream<S> {
    fn drop(&mut self) {
        if !self.owner.is_some_and(Owner::is_this) {
            // In a child made by `fork`, a thread of the parent may hold the lock forever.
            return;
        }
        let mut state = self.core.lock();
        self.core.cancelled.store(true, Ordering::Relaxed);
        let left = (state.source.take(), std::mem::take(&mut state.ready));
        drop(state);
        drop(left);
    }
}

impl Source for Batches {
    type Batch = RowBatch;

    fn next(&mut self, cancelled: &AtomicBool) -> Result<Next<RowBatch>> {
        self.next_until_cancelled(cancelled).map(Next::from)
    }
}

/// A scan with a closure that converts its rows.
struct Mapped<F> {
    batches: Batches,
    map: F,
}

impl<T, F> Source for Mapped<F>
where
    T: Send + 'static,
    F: FnMut(Row<'_>) -> Option<T> + Send + 'static,
{
    type Batch = Vec<T>;

    fn next(&mut self, cancelled: &AtomicBool) -> Result<Next<Vec<T>>> {
        // Empty batches are skipped.
        while let Some(batch) = self.batches.next_until_cancelled(cancelled)? {
            let mapped: Vec<T> = batch.iter().filter_map(&mut self.map).collect();
            if !mapped.is_empty() || cancelled.load(Ordering::Relaxed) {
                return Ok(Next::Batch(mapped));
            }
        }
        Ok(Next::End)
    }
}

impl Store {
    /// Returns an iterator over the batches of a scan, read on the caller's thread.
    pub fn batches(&self, table: &Table, scan: &Scan) -> Batches {
        Batches::new(Arc::clone(&self.0), table.clone(), scan.clone())
    }

    /// Returns a scan as a stream of batches, which threads of the store read on demand.
    pub fn stream(&self, table: &Table, scan: &Scan) -> RowStream {
        BatchStream::new(Arc::clone(&self.0), self.batches(table, scan), self.0.read_ahead)
    }

    /// Returns a scan as a stream of batches of the results of `map`. A thread of the store calls
    /// `map` with each row in place, so only what `map` copies is copied. Rows for which `map`
    /// returns `None` are skipped. If `map` panics, the stream returns
    /// [`Error::Lmdb`](crate::Error::Lmdb) and ends.
    pub fn stream_map<T, F>(&self, table: &Table, scan: &Scan, map: F) -> BatchStream<Vec<T>>
    where
        T: Send + 'static,
        F: FnMut(Row<'_>) -> Option<T> + Send + 'static,
    {
        let mapped = Mapped { batches: self.batches(table, scan), map };
        BatchStream::new(Arc::clone(&self.0), mapped, self.0.read_ahead)
    }
}
