//! Replies of other nodes on their way to a worker.

use super::memory::HeldBytes;
use std::fmt;
use std::mem::take;
use std::sync::{Mutex, PoisonError};

/// How a forwarded request has ended.
#[derive(Debug)]
pub(crate) enum ForwardOutcome {
    /// With this reply for the client. Its bytes are counted until the connection of the client
    /// counts them.
    Reply(Vec<u8>, Option<HeldBytes>),
    /// It may have been executed or not, as when a connection is lost.
    Unknown,
}

/// The outcomes of the requests of one worker, by the tokens of their connections.
pub(crate) struct ForwardResults {
    done: Mutex<Vec<(u64, ForwardOutcome)>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl ForwardResults {
    /// Creates it with what wakes the worker.
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { done: Mutex::default(), wake: Box::new(wake) }
    }

    /// Adds an outcome, and wakes the worker.
    pub(super) fn put(&self, token: u64, outcome: ForwardOutcome) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push((token, outcome));
        let is_first = done.len() == 1;
        drop(done);
        if is_first {
            (self.wake)();
        }
    }

    /// Takes the outcomes since the last call.
    pub(crate) fn take(&self) -> Vec<(u64, ForwardOutcome)> {
        take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for ForwardResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardResults").finish_non_exhaustive()
    }
}
