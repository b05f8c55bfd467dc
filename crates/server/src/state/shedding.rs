//! Shedding: selects clients to close when the memory of their buffers is needed.

use super::Server;
use super::clients::Connection;
use crate::log;
use std::cmp::Reverse;

/// Minimum bytes of the buffers of a client that is closed, since less would free too little
/// memory. While connections use too much memory, [`MIN_SHARE`] applies instead.
const MIN_BUFFERS: u64 = 64 << 10;

/// Clients are closed for a write that finds no memory if connections hold more than one of this
/// many bytes of the budget, or if their output keeps items that were removed from the cache.
const HELD_RATIO: u64 = 8;

/// The first round for a request closes clients until their buffers are one of this many bytes of
/// the budget. Each later round for the same request closes twice as many bytes as the one before.
const CLOSED_RATIO: u64 = 32;

/// Maximum number of rounds that a request waits for. The last one closes all clients whose buffers
/// are long enough.
pub(crate) const MAX_ROUNDS: u32 = 16;

/// Clients are closed even without a write once connections hold more than this many eighths of the
/// budget.
const MAX_HELD_EIGHTHS: u64 = 5;

/// While connections use too much memory, clients whose buffers are within an equal share of one of
/// this many bytes of the budget are not closed.
const SHARED_RATIO: u64 = 4;

/// Minimum of that share: clients with shorter buffers are not closed.
const MIN_SHARE: u64 = 1 << 10;

/// The buffers of a connection, read once: the thread of the connection changes them at any time.
struct Buffers<'a> {
    connection: &'a Connection,
    bytes: u64,
    progress_s: u64,
}

impl<'a> Buffers<'a> {
    /// Reads the bytes that closing the connection may free. Items that are sent from the cache
    /// without a copy count only if `counts_items` is set.
    fn read(connection: &'a Connection, counts_input: bool, counts_items: bool) -> Self {
        let input = if counts_input { connection.input_bytes() } else { 0 };
        let buffers = connection.output_buffer_len.get();
        let items = if counts_items { connection.output_len.get() } else { 0 };
        let bytes = buffers.max(items) + input;
        Self { connection, bytes, progress_s: connection.progress_s.get() }
    }
}

impl Server {
    /// Returns whether connections use so much memory that some must be closed.
    pub(crate) fn holds_too_much(&self) -> bool {
        self.held() > self.cache.memory() / 8 * MAX_HELD_EIGHTHS
    }

    /// Returns whether buffers of clients keep memory that a write could use.
    pub(crate) fn may_shed_buffers(&self) -> bool {
        self.cache.retained_bytes() > 0 || self.held() > self.cache.memory() / HELD_RATIO
    }

    /// Marks clients to be closed, those that have made no progress for the longest time first,
    /// until their buffers are a thirty-second of the budget in the first round, 0, and twice as
    /// much in each later one. The client with the number `own`, and those that set
    /// `CLIENT NO-EVICT ON`, are not closed. Clients that are marked already count towards the
    /// target. Returns whether any client is about to be closed: memory is free when
    /// [`Clients::is_closing`](super::Clients::is_closing) returns false again. Returns false and
    /// marks no client from round [`MAX_ROUNDS`] on, and if [`may_shed_buffers`] is false.
    ///
    /// [`may_shed_buffers`]: Self::may_shed_buffers
    ///
    /// Output that is sent from the cache without a copy counts only while items that were removed
    /// from the cache are still being sent: otherwise closing its client frees nothing. How much
    /// one client keeps is unknown then, since many may be receiving the same item. So the rounds
    /// grow, instead of closing one client each time.
    ///
    /// Clients are closed for unread replies. While connections take too much, incomplete and
    /// queued requests count too, and the minimum is an equal share for each client: otherwise many
    /// clients with a little each could take more than the budget. Below that, uploads of several
    /// clients do not close each other.
    pub(crate) fn shed_buffers(&self, own: u64, round: u32) -> bool {
        if round >= MAX_ROUNDS || !self.may_shed_buffers() {
            return false;
        }
        let is_last = round + 1 == MAX_ROUNDS;
        let first = self.cache.memory() / CLOSED_RATIO;
        let target = if is_last { u64::MAX } else { first.saturating_mul(1 << round) };
        let all = self.clients.all();
        let holds_too_much = self.holds_too_much();
        let share = self.cache.memory() / SHARED_RATIO / (all.len() as u64).max(1);
        let min = if holds_too_much { share.clamp(MIN_SHARE, MIN_BUFFERS) } else { MIN_BUFFERS };
        let has_retained = self.cache.retained_bytes() > 0;
        let read = |connection| Buffers::read(connection, holds_too_much, has_retained);
        let held = all.iter().map(|connection| read(connection));
        let (closing, mut open): (Vec<_>, Vec<_>) = held
            .filter(|buffers| buffers.bytes >= min)
            .partition(|buffers| buffers.connection.lifecycle.is_marked());
        let mut bytes: u64 = closing.iter().map(|buffers| buffers.bytes).sum();
        open.retain(|Buffers { connection, .. }| {
            let may_be_closed = connection.id != own && connection.unevictable.get() == 0;
            may_be_closed && !connection.is_killed()
        });
        open.sort_by_key(|buffers| (buffers.progress_s, Reverse(buffers.bytes)));
        for buffers in open {
            if bytes >= target {
                break;
            }
            if self.clients.shed(buffers.connection) {
                bytes += buffers.bytes;
                log::buffers_shed(&buffers.connection.endpoints.peer, buffers.bytes);
            }
        }
        self.clients.is_closing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Endpoints;
    use nuthatch_cache::{Cache, Options};
    use nuthatch_testing::random::Random;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// A sort noticed that its order was not total, and panicked.
    #[test]
    fn clients_are_selected_while_another_thread_changes_their_buffers() {
        let cache = Cache::new(Options::new().memory(16 << 20)).expect("a cache");
        let server = Server::new(cache.into());
        server.hold(12 << 20);
        let open = |_| server.clients.open(Endpoints::default(), 0);
        let connections: Vec<_> = (0..2000).map(open).collect();
        let (has_begun, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::new(1);
                while !is_done.load(Ordering::Relaxed) {
                    for connection in &connections {
                        connection.output_buffer_len.set(40_000 + random.below(1 << 14));
                    }
                    has_begun.store(true, Ordering::Relaxed);
                }
            });
            while !has_begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            for _ in 0..100 {
                assert!(server.shed_buffers(0, 0));
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
