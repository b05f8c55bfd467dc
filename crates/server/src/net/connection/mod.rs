//! The state of one connection: input that is not executed, and output that is not sent.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the connection, and its input |
//! | `closing.rs` | closes a connection: at once, after its replies, or after its input |
//! | `memory.rs` | what its buffers take, and requests that find no memory |
//! | `output.rs` | replies that the client has not read yet |
//! | `state.rs` | the states from the first request to the removal |

mod closing;
mod memory;
mod output;
pub(crate) mod state;

use super::decoders::Decoders;
use super::pending_value::InPlace;
use super::reactor::{Number, Reactor, Socket};
use super::work::{Forwarded, Progress, Source, Work};
use crate::protocol::Protocol;
use crate::state::{Client, Server};
use crate::tls::Session;
use state::State;
use std::mem::take;
use std::os::fd::OwnedFd;

/// Maximum bytes of requests that wait for a later iteration. Beyond it, the connection is not
/// received from.
const MAX_WAITING_INPUT: usize = 64 << 10;

/// Maximum capacity that an empty buffer of a connection keeps.
pub(crate) const MAX_KEPT_CAPACITY: usize = 16 << 10;

/// Operations of the kernel on the socket of a connection.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// Whether a receive operation is in progress.
    pub(crate) receiving: bool,
    /// Whether data arrived after the last check for the end of the input.
    pub(crate) eof_unchecked: bool,
    /// Bytes that the kernel is sending.
    pub(crate) sending: usize,
    /// How many of these bytes are in a buffer. The cache counts the memory of the others, which
    /// are in items.
    pub(crate) sending_buffer: usize,
}

impl Operations {
    /// Returns whether the kernel has no operation in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.sending == 0 && !self.receiving
    }
}

pub(crate) struct Connection<T: Decoders> {
    pub(crate) socket: Socket,
    pub(crate) decoder: T,
    pub(crate) tls: Option<Box<Session>>,
    pub(crate) client: Client<T::Session>,
    /// Received bytes. The first [`done`](Self::done) bytes are executed.
    pub(crate) inbox: Vec<u8>,
    /// The number of executed bytes at the start of the inbox.
    pub(crate) done: usize,
    /// A long value of the first request in the inbox.
    pub(crate) in_place: InPlace<T>,
    /// Replies that were not passed to the kernel.
    pub(crate) out: Vec<u8>,
    pub(crate) operations: Operations,
    pub(crate) state: State,
    /// Whether too many replies are unsent. No request is executed until the client reads some.
    pub(crate) blocked: bool,
    /// Whether requests wait for a later iteration, for fairness or until memory is free.
    pub(crate) waits: bool,
    /// Since when the output exceeds the soft limit, in seconds of the worker's clock.
    over_soft_since_s: Option<u64>,
    /// How often the next request found no memory and waited for clients to be closed.
    pub(crate) memory_waits: u32,
    /// How many things the next request waits for that the disk does: reads, or freeing memory.
    pub(crate) disk_waits: u32,
    /// How often the next request has read items from disk without coming closer to its end.
    pub(crate) disk_attempts: u32,
    /// The smallest number of items on disk that the next request needed so far.
    pub(crate) disk_needed: u32,
    /// The next request, if other nodes of the cluster execute it.
    pub(crate) forwarded: Forwarded,
    /// Distinguishes connections that have the same number one after the other.
    pub(crate) serial: u32,
    /// Whether the client has logged in, or need not. Its requests may be long.
    pub(crate) trusted: bool,
    /// Bytes of memory that are counted for this connection.
    pub(crate) counted: usize,
    /// When bytes were last received or sent, in seconds of the worker's clock.
    pub(crate) active_s: u64,
    /// The index of its input in the work of this iteration.
    pub(crate) work: Option<usize>,
}

impl<T: Decoders> Connection<T> {
    pub(crate) fn new(
        socket: OwnedFd,
        protocol: Protocol,
        client: Client<T::Session>,
        server: &Server,
    ) -> Self {
        let trusted = client.is_authenticated(server);
        Self {
            socket: Socket::new(socket),
            decoder: T::new(protocol, server, trusted),
            tls: None,
            client,
            trusted,
            inbox: Vec::new(),
            done: 0,
            in_place: InPlace::None,
            out: Vec::new(),
            operations: Operations::default(),
            state: State::Open,
            blocked: false,
            waits: false,
            over_soft_since_s: None,
            memory_waits: 0,
            disk_waits: 0,
            disk_attempts: 0,
            disk_needed: u32::MAX,
            forwarded: Forwarded::default(),
            serial: 0,
            counted: 0,
            active_s: 0,
            work: None,
        }
    }

