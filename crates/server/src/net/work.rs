//! Received bytes, and how far they are done with.

use super::reactor::{Filled, Number, Reactor};

/// An inbox up to so many bytes grows to twice its length.
const DOUBLES_UP_TO: usize = 1 << 20;

/// Where received bytes lie.
pub(crate) enum Source {
    /// In a buffer of the reactor.
    Buffer(Filled),
    /// With what had come before.
    Inbox(Vec<u8>),
}

/// What one connection has received and not executed.
pub(crate) struct Work {
    pub(crate) connection: Number,
    pub(crate) source: Source,
    /// Bytes at the beginning of an inbox that are done with.
    pub(crate) start: usize,
}

impl Work {
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, reactor: &'a Reactor) -> &'a [u8] {
        match &self.source {
            Source::Buffer(filled) => reactor.bytes(filled),
            Source::Inbox(bytes) => &bytes[self.start..],
        }
    }
}

/// How far a connection's bytes are done with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) decoded: usize,
    pub(crate) executed: usize,
    pub(crate) requests: usize,
    /// The rest waits for the next turn.
    pub(crate) waits: bool,
    /// A request found no memory: it is executed again when clients that are being closed have
    /// freed theirs.
    pub(crate) starves: bool,
}

impl Progress {
    /// Whether nothing was done for the connection.
    pub(crate) fn is_none(self) -> bool {
        self.requests == 0
    }

    #[inline]
    pub(crate) fn effort(self) -> usize {
        self.requests + self.decoded / 1024
    }
}

/// Appends to an inbox. A long one does not grow to twice its length at once, for all of it counts.
pub(crate) fn append(inbox: &mut Vec<u8>, bytes: &[u8]) {
    if inbox.len() >= DOUBLES_UP_TO && inbox.capacity() - inbox.len() < bytes.len() {
        inbox.reserve_exact((inbox.len() / 8).max(bytes.len()));
    }
    inbox.extend_from_slice(bytes);
}
