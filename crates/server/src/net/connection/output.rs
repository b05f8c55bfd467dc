//! The replies of a connection that its client has not read yet.

use super::Connection;
use crate::net::decoders::Decoders;
use crate::output::Outgoing;
use crate::state::Client;
use nuthatch_cache::Guard;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use std::io::{self, IoSlice};

/// Maximum bytes of unsent replies. Beyond it, the connection is not read from until the client has
/// read some replies.
const MAX_OUTPUT: usize = 1 << 20;

/// The same while connections take much memory, and before login.
const MAX_OUTPUT_WHEN_SHORT: usize = 16 << 10;

/// Minimum length of a reply that replaces an empty output buffer, instead of being copied to it.
const MIN_MOVED_LEN: usize = 16 << 10;

impl<T: Decoders> Connection<T> {
    /// Returns whether so many replies are unsent that the client must read some first. Before
    /// login they are as few as when memory is short.
    #[inline]
    pub(crate) fn is_output_long(&self, short_of_memory: bool) -> bool {
        let is_short = short_of_memory || !self.trusted;
        let max = if is_short { MAX_OUTPUT_WHEN_SHORT } else { MAX_OUTPUT };
        self.pending_output_len() + self.operations.sending > max
    }

    /// Updates whether the connection is blocked by unsent replies.
    #[inline]
    pub(crate) fn note_output(&mut self, short_of_memory: bool) {
        // After nearly every request there are too few bytes for either limit.
        if self.tls.is_none()
            && self.unsent_len() + self.operations.sending <= MAX_OUTPUT_WHEN_SHORT
        {
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
    pub(crate) fn pending_output_len(&self) -> usize {
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
        self.client.zero_copy.accept_value_refs(
            self.operations.sending == 0 && !self.state.is_shut_down() && self.tls.is_none(),
        );
    }

    /// Sends the value references, as many bytes as the socket accepts without waiting.
    pub(crate) fn send_value_refs(&mut self, guard: &Guard<'_>) {
        // The bytes between them may answer removals, which must survive a crash by then.
        guard.log_removed_records();
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
            self.state.shut_down();
        }
    }

    /// Appends a reply.
    pub(crate) fn append_output(&mut self, reply: Vec<u8>) {
        if self.out.is_empty() && self.client.zero_copy.is_empty() && reply.len() >= MIN_MOVED_LEN {
            self.out = reply;
        } else {
            self.out.extend_from_slice(&reply);
        }
    }

    /// Returns whether there is something to send.
    pub(crate) fn has_output(&self) -> bool {
        let tls = self.tls.as_ref();
        let some = !self.out.is_empty() || !self.client.zero_copy.is_empty();
        some || tls.is_some_and(|tls| tls.has_pending(self.state.is_closing()))
    }

    /// Takes what is to be sent next.
    pub(crate) fn take_output(&mut self, short_of_memory: bool) -> io::Result<Outgoing> {
        match &mut self.tls {
            None => Ok(self.client.zero_copy.take_next(&mut self.out)),
            Some(tls) => {
                let Self { client, out, state, .. } = self;
                let has_more = |client: &Client<T::Session>, out: &Vec<u8>| {
                    !out.is_empty() || !client.zero_copy.is_empty()
                };
                let take = || has_more(client, out).then(|| client.zero_copy.take_next(out));
                tls.send(take, (state.is_closing(), short_of_memory)).map(Outgoing::Bytes)
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

    /// Returns the bytes of replies that the client has not read.
    pub(crate) fn output_len(&self) -> usize {
        self.pending_output_len() + self.operations.sending
    }

    /// Returns the bytes of memory of those replies, without items that are sent without a copy.
    pub(super) fn output_buffer_len(&self) -> usize {
        let tls = self.tls.as_ref().map_or(0, |tls| tls.buffered_len());
        self.out.len() + self.operations.sending_buffer + tls
    }
}
