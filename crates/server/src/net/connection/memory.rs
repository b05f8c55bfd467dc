//! The memory of a connection: what its buffers take, and requests that find none.

use super::Connection;
use crate::net::decoders::Decoders;
use crate::state::Server;
use crate::tls::SESSION_LEN;

/// Minimum growth of the output that is counted before the guard ends.
const MIN_COUNTED_GROWTH: usize = 64 << 10;

impl<T: Decoders> Connection<T> {
    /// Returns whether a request that found no memory may wait: clients that do not read their
    /// replies are being closed. It is executed again when all of them are closed. If it finds no
    /// memory then, twice as many are closed.
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

    /// Counts the memory of the connection. Returns the change since the last count, which the
    /// caller adds to the total.
    pub(crate) fn count_memory(&mut self) -> isize {
        let tls = self.tls.as_ref().map_or(0, |tls| SESSION_LEN + tls.buffered_len());
        let buffers = self.inbox.capacity() + self.out.capacity() + self.operations.sending_buffer;
        let buffers = buffers + self.client.queued_len() + self.decoder.held_len();
        let held = size_of::<Self>() + tls + buffers;
        let more = held.cast_signed() - self.counted.cast_signed();
        self.counted = held;
        more
    }

    /// Returns whether the output has grown so much that its memory must be counted.
    #[inline]
    pub(crate) fn has_grown(&self) -> bool {
        self.out.capacity() + self.operations.sending_buffer > self.counted + MIN_COUNTED_GROWTH
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
}
