//! Wakes a reactor from another thread.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Ends the wait of a reactor, from any thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Ends the reactor's wait with [`Event::Woken`](super::Event::Woken).
    pub(crate) fn wake(&self) {
        // It fails only if the counter is at its maximum, and then the reactor is awake.
        let _ = rustix::io::write(&*self.0, &1_u64.to_le_bytes());
    }

    /// Resets the counter: any number of calls is one event.
    pub(super) fn clear(&self) {
        // It fails only if there was no call.
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
