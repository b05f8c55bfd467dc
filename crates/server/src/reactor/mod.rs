//! Sockets, and what happens on them: connections come, bytes come, bytes have gone.
//!
//! A reactor owns whatever memory the kernel is working with: buffers that are received into, and
//! those that are being sent, until they come back with an event.

mod buffers;
mod uring;

pub(crate) use buffers::BUFFER_LEN;
pub(crate) use uring::{Uring, Waker};

use std::io;
use std::os::fd::OwnedFd;

/// What the reactor is called where people ask.
pub(crate) const NAME: &str = "io_uring";

/// Which connection an event is about: the number it was registered with.
pub(crate) type Number = u32;

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
    /// A buffer was sent to its end, or will not be.
    Sent {
        /// The connection.
        connection: Number,
        /// The buffer.
        buffer: Vec<u8>,
        /// Whether it was sent.
        result: io::Result<()>,
    },
    /// Somebody called a [`Waker`].
    Woken,
}

/// A buffer with received bytes.
#[derive(Debug)]
pub(crate) struct Filled {
    id: u16,
    len: u32,
}

impl Filled {
    /// How many bytes.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}
