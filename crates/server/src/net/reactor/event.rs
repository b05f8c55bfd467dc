//! What happens on sockets: connections come, bytes come, bytes have gone.

use crate::output::Outgoing;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Bytes of a buffer that is received into.
pub(crate) const BUFFER_LEN: usize = 16 << 10;

/// Which connection an event is about: the number it was registered with.
pub(crate) type Number = u32;

/// A socket. It stays open until all has ended that a reactor was asked to do with it.
pub(crate) type Socket = Rc<OwnedFd>;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// A connection came, on the listener of this number.
    Accepted {
        /// The listener.
        listener: Number,
        /// The connection's socket.
        socket: io::Result<OwnedFd>,
        /// Whether more will come without being asked for.
        more: bool,
    },
    /// Bytes came; none if the other side sends no more.
    Received {
        /// The connection.
        connection: Number,
        /// A buffer with them, to be read and given back.
        bytes: io::Result<Option<Filled>>,
        /// Whether more will come without being asked for.
        more: bool,
    },
    /// Bytes were sent to their end, or will not be.
    Sent {
        /// The connection.
        connection: Number,
        /// The bytes.
        outgoing: Outgoing,
        /// Whether they were sent.
        result: io::Result<()>,
    },
    /// Somebody called a [`Waker`](super::Waker).
    Woken,
}

/// A buffer with received bytes.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) id: u16,
    pub(crate) len: u32,
}

impl Filled {
    /// How many bytes.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}
