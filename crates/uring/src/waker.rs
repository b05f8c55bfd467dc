//! Wakes a thread that waits for completions or events.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Ends the wait of a thread, from any thread. Its descriptor is readable from a call of
/// [`wake`](Self::wake) until [`clear`](Self::clear).
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Creates a waker.
    ///
    /// # Errors
    ///
    /// Fails if the system has no descriptor for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Ends the wait of the thread, or its next one.
    pub fn wake(&self) {
        // It fails only if the counter is at its maximum, and then the thread is awake.
        let _ = rustix::io::write(&*self.0, &1_u64.to_le_bytes());
    }

    /// Resets the counter: any number of calls is one event.
    pub fn clear(&self) {
        // It fails only if there was no call.
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
