//! A future for work that a thread does.

use super::queue::lock;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Work that is under way. A future; panics when polled if the work panicked.
#[must_use]
pub struct Task<T>(pub(super) Arc<Mutex<Answer<T>>>);

pub(super) enum Answer<T> {
    Waiting(Option<Waker>),
    Here(T),
    /// The work panicked, or the answer was taken.
    Gone,
}

/// Where the answer of a job goes.
pub(super) struct Place<T>(pub(super) Arc<Mutex<Answer<T>>>);

impl<T> Place<T> {
    pub(super) fn fill(self, value: T) {
        self.set(Answer::Here(value));
    }

    fn set(&self, answer: Answer<T>) {
        let mut place = lock(&self.0);
        if let Answer::Waiting(waker) = &mut *place {
            let waker = waker.take();
            *place = answer;
            drop(place);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        self.set(Answer::Gone);
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut place = lock(&self.0);
        match std::mem::replace(&mut *place, Answer::Gone) {
            Answer::Here(value) => Poll::Ready(value),
            Answer::Waiting(_) => {
                *place = Answer::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            Answer::Gone => panic!("the work panicked, or its answer was taken before"),
        }
    }
}
