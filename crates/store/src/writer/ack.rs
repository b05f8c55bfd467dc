//! The acknowledgement of a batch.

use crate::error::Result;
use crate::panics::wake;
use crate::process::Owner;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The result of a committed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number of the transaction.
    pub transaction: u64,
    /// The sequence number of the last change up to and including this batch. A watch can continue
    /// after it.
    pub sequence: u64,
    /// Number of deleted keys.
    pub deleted: u64,
}

/// The acknowledgement of a batch: a future, with a blocking [`wait`](Self::wait). It is complete
/// after the commit, with the durability of the writer's options. Dropping it has no effect on the
/// batch.
pub struct Ack {
    /// The process whose thread writes the batch.
    owner: Owner,
    slot: Arc<Slot>,
}

/// The result of a batch, shared by the writer's thread and the acknowledgement.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    completed: Condvar,
}

#[derive(Default)]
struct State {
    result: Option<Result<Written>>,
    waker: Option<Waker>,
    has_waiter: bool,
}

impl Ack {
    pub(super) fn new() -> (Self, Arc<Slot>) {
        let slot = Arc::new(Slot::default());
        (Self { owner: Owner::this(), slot: Arc::clone(&slot) }, slot)
    }

    /// Waits until the batch was committed or has failed.
    ///
    /// # Errors
    ///
    /// The reason why the batch was not committed, [`Error::Group`](crate::Error::Group) if another
    /// batch of its group failed, [`Error::Closed`](crate::Error::Closed) if the writer's thread
    /// has ended, and [`Error::Forked`](crate::Error::Forked) in a child made by `fork`.
    pub fn wait(self) -> Result<Written> {
        self.owner.check()?;
        let mut state = self.slot.lock();
        state.has_waiter = true;
        loop {
            if let Some(result) = state.result.take() {
                return result;
            }
            state = self.slot.completed.wait(state).unwrap_or_else(PoisonError::into_inner);
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
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
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
    /// Sets the result, unless there is one that was not taken yet, and wakes the waiter.
    pub(super) fn complete(&self, result: Result<Written>) {
        let mut state = self.lock();
        state.result.get_or_insert(result);
        let (waker, has_waiter) = (state.waker.take(), state.has_waiter);
        drop(state);
        if has_waiter {
            self.completed.notify_one();
        }
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
