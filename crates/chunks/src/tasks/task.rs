//! Futures for work on a thread.

use super::queue::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Work in progress, as a future. Panics when polled if the work panicked.
#[must_use]
pub struct Task<T>(pub(super) Arc<Mutex<Progress<T>>>);

/// The progress of work.
pub(super) enum Progress<T> {
    Waiting(Option<Waker>),
    Done(T),
    /// The work panicked, or its result was taken.
    Ended,
}

/// Receives the result of a job. If it is dropped before, the work has panicked.
pub(super) struct Promise<T>(pub(super) Arc<Mutex<Progress<T>>>);

impl<T> Promise<T> {
    pub(super) fn fulfill(self, value: T) {
        self.set(Progress::Done(value));
    }

    fn set(&self, progress: Progress<T>) {
        let mut place = lock(&self.0);
        if let Progress::Waiting(waker) = &mut *place {
            let waker = waker.take();
            *place = progress;
            drop(place);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.set(Progress::Ended);
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut place = lock(&self.0);
        match std::mem::replace(&mut *place, Progress::Ended) {
            Progress::Done(value) => Poll::Ready(value),
            Progress::Waiting(_) => {
                *place = Progress::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            Progress::Ended => panic!("the work panicked, or its result was taken before"),
        }
    }
}
