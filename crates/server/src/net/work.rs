//! Received input, and how much of it was decoded and executed.

use super::reactor::{Filled, Number, Reactor};

/// Maximum length up to which an inbox doubles when it grows.
const MAX_DOUBLING_LEN: usize = 1 << 20;

/// Where received bytes are.
pub(crate) enum Source {
    /// In a buffer of the reactor.
    Buffer(Filled),
    /// In an inbox, after bytes that arrived before.
    Inbox(Vec<u8>),
}

/// Input of one connection that is not executed.
pub(crate) struct Work {
    pub(crate) connection: Number,
    pub(crate) source: Source,
    /// The number of executed bytes at the start of an inbox.
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

/// The progress of a connection's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) decoded: usize,
    pub(crate) executed: usize,
    pub(crate) requests: usize,
    /// Whether the rest waits for a later iteration.
    pub(crate) waits: bool,
    /// What a request waits for that was not executed. It is executed again then, unless another
    /// node executes it.
    pub(crate) held: Option<Held>,
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Memory: clients that are being closed free theirs.
    Memory,
    /// The disk: items are read from it, or written to it to free memory.
    Disk,
    /// A slot of the cluster that this node or another one is about to serve.
    Slot,
    /// The reply of the node of the cluster that owns the slot. It is not executed here again.
    Forward,
}

/// The request of a connection that is being forwarded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Forwarded {
    /// Its bytes in the inbox.
    pub(crate) len: usize,
    /// Whether it is executed here afterwards.
    pub(crate) then_executes: bool,
}

impl Forwarded {
    /// Returns whether there is such a request.
    pub(crate) fn is_pending(self) -> bool {
        self.len > 0
    }
}

impl Progress {
    /// Returns whether no request of the connection was executed.
    pub(crate) fn is_none(self) -> bool {
        self.requests == 0
    }

    /// Lets the next request and those after it wait.
    pub(crate) fn hold(&mut self, held: Held) {
        (self.waits, self.held) = (true, Some(held));
    }

    #[inline]
    pub(crate) fn effort(self) -> usize {
        self.requests + self.decoded / 1024
    }
}

/// Appends to an inbox. A long inbox does not double when it grows, since its whole capacity is
/// counted.
pub(crate) fn append(inbox: &mut Vec<u8>, bytes: &[u8]) {
    if inbox.len() >= MAX_DOUBLING_LEN && inbox.capacity() - inbox.len() < bytes.len() {
        inbox.reserve_exact((inbox.len() / 8).max(bytes.len()));
    }
    inbox.extend_from_slice(bytes);
}