    /// Returns whether more requests may be executed now.
    pub(crate) fn is_open(&self) -> bool {
        !self.blocked && !self.state.is_closing()
    }

    /// Returns whether the client waits for a reply that the disk, memory or another node delays.
    pub(crate) fn waits_for_reply(&self) -> bool {
        let is_delayed = self.waits || self.disk_waits > 0 || self.forwarded.is_pending();
        is_delayed && !self.blocked
    }

    /// Raises the limits of requests if the client has logged in.
    #[cold]
    pub(crate) fn update_login(&mut self, server: &Server) {
        self.trusted = self.client.is_authenticated(server);
        if self.trusted {
            self.decoder.trust(server);
        }
    }

    /// Notes that a request was permitted. A client that need not log in any more gets the limits
    /// of one that has.
    pub(crate) fn note_admitted(&mut self, server: &Server) {
        if !self.trusted {
            self.update_login(server);
        }
    }

    /// Adds the inbox to the work of this iteration.
    pub(crate) fn enqueue(&mut self, number: Number, works: &mut Vec<Work>) {
        self.work = Some(works.len());
        let (source, start) = (Source::Inbox(take(&mut self.inbox)), take(&mut self.done));
        works.push(Work { connection: number, source, start });
    }

    /// Returns whether requests in the inbox may be decoded and executed in this iteration.
    pub(crate) fn may_execute(&self) -> bool {
        self.is_open() && !self.waits && self.work.is_none() && !self.in_place.is_unfinished()
    }

    /// Returns whether so many requests wait for a later iteration that no more input is received.
    pub(crate) fn has_long_backlog(&self) -> bool {
        self.waits && self.inbox.len() - self.done > MAX_WAITING_INPUT
    }

    /// Keeps the input that was not executed. Bytes in a long inbox are moved only when most of it
    /// is executed, so none is copied more than a few times.
    pub(crate) fn keep(
        &mut self,
        work: &mut Work,
        progress: Progress,
        reactor: &Reactor,
        server: &Server,
    ) {
        let Progress { decoded, executed, waits, .. } = progress;
        self.waits = waits && self.is_open();
        if executed > 0 && self.operations.sending == 0 {
            self.client.note_progress(self.active_s);
        }
        // A request whose value was received in place is the first in the inbox.
        let decoder_of_value =
            if executed == 0 && decoded > 0 { self.in_place.decoder() } else { None };
        if executed > 0 || decoded > 0 && decoder_of_value.is_none() {
            self.in_place = InPlace::None;
        }
        if executed < decoded {
            // Requests that were decoded and not executed are decoded again.
            let new = || T::new(self.decoder.protocol(), server, self.trusted);
            self.decoder = decoder_of_value.unwrap_or_else(new);
        }
        self.inbox.clear();
        self.done = 0;
        if !self.state.is_closing() {
            match &mut work.source {
                Source::Buffer(filled) => {
                    self.inbox.extend_from_slice(&reactor.bytes(filled)[executed..]);
                }
                Source::Inbox(bytes) => {
                    self.inbox = take(bytes);
                    self.done = work.start + executed;
                    if self.done >= self.inbox.len() / 2 {
                        self.inbox.drain(..take(&mut self.done));
                    }
                }
            }
        }
        if self.inbox.is_empty() && self.inbox.capacity() > MAX_KEPT_CAPACITY {
            self.inbox = Vec::new();
        }
    }

    /// Removes the next request from the inbox, which has this many bytes.
    pub(crate) fn skip_request(&mut self, len: usize, server: &Server) {
        self.in_place = InPlace::None;
        self.decoder = T::new(self.decoder.protocol(), server, self.trusted);
        self.done = (self.done + len).min(self.inbox.len());
        if self.done >= self.inbox.len() / 2 {
            self.inbox.drain(..take(&mut self.done));
        }
    }

    /// Notes that a request was executed.
    #[inline]
    pub(crate) fn note_executed(&mut self) {
        self.memory_waits = 0;
        self.disk_attempts = 0;
        self.disk_needed = u32::MAX;
    }

    /// Returns whether a request or transaction is incomplete, or requests wait to be executed.
    /// Replies are sent in any case before the connection is closed.
    pub(crate) fn has_work(&self) -> bool {
        let incomplete = self.inbox.len() > self.done || !matches!(self.in_place, InPlace::None);
        incomplete || self.waits || self.blocked || self.client.is_in_transaction()
    }
}
