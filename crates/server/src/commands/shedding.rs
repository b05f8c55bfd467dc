//! Selects clients to close when a write needs memory: those that do not read their replies.

use super::Server;
use super::clients::Connection;
use crate::journal;
use std::cmp::Reverse;
use std::sync::Arc;

/// Minimum output of a client that is closed: less would free too little memory.
const MIN_OUTPUT: u64 = 64 << 10;

/// Clients are closed for a write if connections take more than this part of the budget, or if
/// their output holds items that were removed from the cache.
const HELD_RATIO: u64 = 8;

/// One round closes clients whose output is at least this part of the budget.
const CLOSED_RATIO: u64 = 32;

/// Output is closed without a write, too, once connections take so many eighths of the budget.
const MAX_HELD_EIGHTHS: u64 = 5;

impl Server {
    /// Returns whether connections take so much memory that some must be closed.
    pub(crate) fn holds_too_much(&self) -> bool {
        self.held() > self.cache.memory() / 8 * MAX_HELD_EIGHTHS
    }

    /// Returns whether output that clients do not take keeps memory that a write could use.
    pub(crate) fn may_shed_output(&self) -> bool {
        self.cache.kept_by_leases() > 0 || self.held() > self.cache.memory() / HELD_RATIO
    }

    /// Marks clients to be closed, those that have taken nothing for the longest time first, until
    /// their output is a thirty-second of the budget. The client with the number `own`, and those
    /// that set `CLIENT NO-EVICT ON`, are not. Returns whether any client is about to be closed.
    pub(crate) fn shed_output(&self, own: u64) -> bool {
        if !self.may_shed_output() {
            return false;
        }
        let all = self.clients.all();
        let output = |connection: &Arc<Connection>| connection.output_len.get();
        let is_large = |connection: &&Arc<Connection>| output(connection) >= MIN_OUTPUT;
        let (closing, mut open): (Vec<_>, Vec<_>) =
            all.iter().filter(is_large).partition(|connection| connection.is_killed());
        let mut bytes: u64 = closing.iter().map(|connection| output(connection)).sum();
        open.retain(|connection| connection.id != own && connection.unevictable.get() == 0);
        open.sort_by_key(|connection| (connection.progress_s.get(), Reverse(output(connection))));
        for connection in open {
            if bytes >= self.cache.memory() / CLOSED_RATIO {
                break;
            }
            bytes += output(connection);
            journal::output_shed(&connection.endpoints.peer, output(connection));
            self.clients.shed(connection);
        }
        bytes > 0
    }
}
