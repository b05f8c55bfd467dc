//! Events of sockets: accepted connections, received bytes, completed send operations.

use crate::output::Outgoing;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Bytes of a receive buffer.
pub(crate) const BUFFER_LEN: usize = 16 << 10;

/// The number with which a connection was registered.
pub(crate) type Number = u32;

/// A socket. It stays open until all its operations in the reactor have ended.
pub(crate) type Socket = Rc<OwnedFd>;

/// An event of the reactor.
#[derive(Debug)]
pub(crate) enum Event {
    /// A connection was accepted.
    Accepted {
        /// The listener.
        listener: Number,
        /// The socket of the connection.
        socket: io::Result<OwnedFd>,
        /// Whether the operation continues.
        more: bool,
    },
    /// Bytes were received; none if the peer sends no more.
    Received {
        /// The connection.
        connection: Number,
        /// A buffer with them, to be returned after reading.
        bytes: io::Result<Option<Filled>>,
        /// Whether the operation continues.
        more: bool,
    },
    /// A send operation ended.
    Sent {
        /// The connection.
        connection: Number,
        /// The bytes.
        outgoing: Outgoing,
        /// Whether all bytes were sent.
        result: io::Result<()>,
    },
    /// A [`Waker`](super::Waker) was called.
    Woken,
}

/// A buffer with received bytes.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) id: u16,
    pub(crate) len: u32,
}

impl Filled {
    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}
