//! The state of one connection: input that is not executed, and output that is not sent.

use super::decoders::Decoders;
use super::pending_value::InPlace;
use super::reactor::{Number, Reactor, Socket};
use super::work::{Progress, Source, Work};
use crate::log;
use crate::output::Outgoing;
use crate::protocol::Protocol;
use crate::state::{Client, Server};
use crate::tls::{SESSION_LEN, Session};
use nuthatch_cache::Guard;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendAncillaryBuffer, SendFlags, Shutdown, sendmsg, shutdown};
use std::io::{self, IoSlice};
use std::mem::take;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Maximum bytes of unsent replies, in general and while connections take much memory. Beyond it,
/// the connection is not read from until the client has read some replies.
const MAX_OUTPUT: usize = 1 << 20;
const MAX_OUTPUT_WHEN_SHORT: usize = 16 << 10;

/// Maximum bytes of requests that wait until a client that has not logged in reads its replies.
const MAX_INPUT_BEFORE_LOGIN: usize = 16 << 10;

/// Errors of a connection that is closed because of its input.
const TOO_LONG_NOW: &str = "ERR the request is too long for the memory there is now";
const TOO_MUCH_BEFORE_LOGIN: &str = "ERR too many requests before login";

/// Maximum bytes of requests that wait for a later iteration. Beyond it, the connection is not
/// received from.
const MAX_WAITING_INPUT: usize = 64 << 10;

/// Minimum growth of the output that is counted before the guard ends.
const MIN_COUNTED_GROWTH: usize = 64 << 10;

/// Maximum bytes of input that are discarded after a request was refused. This is the maximum
/// length of a request.
const MAX_DISCARDED_BYTES: usize = 1 << 30;

/// Seconds without input after which a connection whose request was refused is closed.
pub(crate) const DISCARD_IDLE_S: u64 = 5;

/// Maximum capacity that an empty buffer of a connection keeps.
pub(crate) const MAX_KEPT_CAPACITY: usize = 16 << 10;

