//! One interface to both I/O backends.

use super::epoll::Epoll;
use super::event::{Event, Number, Socket};
use super::uring::Uring;
use crate::output::Outgoing;
use nuthatch_uring::{Filled, Waker};
use std::fmt;
use std::io;
use std::time::Duration;

/// An I/O backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Uring,
    Epoll,
}

impl Backend {
    /// Returns its name for clients and users.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A reactor on one of the I/O backends. It belongs to the thread that created it.
pub(crate) enum Reactor {
    Uring(Box<Uring>),
    Epoll(Box<Epoll>),
}

impl Reactor {
    /// Creates a reactor with this many receive buffers, a power of two.
    pub(crate) fn new(kind: Backend, buffers: u16) -> io::Result<Self> {
        Ok(match kind {
            Backend::Uring => Self::Uring(Box::new(Uring::new(buffers)?)),
            Backend::Epoll => Self::Epoll(Box::new(Epoll::new(buffers)?)),
        })
    }

    /// Returns a waker of this reactor.
    pub(crate) fn waker(&self) -> Waker {
        match self {
            Self::Uring(uring) => uring.waker(),
            Self::Epoll(epoll) => epoll.waker(),
        }
    }

    /// Accepts connections until an event reports that no more follow.
    pub(crate) fn accept(&mut self, socket: &Socket, listener: Number) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.accept(socket, listener),
            Self::Epoll(epoll) => {
                epoll.accept(socket, listener);
                Ok(())
            }
        }
    }

    /// Receives until an event reports that no more follows.
    pub(crate) fn receive(&mut self, socket: &Socket, number: Number) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.receive(socket, number),
            Self::Epoll(epoll) => {
                epoll.receive(socket, number);
                Ok(())
            }
        }
    }

    /// Stops receiving, which an event reports. Other events may come before it.
    pub(crate) fn pause(&mut self, number: Number) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.pause(number),
            Self::Epoll(epoll) => {
                epoll.pause(number);
                Ok(())
            }
        }
    }

    /// Sends all bytes. A connection has at most one send operation at a time.
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        number: Number,
        outgoing: Outgoing,
    ) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.send(socket, number, outgoing),
            Self::Epoll(epoll) => {
                epoll.send(socket, number, outgoing);
                Ok(())
            }
        }
    }

    /// Returns the ring, which can read files. `None` if the backend has none.
    pub(crate) fn ring(&mut self) -> Option<&mut Uring> {
        match self {
            Self::Uring(uring) => Some(uring),
            Self::Epoll(_) => None,
        }
    }

    /// Waits for events and appends them. Without a timeout it waits indefinitely. It may return
    /// without an event.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.wait(timeout, events),
            Self::Epoll(epoll) => epoll.wait(timeout, events),
        }
    }

    /// Submits pending operations without waiting.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.submit(),
            // Its operations were performed at once.
            Self::Epoll(_) => Ok(()),
        }
    }

    /// Returns received bytes, until their buffer is returned.
    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        match self {
            Self::Uring(uring) => uring.bytes(filled),
            Self::Epoll(epoll) => epoll.bytes(filled),
        }
    }

    /// Returns a buffer, to be filled again.
    pub(crate) fn give_back(&mut self, filled: Filled) {
        match self {
            Self::Uring(uring) => uring.give_back(filled),
            Self::Epoll(epoll) => epoll.give_back(filled),
        }
    }

    /// Returns the bytes of memory of all buffers.
    #[inline]
    pub(crate) fn buffers_len(&self) -> usize {
        match self {
            Self::Uring(uring) => uring.buffers_len(),
            Self::Epoll(epoll) => epoll.buffers_len(),
        }
    }

    /// Limits the memory of buffers, or ends the limit. A buffer in use keeps its memory until it
    /// is returned.
    pub(crate) fn save_memory(&mut self, little: bool) {
        match self {
            Self::Uring(uring) => uring.save_memory(little),
            Self::Epoll(epoll) => epoll.save_memory(little),
        }
    }
}
