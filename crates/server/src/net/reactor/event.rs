//! Events: accepted connections, received bytes, completed send operations and reads of files.

use crate::output::Outgoing;
use nuthatch_uring::{Filled, ReadBuffer};
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
    /// A read of a file ended.
    Read {
        /// The number of the read.
        number: u32,
        /// The buffer.
        buffer: ReadBuffer,
        /// The number of bytes that were read.
        len: io::Result<u32>,
    },
    /// A [`Waker`](super::Waker) was called.
    Woken,
}
