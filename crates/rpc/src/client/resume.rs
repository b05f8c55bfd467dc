//! Streams that go on where they were when a server could not be reached.

use crate::error::{Error, Result};
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tonic::Streaming;

/// A stream that is about to begin.
pub(super) type Opening<M> = Pin<Box<dyn Future<Output = Result<Streaming<M>>> + Send>>;

/// How long to wait after so many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);
    match failures.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => (FIRST * (1 << doublings.min(10))).min(LONGEST),
    }
}

/// Where a stream is.
pub(super) struct Resuming<M> {
    state: State<M>,
    /// How often it may fail in a row.
    retries: u32,
    failures: u32,
}

enum State<M> {
    Closed,
    Opening(Opening<M>),
    Open(Box<Streaming<M>>),
    Done,
}

impl<M> Resuming<M> {
    pub(super) fn new(retries: u32) -> Self {
        Self { state: State::Closed, retries, failures: 0 }
    }

    /// A stream that has begun already.
    pub(super) fn begun(stream: Streaming<M>, retries: u32) -> Self {
        Self { state: State::Open(Box::new(stream)), retries, failures: 0 }
    }

    /// The next message. `open` begins the stream where it is by now, after a pause; `resumes`
    /// tells whether it may begin again after a failure.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        resumes: bool,
        open: impl Fn(Duration) -> Opening<M>,
    ) -> Poll<Option<Result<M>>> {
        loop {
            let failed = match &mut self.state {
                State::Done => return Poll::Ready(None),
                State::Closed => {
                    self.state = State::Opening(open(pause(self.failures)));
                    continue;
                }
                State::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                    Ok(stream) => {
                        self.state = State::Open(Box::new(stream));
                        continue;
                    }
                    Err(error) => error,
                },
                State::Open(stream) => match ready!(Pin::new(&mut **stream).poll_next(context)) {
                    Some(Ok(message)) => {
                        self.failures = 0;
                        return Poll::Ready(Some(Ok(message)));
                    }
                    Some(Err(status)) => Error::from(status),
                    None => {
                        self.state = State::Done;
                        continue;
                    }
                },
            };
            if !(resumes && failed.is_passing() && self.failures < self.retries) {
                self.state = State::Done;
                return Poll::Ready(Some(Err(failed)));
            }
            self.failures += 1;
            self.state = State::Closed;
        }
    }
}
