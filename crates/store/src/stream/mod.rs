//! Batches as a `futures::Stream`: read by the store's threads when they are asked for.
//!
//! A stream has a source, which is with the stream or with the thread that reads from it. Asking
//! has the source read, one batch at a time and, with reading ahead, a few more; dropping the
//! stream drops the source at once, or as soon as the thread has noticed.

use crate::batch::{Batches, RowBatch};
use crate::error::Result;
use crate::fork::Owner;
use crate::panics::{self, caught};
use crate::rows::Row;
use crate::scan::Scan;
use crate::store::{Shared, Store};
use crate::table::Table;
use futures_core::Stream;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Batches that are read ahead of what is asked for: so many that the thread that reads does not
/// stop while the one that asks wakes up.
const BATCHES_AHEAD: usize = 4;

/// What batches come from. Asked on a thread of the store.
pub(crate) trait Source: Send + 'static {
    type Batch: Send + 'static;

    /// The next batch. May end early when the stream is given up.
    fn next(&mut self, given_up: &AtomicBool) -> Result<Next<Self::Batch>>;

    /// After [`Next::NotYet`]: wakes when there may be more, which may be so already.
    fn wake_when_more(&mut self, waker: Waker) {
        waker.wake();
    }
}

/// What a source answers.
pub(crate) enum Next<B> {
    Batch(B),
    /// There may be more later.
    NotYet,
    End,
}

impl<B> From<Option<B>> for Next<B> {
    fn from(batch: Option<B>) -> Self {
        batch.map_or(Self::End, Self::Batch)
    }
}

/// Batches that a store's threads read as they are asked for: a [`Stream`].
///
/// Nothing is read before the first batch is asked for. The transaction ends with the last batch,
/// or when the stream is dropped; a [`RowBatch`] that is kept keeps it open.
pub struct BatchStream<B>(Box<dyn Asked<B>>);

/// A stream of the rows of a scan, where they lie.
pub type RowStream = BatchStream<RowBatch>;

/// A stream, whatever its source is.
trait Asked<B>: Send {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<B>>>;
}

struct Asking<S: Source> {
    /// The process whose threads read; `None` after another one has been refused.
    owner: Option<Owner>,
    shared: Arc<Shared>,
    core: Arc<Core<S>>,
}

struct Core<S: Source> {
    state: Mutex<State<S>>,
    given_up: AtomicBool,
    /// How many batches may be ready before they are asked for.
    ahead: usize,
}

struct State<S: Source> {
    /// The source, unless a thread has it.
    source: Option<S>,
    /// What was read and not taken yet, in order.
    ready: VecDeque<Result<S::Batch>>,
    waker: Option<Waker>,
    done: bool,
}

