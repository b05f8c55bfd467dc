//! The acknowledgement of a batch.

use crate::error::Result;
use crate::fork::Owner;
use crate::panics::wake;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What became of a batch that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The transaction it was committed with.
    pub transaction: u64,
    /// The number of its last change, from which a watch can go on.
    pub sequence: u64,
    /// How many keys it deleted.
    pub deleted: u64,
}

/// The acknowledgement of a batch: a future, or something to wait for. It comes when the commit is
/// as durable as the writer's options say. Dropping it changes nothing: the batch is written.
pub struct Ack {
    /// The process whose thread answers.
    owner: Owner,
    slot: Arc<Slot>,
}

/// Where the answer is left.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    answer: Option<Result<Written>>,
    waker: Option<Waker>,
    waits: bool,
}

impl Ack {
    pub(super) fn new() -> (Self, Arc<Slot>) {
        let slot = Arc::new(Slot::default());
        (Self { owner: Owner::this(), slot: Arc::clone(&slot) }, slot)
    }

    /// Waits for the answer.
    pub fn wait(self) -> Result<Written> {
        self.owner.check()?;
        let mut state = self.slot.lock();
        state.waits = true;
        loop {
            if let Some(answer) = state.answer.take() {
                return answer;
            }
            state = self.slot.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Future for Ack {
    type Output = Result<Written>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.owner.check() {
            return Poll::Ready(Err(error));
        }
        let mut state = self.slot.lock();
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ack").finish_non_exhaustive()
    }
}

impl Slot {
    /// Leaves an answer, unless there is one that was not taken yet.
    pub(super) fn answer(&self, answer: Result<Written>) {
        let mut state = self.lock();
        state.answer.get_or_insert(answer);
        let (waker, waits) = (state.waker.take(), state.waits);
        drop(state);
        if waits {
            self.answered.notify_one();
        }
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is behind the lock is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
