//! Selects clients to close when the memory of their buffers is needed.

use super::Server;
use super::clients::Connection;
use crate::journal;
use std::cmp::Reverse;
use std::sync::Arc;

/// Minimum buffers of a client that is closed: less would free too little memory.
const MIN_BUFFERS: u64 = 64 << 10;

/// Clients are closed for a write if connections take more than this part of the budget, or if
/// their output holds items that were removed from the cache.
const HELD_RATIO: u64 = 8;

/// One round closes clients whose buffers are at least this part of the budget.
const CLOSED_RATIO: u64 = 32;

/// Clients are closed without a write, too, once connections take so many eighths of the budget.
const MAX_HELD_EIGHTHS: u64 = 5;

/// Once connections take too much, the buffers of clients that are not closed take at most this
/// part of the budget, in equal shares.
const SHARED_RATIO: u64 = 4;

/// Minimum share of a client: buffers that are shorter close no client.
const MIN_SHARE: u64 = 1 << 10;

impl Server {
    /// Returns whether connections take so much memory that some must be closed.
    pub(crate) fn holds_too_much(&self) -> bool {
        self.held() > self.cache.memory() / 8 * MAX_HELD_EIGHTHS
    }

    /// Returns whether buffers of clients keep memory that a write could use.
    pub(crate) fn may_shed_buffers(&self) -> bool {
        self.cache.retained_bytes() > 0 || self.held() > self.cache.memory() / HELD_RATIO
    }

    /// Marks clients to be closed, those that have made no progress for the longest time first,
    /// until their buffers are a thirty-second of the budget. The client with the number `own`, and
    /// those that set `CLIENT NO-EVICT ON`, are not closed. Returns whether any client is about to
    /// be closed.
    ///
    /// Clients are closed for unread replies. While connections take too much, incomplete and
    /// queued requests count too, and the minimum is an equal share for each client: otherwise many
    /// clients with a little each could take more than the budget. Below that, uploads of several
    /// clients do not close each other.
    pub(crate) fn shed_buffers(&self, own: u64) -> bool {
        if !self.may_shed_buffers() {
            return false;
        }
        let all = self.clients.all();
        let holds_too_much = self.holds_too_much();
        let share = self.cache.memory() / SHARED_RATIO / (all.len() as u64).max(1);
        let min = if holds_too_much { share.clamp(MIN_SHARE, MIN_BUFFERS) } else { MIN_BUFFERS };
        let buffers = |connection: &Arc<Connection>| {
            let input = if holds_too_much { connection.input_bytes() } else { 0 };
            connection.output_len.get() + input
        };
        let is_large = |connection: &&Arc<Connection>| buffers(connection) >= min;
        let (closing, mut open): (Vec<_>, Vec<_>) =
            all.iter().filter(is_large).partition(|connection| connection.is_killed());
        let mut bytes: u64 = closing.iter().map(|connection| buffers(connection)).sum();
        open.retain(|connection| connection.id != own && connection.unevictable.get() == 0);
        // Read once each: other threads change them, and a sort whose order changes panics.
        open.sort_by_cached_key(|connection| {
            (connection.progress_s.get(), Reverse(buffers(connection)))
        });
        for connection in open {
            if bytes >= self.cache.memory() / CLOSED_RATIO {
                break;
            }
            bytes += buffers(connection);
            journal::buffers_shed(&connection.endpoints.peer, buffers(connection));
            self.clients.shed(connection);
        }
        bytes > 0
    }
}
