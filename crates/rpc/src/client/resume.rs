//! Streams that resume after a lost connection.

use crate::error::{Error, Result};
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tonic::Streaming;

/// A stream that is being opened.
pub(super) type Opening<M> = Pin<Box<dyn Future<Output = Result<Streaming<M>>> + Send>>;

/// Returns the delay after a number of consecutive failures.
pub(super) fn pause(failures: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);
    match failures.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => (FIRST * (1 << doublings.min(10))).min(LONGEST),
    }
}

/// How long a failing stream is reopened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// Up to this number of consecutive failures.
    Retries(u32),
    /// For this time since the first of consecutive failures.
    Time(Duration),
}

/// Consecutive failures.
pub(super) struct Failures {
    patience: Patience,
    count: u32,
    since: Option<Instant>,
}

impl Failures {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, count: 0, since: None }
    }

    /// Resets the failures after a success.
    pub(super) fn clear(&mut self) {
        (self.count, self.since) = (0, None);
    }

    /// Counts a failure. Returns the delay before the next attempt, or `None` if there are no more.
    pub(super) fn next_pause(&mut self) -> Option<Duration> {
        self.count = self.count.saturating_add(1);
        let since = *self.since.get_or_insert_with(Instant::now);
        match self.patience {
            Patience::Retries(max) => (self.count <= max).then(|| pause(self.count)),
            Patience::Time(limit) => {
                let left = limit.saturating_sub(since.elapsed());
                // The last attempt is made when the time has passed.
                (left > Duration::ZERO).then(|| pause(self.count).min(left))
            }
        }
    }

    /// Returns the error for a caller after the last attempt. It names the time that was spent on
    /// attempts to reconnect, and the option that sets it.
    pub(super) fn final_error(&self, last: Error) -> Error {
        match self.patience {
            Patience::Time(limit) if limit > Duration::ZERO => last.with(&format!(
                "tried to reconnect for {limit:?}; `reconnect` (--reconnect-ms) sets the time"
            )),
            _ => last,
        }
    }
}

/// A stream that resumes.
pub(super) struct Resuming<M> {
    state: State<M>,
    failures: Failures,
    pause: Duration,
}

enum State<M> {
    Closed,
    Opening(Opening<M>),
    Open(Box<Streaming<M>>),
    Done,
}

impl<M> Resuming<M> {
    pub(super) fn new(patience: Patience) -> Self {
        Self { state: State::Closed, failures: Failures::new(patience), pause: Duration::ZERO }
    }

    /// Returns the state for a stream that is already open.
    pub(super) fn begun(stream: Streaming<M>, patience: Patience) -> Self {
        Self { state: State::Open(Box::new(stream)), ..Self::new(patience) }
    }

    /// Returns the next message. `open` opens the stream at its current position, after a delay.
    /// After a failure the stream is opened again only if `resumes` is true.
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
                    self.state = State::Opening(open(self.pause));
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
                        self.failures.clear();
                        return Poll::Ready(Some(Ok(message)));
                    }
                    Some(Err(status)) => Error::from(status),
                    None => {
                        self.state = State::Done;
                        continue;
                    }
                },
            };
            if !(resumes && failed.is_transient()) {
                self.state = State::Done;
                return Poll::Ready(Some(Err(failed)));
            }
            let Some(pause) = self.failures.next_pause() else {
                self.state = State::Done;
                return Poll::Ready(Some(Err(self.failures.final_error(failed))));
            };
            self.pause = pause;
            self.state = State::Closed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_or_timed() {
        let mut counted = Failures::new(Patience::Retries(2));
        assert_eq!(counted.next_pause(), Some(Duration::from_millis(50)));
        assert_eq!(counted.next_pause(), Some(Duration::from_millis(100)));
        assert_eq!(counted.next_pause(), None);
        counted.clear();
        assert!(counted.next_pause().is_some());
        let mut timed = Failures::new(Patience::Time(Duration::from_hours(1)));
        assert!((0..1000).all(|_| timed.next_pause().is_some()));
        assert_eq!(Failures::new(Patience::Time(Duration::ZERO)).next_pause(), None);
    }
}