#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
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
    /// Bytes that the kernel is sending, and how many of them are in a buffer. The cache counts the
    /// memory of items.
    pub(crate) sending: usize,
    pub(crate) sending_buffer: usize,
    /// Whether a receive operation is in progress.
    pub(crate) receiving: bool,
    /// Whether the client sends no more.
    pub(crate) read_closed: bool,
    /// Whether data arrived after the last check for the end of the input.
    pub(crate) eof_unchecked: bool,
    /// Whether too many replies are unsent. No request is executed until the client reads some.
    pub(crate) blocked: bool,
    /// Whether requests wait for a later iteration, for fairness or until memory is free.
    pub(crate) waits: bool,
    /// Whether no more requests are executed. The connection is closed once all replies are sent.
    pub(crate) closing: bool,
    /// Whether input that arrived after closing began was dropped.
    pub(crate) input_discarded: bool,
    /// Bytes of input that may still be discarded before the connection is closed. Zero closes it
    /// as soon as its replies are sent.
    pub(crate) discards: usize,
    /// Whether the sending side is shut down, so that no replies follow. Input is being discarded.
    pub(crate) write_closed: bool,
    /// Whether the socket is shut down. The connection is removed once the kernel has ended its
    /// operations.
    pub(crate) is_shut_down: bool,
    /// Whether closing resets the connection, which drops replies that are in the kernel.
    resets: bool,
    /// Since when the output exceeds the soft limit, in seconds of the worker's clock.
    over_soft_since_s: Option<u64>,
    /// How often the next request found no memory and waited for clients to be closed.
    pub(crate) memory_waits: u32,
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
            sending: 0,
            sending_buffer: 0,
            receiving: false,
            read_closed: false,
            eof_unchecked: false,
            blocked: false,
            waits: false,
            closing: false,
            input_discarded: false,
            discards: 0,
            write_closed: false,
            is_shut_down: false,
            resets: false,
            over_soft_since_s: None,
            memory_waits: 0,
            counted: 0,
            active_s: 0,
            work: None,
        }
    }

    /// Returns whether more requests may be executed now.
    pub(crate) fn is_open(&self) -> bool {
        !self.blocked && !self.closing
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

    /// Returns whether so many replies are unsent that the client must read some first. Before
    /// login they are as few as when memory is short.
    #[inline]
    pub(crate) fn is_output_long(&self, short_of_memory: bool) -> bool {
        let is_short = short_of_memory || !self.trusted;
        let max = if is_short { MAX_OUTPUT_WHEN_SHORT } else { MAX_OUTPUT };
        self.answers_len() + self.sending > max
    }

    /// Updates whether the connection is blocked by unsent replies.
    #[inline]
    pub(crate) fn note_output(&mut self, short_of_memory: bool) {
        // After nearly every request there are too few bytes for either limit.
        if self.tls.is_none() && self.unsent_len() + self.sending <= MAX_OUTPUT_WHEN_SHORT {
            self.blocked = false;
        } else {
            self.note_long_output(short_of_memory);
        }
    }

    #[inline(never)]
    fn note_long_output(&mut self, short_of_memory: bool) {
        let blocked = self.is_output_long(short_of_memory);
        if blocked && !self.blocked {
            self.client.note_output_limit();
        }
        self.blocked = blocked;
    }

    /// Returns the bytes of replies that were not passed to the kernel.
    #[inline]
    pub(crate) fn answers_len(&self) -> usize {
        self.unsent_len() + self.tls.as_ref().map_or(0, |tls| tls.plain_len())
    }

    /// Returns the bytes of replies that were passed neither to the kernel nor to TLS.
    #[inline]
    pub(crate) fn unsent_len(&self) -> usize {
        self.out.len() + self.client.zero_copy.len()
    }

    /// Prepares to execute requests. Values are sent without a copy only while nothing else is
    /// being sent.
    #[inline]
    pub(crate) fn begin_batch(&mut self) {
        self.client
            .zero_copy
            .accept_value_refs(self.sending == 0 && !self.is_shut_down && self.tls.is_none());
    }

    /// Sends the value references, as many bytes as the socket accepts without waiting.
    pub(crate) fn send_value_refs(&mut self, guard: &Guard<'_>) {
        let Self { socket, out, client, .. } = self;
        let send = |parts: &[IoSlice<'_>]| {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&*socket, parts, &mut SendAncillaryBuffer::default(), flags) {
                // Sent later, from the buffer.
                Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(0),
                result => Ok(result?),
            }
        };
        if let Ok(sent) = client.zero_copy.send_value_refs(guard, out, send) {
            client.metrics.add_sent(sent as u64);
        } else {
            client.zero_copy.clear(out);
            (self.closing, self.is_shut_down) = (true, true);
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
    pub(crate) fn is_ahead(&self) -> bool {
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
        if executed > 0 && self.sending == 0 {
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
        if !self.closing {
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

    /// Returns whether there is something to send.
    pub(crate) fn has_output(&self) -> bool {
        let tls = self.tls.as_ref();
        let some = !self.out.is_empty() || !self.client.zero_copy.is_empty();
        some || tls.is_some_and(|tls| tls.has_pending(self.closing))
    }

    /// Takes what is to be sent next.
    pub(crate) fn take_output(&mut self, short_of_memory: bool) -> io::Result<Outgoing> {
        match &mut self.tls {
            None => Ok(self.client.zero_copy.take_next(&mut self.out)),
            Some(tls) => {
                let Self { client, out, closing, .. } = self;
                let has_more = |client: &Client<T::Session>, out: &Vec<u8>| {
                    !out.is_empty() || !client.zero_copy.is_empty()
                };
                let take = || has_more(client, out).then(|| client.zero_copy.take_next(out));
                tls.send(take, (*closing, short_of_memory)).map(Outgoing::Bytes)
            }
        }
    }

    /// Drops all replies that were not passed to the kernel.
    pub(crate) fn drop_output(&mut self) {
        self.client.zero_copy.clear(&mut self.out);
        if let Some(tls) = &mut self.tls {
            tls.clear();
        }
    }

    /// Closes the connection at once. Unread replies are dropped, with a reset also those in the
    /// kernel.
    pub(crate) fn abort(&mut self) {
        self.resets |= self.output_len() > 0;
        self.drop_output();
        (self.inbox, self.done) = (Vec::new(), 0);
        self.in_place = InPlace::None;
        self.discards = 0;
        (self.closing, self.is_shut_down) = (true, true);
    }

    /// Returns the bytes of replies that the client has not read.
    pub(crate) fn output_len(&self) -> usize {
        self.answers_len() + self.sending
    }

    /// Returns the bytes of memory of those replies, without items that are sent without a copy.
    fn output_buffer_len(&self) -> usize {
        let tls = self.tls.as_ref().map_or(0, |tls| tls.buffered_len());
        self.out.len() + self.sending_buffer + tls
    }

    /// Notes that a request was executed.
    #[inline]
    pub(crate) fn note_executed(&mut self) {
        self.memory_waits = 0;
    }

    /// Closes the connection if its output exceeds a limit. Returns whether it does.
    pub(crate) fn enforce_output_limits(&mut self, server: &Server, now_s: u64) -> bool {
        let output = self.output_len() as u64;
        let soft = server.settings.output_soft_limit();
        if soft.is_none_or(|(bytes, _)| output <= bytes) {
            self.over_soft_since_s = None;
        }
        let is_beyond_soft = soft.is_some_and(|(bytes, seconds)| {
            let is_over = output > bytes;
            let since_s = *self.over_soft_since_s.get_or_insert(now_s);
            is_over && now_s.saturating_sub(since_s) >= seconds
        });
        let is_beyond_hard = server.settings.output_hard_limit().is_some_and(|max| output > max);
        let is_beyond = (is_beyond_soft || is_beyond_hard) && !self.is_shut_down;
        if is_beyond {
            log::output_limit_exceeded(self.client.peer(), output);
            server.clients.add_output_closed();
            self.abort();
        }
        is_beyond
    }

    /// Returns whether a request that found no memory may wait: clients that do not read their
    /// replies are being closed. It is executed again when all of them are, and then the next round
    /// closes twice as many.
    pub(crate) fn may_wait_for_memory(&mut self, server: &Server) -> bool {
        let waits = server.shed_buffers(self.client.id, self.memory_waits);
        self.memory_waits = if waits { self.memory_waits + 1 } else { 0 };
        waits
    }

    /// Frees unused capacity of the buffers.
    pub(crate) fn drop_unused(&mut self) {
        for buffer in [&mut self.inbox, &mut self.out] {
            // A buffer that is growing is not copied each time.
            if buffer.len() <= buffer.capacity() / 2 {
                buffer.shrink_to_fit();
            }
        }
    }

    /// Counts the memory of the connection, and returns the change since the last count.
    pub(crate) fn count_memory(&mut self) -> isize {
        let tls = self.tls.as_ref().map_or(0, |tls| SESSION_LEN + tls.buffered_len());
        let buffers = self.inbox.capacity() + self.out.capacity() + self.sending_buffer;
        let buffers = buffers + self.client.queued_len() + self.decoder.held_len();
        let held = size_of::<Self>() + tls + buffers;
        let more = held.cast_signed() - self.counted.cast_signed();
        self.counted = held;
        more
    }

    /// Returns whether the output has grown so much that its memory must be counted.
    #[inline]
    pub(crate) fn takes_more(&self) -> bool {
        self.out.capacity() + self.sending_buffer > self.counted + MIN_COUNTED_GROWTH
    }

    /// Returns whether requests that are incomplete or wait for `EXEC` have more bytes than this,
    /// and do not wait for memory already.
    pub(crate) fn is_too_long(&self, limit: usize) -> bool {
        if self.waits && self.memory_waits > 0 {
            return false;
        }
        let waiting = if self.waits { 0 } else { self.inbox.len() - self.done };
        waiting + self.client.queued_len() > limit
    }

    /// Closes the connection if a client that has not logged in sends more requests than allowed
    /// without reading their replies. [`Decoders::new`] limits single requests.
    pub(crate) fn enforce_input_before_login(&mut self) {
        let unread = if self.waits { 0 } else { self.inbox.len() - self.done };
        if self.trusted || self.closing || unread <= MAX_INPUT_BEFORE_LOGIN {
            return;
        }
        if self.sending == 0 {
            self.refuse_input(TOO_MUCH_BEFORE_LOGIN);
        } else {
            // The client does not read replies, so it would not read this error.
            log::input_refused(self.client.peer(), TOO_MUCH_BEFORE_LOGIN);
            self.abort();
        }
    }

    /// Closes the connection with this error, and frees the memory of its input.
    pub(crate) fn refuse_input(&mut self, text: &str) {
        log::input_refused(self.client.peer(), text);
        self.refuse(text);
        (self.inbox, self.done) = (Vec::new(), 0);
        self.in_place = InPlace::None;
    }

    /// Closes the connection if its requests have more bytes than this.
    pub(crate) fn refuse_if_too_long(&mut self, limit: usize) {
        if self.is_too_long(limit) {
            self.refuse_input(TOO_LONG_NOW);
        }
    }

    /// Replies with this error, if the protocol has error replies, and closes the connection.
    pub(crate) fn refuse(&mut self, text: &str) {
        self.decoder.reply_error(&mut self.out, self.client.version, text);
        self.close_after_input();
    }

    /// Closes the connection after its input ends, and discards that input. Otherwise a client in
    /// the middle of a long request would fail as it writes, and never read the reply.
    pub(crate) fn close_after_input(&mut self) {
        self.closing = true;
        self.discards = MAX_DISCARDED_BYTES;
    }

    /// Closes the connection because HTTP arrived. Nothing of it is executed. See
    /// [`http_guard`](crate::http_guard).
    #[cold]
    pub(crate) fn refuse_http(&mut self, server: &Server) {
        server.clients.add_http_refused();
        log::http_refused(self.client.peer(), self.decoder.protocol().system());
        self.closing = true;
    }

    /// Returns whether a request or transaction is incomplete, or requests wait to be executed.
    /// Replies are sent in any case before the connection is closed.
    pub(crate) fn is_under_way(&self) -> bool {
        let incomplete = self.inbox.len() > self.done || !matches!(self.in_place, InPlace::None);
        incomplete || self.waits || self.blocked || self.client.is_in_transaction()
    }

    /// Discards input that arrived after closing began.
    pub(crate) fn discard(&mut self, len: usize) {
        self.input_discarded = true;
        self.discards = self.discards.saturating_sub(len);
    }

    /// Returns whether input is to be discarded before the connection is closed.
    pub(crate) fn discards_input(&self) -> bool {
        self.closing && self.discards > 0 && !self.read_closed && !self.is_shut_down
    }

    /// Shuts down the sending side, so that the client sees the end of the replies.
    pub(crate) fn close_write(&mut self) {
        if !self.write_closed {
            self.write_closed = true;
            // The client may have disconnected.
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
    }

    /// Publishes the lengths of the buffers, for `CLIENT LIST` and for
    /// [`Server::shed_buffers`](crate::state::Server::shed_buffers).
    pub(crate) fn publish_buffers(&self, now_s: u64) {
        let room = self.inbox.capacity() - self.inbox.len();
        let waiting = self.inbox.len() - self.done;
        if self.client.is_without_buffers() {
            self.client.note_progress(now_s);
        }
        self.client.set_buffers(waiting, room, self.output_len(), self.output_buffer_len());
    }

    /// Prepares removal: resets the connection if input was dropped or it was aborted. Otherwise
    /// the system of a client that is still sending may wait for a minute.
    pub(crate) fn leave(&self) {
        if self.resets || self.input_discarded && !self.read_closed {
            // The client may have disconnected.
            let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
        }
    }

    /// Returns whether the kernel has no operation in progress for the connection.
    pub(crate) fn is_idle(&self) -> bool {
        self.sending == 0 && !self.receiving
    }
}
