//! One connection that speaks RESP.

use crate::commands::{Client, Server};
use crate::journal;
use crate::protocol::resp::{Decoder, Limits, Reply};
use std::os::fd::OwnedFd;

/// A client that does not read its answers gets no more of them than this, and is not read from
/// until it has taken them. When connections take much memory, it is less.
const OUTPUT_MOST: usize = 1 << 20;
const OUTPUT_MOST_WHEN_SHORT: usize = 16 << 10;

/// When connections take much memory, one that sends a request longer than this is closed.
const INPUT_MOST_WHEN_SHORT: usize = 64 << 10;

/// Capacity that an empty buffer of a connection keeps.
pub(crate) const KEPT: usize = 16 << 10;

#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) decoder: Decoder,
    pub(crate) client: Client,
    /// Received, not executed yet.
    pub(crate) inbox: Vec<u8>,
    /// Answers that were not handed to the kernel yet.
    pub(crate) out: Vec<u8>,
    /// Bytes the kernel is sending.
    pub(crate) sending: usize,
    /// The kernel receives for us.
    pub(crate) receiving: bool,
    /// The client sends no more.
    pub(crate) ended: bool,
    /// Too many answers wait: nothing is executed until they are taken.
    pub(crate) blocked: bool,
    /// Nothing more is executed; it ends once all answers are sent.
    pub(crate) closing: bool,
    /// The socket was shut down: it goes once the kernel is done with it.
    pub(crate) shut: bool,
    /// It has logged in, or need not: its requests may be long.
    pub(crate) trusted: bool,
    /// Bytes of memory that were counted for it.
    pub(crate) counted: usize,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, client: Client, server: &Server) -> Self {
        let trusted = client.is_authenticated(server);
        let decoder = Decoder::new(limits(server, trusted));
        Self {
            socket,
            decoder,
            client,
            trusted,
            inbox: Vec::new(),
            out: Vec::new(),
            sending: 0,
            receiving: false,
            ended: false,
            blocked: false,
            closing: false,
            shut: false,
            counted: 0,
        }
    }

    /// Whether more requests may be executed now.
    pub(crate) fn is_open(&self) -> bool {
        !self.blocked && !self.closing
    }

    /// After an answer was written: whether the client must take some first.
    pub(crate) fn note_answer(&mut self, server: &Server, short_of_memory: bool) {
        if !self.trusted && self.client.is_authenticated(server) {
            self.trusted = true;
            self.decoder.set_limits(limits(server, true));
        }
        self.note_output(short_of_memory);
    }

    /// Whether the client must take some answers before there are more.
    pub(crate) fn note_output(&mut self, short_of_memory: bool) {
        let most = if short_of_memory { OUTPUT_MOST_WHEN_SHORT } else { OUTPUT_MOST };
        let blocked = self.out.len() + self.sending > most;
        if blocked && !self.blocked {
            self.client.note_output_limit();
        }
        self.blocked = blocked;
        self.closing |= self.client.closing;
    }

    /// Keeps what was received and not executed.
    pub(crate) fn keep(&mut self, rest: &[u8], server: &Server) {
        if self.blocked {
            // What was decoded ahead is decoded again.
            self.decoder = Decoder::new(limits(server, self.trusted));
        }
        self.inbox.clear();
        if !self.closing {
            self.inbox.extend_from_slice(rest);
        }
        if self.inbox.is_empty() && self.inbox.capacity() > KEPT {
            self.inbox = Vec::new();
        }
    }

    /// Bytes of memory it takes, and what was not counted of them before.
    pub(crate) fn count_memory(&mut self) -> isize {
        let held = size_of::<Self>() + self.inbox.capacity() + self.out.capacity() + self.sending;
        let more = held.cast_signed() - self.counted.cast_signed();
        self.counted = held;
        more
    }

    /// Whether it takes more memory than there is for requests now.
    pub(crate) fn is_too_long(&self, short_of_memory: bool) -> bool {
        short_of_memory && self.inbox.len() > INPUT_MOST_WHEN_SHORT
    }

    /// Ends it: what it sends takes memory that is not there.
    pub(crate) fn refuse_input(&mut self) {
        journal::input_refused(self.client.peer());
        self.refuse("ERR the request is too long for the memory there is now");
        self.inbox = Vec::new();
    }

    /// Answers with this error, and ends.
    pub(crate) fn refuse(&mut self, text: &str) {
        Reply::new(&mut self.out, self.client.version).error(text.as_bytes());
        self.closing = true;
    }

    /// Tells how much waits, for those who ask.
    pub(crate) fn tell_buffers(&self) {
        let room = self.inbox.capacity() - self.inbox.len();
        self.client.set_buffers(self.inbox.len(), room, self.out.len() + self.sending);
    }

    /// Whether the kernel has nothing to do for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.sending == 0 && !self.receiving
    }
}

/// How long the requests of a client may be.
fn limits(server: &Server, trusted: bool) -> Limits {
    let bulk_len = u32::try_from(server.settings.bulk_len_most()).unwrap_or(u32::MAX);
    let limits = Limits { bulk_len, ..Limits::default() };
    if trusted { limits } else { limits.before_auth() }
}
