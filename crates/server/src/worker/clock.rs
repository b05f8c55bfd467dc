//! When connections were last heard of, to the second, and when to look for those that are silent,
//! or at their end without our having been told.

use super::decoder::Connection;
use crate::net::reactor::Number;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// How often connections are looked through while there is one to look at.
const PERIOD_S: u64 = 1;

/// A worker's time, read once a turn.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Clock {
    now_s: u64,
    now_ms: u64,
    checked_s: u64,
    due: bool,
    /// Some connections are [not checked](Connection::eof_unchecked).
    eof_unchecked: bool,
    /// The input of some connections is discarded.
    discarding: bool,
    /// Freed memory is to be returned to the system.
    returns_memory: bool,
}

impl Clock {
    /// How long a turn may wait for events: for ever while nobody is ended for being silent, and
    /// nobody may have gone unseen.
    pub(crate) fn wait(&self, timeout_s: Option<u64>) -> Option<Duration> {
        let checks =
            timeout_s.is_some() || self.eof_unchecked || self.discarding || self.returns_memory;
        checks.then(|| Duration::from_secs(PERIOD_S))
    }

    /// The input of a connection is discarded until its client is silent.
    pub(crate) fn note_discarding(&mut self) {
        self.discarding = true;
    }

    /// Sets whether freed memory is to be returned to the system when the time comes.
    pub(crate) fn set_returns_memory(&mut self, returns_memory: bool) {
        self.returns_memory = returns_memory;
    }

    /// Returns whether connections whose input is discarded are to be checked now. Those that
    /// remain must be [noted](Self::note_discarding) anew.
    pub(crate) fn begin_discarding_check(&mut self) -> bool {
        self.due && std::mem::take(&mut self.discarding)
    }

    /// Bytes came on a connection.
    #[inline]
    pub(crate) fn note_received(&mut self, connection: &mut Connection) {
        connection.active_s = self.now_s;
        connection.eof_unchecked = true;
        self.eof_unchecked = true;
    }

    /// Returns the connections of which the kernel has not told all: their clients have ended them,
    /// or bytes wait, although a receive operation is under way. It is to be started anew.
    ///
    /// When bytes and the end arrive at once, Linux may report the bytes alone, and nothing
    /// afterwards: 6.18 does so on Unix sockets. So each connection is checked once more when it
    /// has been silent for a second. What arrives after that is reported. The check finds unread
    /// bytes at no further cost, and no client waits forever should the kernel miss those.
    pub(crate) fn find_unreported<'c>(
        &mut self,
        connections: impl Iterator<Item = (Number, &'c mut Connection)>,
    ) -> Vec<Number> {
        if !self.eof_unchecked || !self.due {
            return Vec::new();
        }
        self.eof_unchecked = false;
        let (mut numbers, mut sockets) = (Vec::new(), Vec::new());
        for (number, connection) in connections {
            if connection.eof_unchecked && connection.active_s < self.now_s {
                connection.eof_unchecked = false;
                if connection.receiving {
                    numbers.push(number);
                    sockets.push(PollFd::new(&connection.socket, PollFlags::RDHUP | PollFlags::IN));
                }
            }
            self.eof_unchecked |= connection.eof_unchecked;
        }
        // If the poll fails, the end is seen with whatever arrives next.
        let _ = poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let unreported = sockets.iter().map(|socket| !socket.revents().is_empty());
        numbers
            .into_iter()
            .zip(unreported)
            .filter_map(|(number, unreported)| unreported.then_some(number))
            .collect()
    }

    /// Reads the time.
    pub(crate) fn read(&mut self) {
        // The coarse clock costs next to nothing, and no one can set it back.
        let now = clock_gettime(ClockId::MonotonicCoarse);
        self.now_s = now.tv_sec.unsigned_abs();
        self.now_ms = self.now_s * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000;
        self.due = self.now_s >= self.checked_s + PERIOD_S;
        if self.due {
            self.checked_s = self.now_s;
        }
    }

    /// Seconds, as this turn began.
    #[inline]
    pub(crate) fn now_s(&self) -> u64 {
        self.now_s
    }

    /// Returns the milliseconds of the same clock, exact to a few of them.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Whether it is time to look for silent connections.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }
}
