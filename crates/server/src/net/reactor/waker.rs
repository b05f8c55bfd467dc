//! What ends a reactor's wait from another thread.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Wakes a reactor from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Makes the reactor's wait end with [`Event::Woken`](super::Event::Woken).
    pub(crate) fn wake(&self) {
        // The only error there can be is that it is awake already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_le_bytes());
    }

    /// Takes all calls there were: they are one event.
    pub(super) fn clear(&self) {
        // The only error there can be is that nobody has called.
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