impl<B: Send + 'static> BatchStream<B> {
    pub(crate) fn new<S>(shared: Arc<Shared>, source: S, read_ahead: bool) -> Self
    where
        S: Source<Batch = B>,
    {
        let (source, ready) = (Some(source), VecDeque::new());
        let state = Mutex::new(State { source, ready, waker: None, done: false });
        let ahead = if read_ahead { BATCHES_AHEAD } else { 0 };
        let core = Core { state, given_up: AtomicBool::new(false), ahead };
        Self(Box::new(Asking { owner: Some(Owner::this()), shared, core: Arc::new(core) }))
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

impl<S: Source> Asked<S::Batch> for Asking<S> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<S::Batch>>> {
        let Some(owner) = self.owner else { return Poll::Ready(None) };
        if let Err(error) = owner.check() {
            self.owner = None;
            return Poll::Ready(Some(Err(error)));
        }
        let mut state = self.core.lock();
        if let Some(ready) = state.ready.pop_front() {
            if state.ready.len() < self.core.ahead {
                self.read(state);
            }
            return Poll::Ready(Some(ready));
        }
        if state.done {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        self.read(state);
        Poll::Pending
    }
}

impl<S: Source> Asking<S> {
    /// Has a thread read the next batch, unless one does.
    fn read(&self, mut state: MutexGuard<'_, State<S>>) {
        let Some(source) = state.source.take() else { return };
        drop(state);
        let core = Arc::clone(&self.core);
        let submitted = self.shared.pool.submit(Box::new(move || core.fill(source)));
        if let Err(error) = submitted {
            let mut state = self.core.lock();
            state.ready.push_back(Err(error));
            state.done = true;
            let waker = state.waker.take();
            drop(state);
            wake(waker);
        }
    }
}

impl<S: Source> Core<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // What is behind the lock is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On a thread of the store: reads what is asked for, and leaves it for whoever asks.
    fn fill(&self, mut source: S) {
        loop {
            if self.given_up.load(Ordering::Relaxed) {
                return;
            }
            // The closure of `stream_map` is the caller's, and may panic.
            let next = caught("read a stream", || source.next(&self.given_up)).flatten();
            let mut state = self.lock();
            if self.given_up.load(Ordering::Relaxed) {
                // Whoever gave up has not found the source: it goes now.
                drop(state);
                return;
            }
            match next {
                Ok(Next::Batch(batch)) => state.ready.push_back(Ok(batch)),
                Ok(Next::NotYet) => {
                    // Reading ahead, nobody waits: the next who asks has it read again.
                    if let Some(waker) = state.waker.take() {
                        source.wake_when_more(waker);
                    }
                    state.source = Some(source);
                    return;
                }
                Ok(Next::End) => state.done = true,
                Err(error) => {
                    state.ready.push_back(Err(error));
                    state.done = true;
                }
            }
            let waker = state.waker.take();
            if state.done {
                drop(state);
                // Its transaction ends before anybody hears that there is no more.
                drop(source);
                return wake(waker);
            }
            let enough = state.ready.len() >= self.ahead.max(1);
            if enough {
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

impl<S: Source> Drop for Asking<S> {
    fn drop(&mut self) {
        if !self.owner.is_some_and(Owner::is_this) {
            // A child made by `fork`: the lock may be held by a thread that it does not have.
            return;
        }
        let mut state = self.core.lock();
        self.core.given_up.store(true, Ordering::Relaxed);
        let left = (state.source.take(), std::mem::take(&mut state.ready));
        drop(state);
        drop(left);
    }
}

impl Source for Batches {
    type Batch = RowBatch;

    fn next(&mut self, given_up: &AtomicBool) -> Result<Next<RowBatch>> {
        self.next_unless(given_up).map(Next::from)
    }
}

/// Rows that a closure makes something else of.
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

    fn next(&mut self, given_up: &AtomicBool) -> Result<Next<Vec<T>>> {
        // A batch of which nothing is left is no batch.
        while let Some(batch) = self.batches.next_unless(given_up)? {
            let mapped: Vec<T> = batch.iter().filter_map(&mut self.map).collect();
            if !mapped.is_empty() || given_up.load(Ordering::Relaxed) {
                return Ok(Next::Batch(mapped));
            }
        }
        Ok(Next::End)
    }
}

impl Store {
    /// A scan that is read batch by batch on the caller's thread.
    pub fn batches(&self, table: &Table, scan: &Scan) -> Batches {
        Batches::new(Arc::clone(&self.0), table.clone(), scan.clone())
    }

    /// A scan as a stream of batches, which the store's threads read as they are asked for.
    pub fn stream(&self, table: &Table, scan: &Scan) -> RowStream {
        BatchStream::new(Arc::clone(&self.0), self.batches(table, scan), self.0.read_ahead)
    }

    /// A scan as a stream of what a closure makes of each row, on a thread of the store. It sees
    /// the row where it lies, so that only what is needed is copied; rows of which it makes nothing
    /// are left out.
    pub fn stream_map<T, F>(&self, table: &Table, scan: &Scan, map: F) -> BatchStream<Vec<T>>
    where
        T: Send + 'static,
        F: FnMut(Row<'_>) -> Option<T> + Send + 'static,
    {
        let mapped = Mapped { batches: self.batches(table, scan), map };
        BatchStream::new(Arc::clone(&self.0), mapped, self.0.read_ahead)
    }
}
