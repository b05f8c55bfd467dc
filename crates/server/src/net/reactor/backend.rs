//! One interface to both I/O backends.

use super::epoll::Epoll;
use super::event::{Event, Filled, Number, Socket};
use super::uring::Uring;
use super::waker::Waker;
use crate::output::Outgoing;
use std::fmt;
use std::io;
use std::time::Duration;

/// One of the reactors there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Uring,
    Epoll,
}

impl Backend {
    /// Its name, as clients and people are told it.
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

/// One of the reactors, which are alike. It belongs to the thread that made it.
pub(crate) enum Reactor {
    Uring(Box<Uring>),
    Epoll(Box<Epoll>),
}

impl Reactor {
    /// A reactor with so many buffers to receive into, a power of two.
    pub(crate) fn new(kind: Backend, buffers: u16) -> io::Result<Self> {
        Ok(match kind {
            Backend::Uring => Self::Uring(Box::new(Uring::new(buffers)?)),
            Backend::Epoll => Self::Epoll(Box::new(Epoll::new(buffers)?)),
        })
    }

    /// What wakes this reactor.
    pub(crate) fn waker(&self) -> Waker {
        match self {
            Self::Uring(uring) => uring.waker(),
            Self::Epoll(epoll) => epoll.waker(),
        }
    }

    /// Accepts connections from now on, until an event says that there will be no more.
    pub(crate) fn accept(&mut self, socket: &Socket, listener: Number) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.accept(socket, listener),
            Self::Epoll(epoll) => {
                epoll.accept(socket, listener);
                Ok(())
            }
        }
    }

    /// Receives what comes, until an event says that there will be no more.
    pub(crate) fn receive(&mut self, socket: &Socket, number: Number) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.receive(socket, number),
            Self::Epoll(epoll) => {
                epoll.receive(socket, number);
                Ok(())
            }
        }
    }

    /// Receives no more for now: an event will say so. Others may come before it.
    pub(crate) fn pause(&mut self, number: Number) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.pause(number),
            Self::Epoll(epoll) => {
                epoll.pause(number);
                Ok(())
            }
        }
    }

    /// Sends bytes to their end. A connection does so with one run of them at a time.
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

    /// Waits for events and appends them. Without a timeout, for as long as it takes; it may end
    /// without any.
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

    /// Hands over what there is to do, without waiting for anything.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        match self {
            Self::Uring(uring) => uring.submit(),
            // What is sent has gone already.
            Self::Epoll(_) => Ok(()),
        }
    }

    /// Received bytes, until their buffer is given back.
    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        match self {
            Self::Uring(uring) => uring.bytes(filled),
            Self::Epoll(epoll) => epoll.bytes(filled),
        }
    }

    /// Gives a buffer back, to be filled again.
    pub(crate) fn give_back(&mut self, filled: Filled) {
        match self {
            Self::Uring(uring) => uring.give_back(filled),
            Self::Epoll(epoll) => epoll.give_back(filled),
        }
    }

    /// Bytes of memory of all buffers.
    #[inline]
    pub(crate) fn buffers_len(&self) -> usize {
        match self {
            Self::Uring(uring) => uring.buffers_len(),
            Self::Epoll(epoll) => epoll.buffers_len(),
        }
    }

    /// Does with little memory for buffers, or with all again. Those that are in use have theirs
    /// until they come back.
    pub(crate) fn save_memory(&mut self, little: bool) {
        match self {
            Self::Uring(uring) => uring.save_memory(little),
            Self::Epoll(epoll) => epoll.save_memory(little),
        }
    }
}
