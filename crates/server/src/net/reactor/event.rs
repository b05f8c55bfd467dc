//! Events of sockets: accepted connections, received bytes, completed send operations.

use crate::output::Outgoing;
use nuthatch_uring::Filled;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

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
