//! The clock of a worker, and periodic checks of its connections.

use super::decoder::Connection;
use crate::net::reactor::Number;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// Seconds between checks of connections, while there is something to check.
const PERIOD_S: u64 = 1;

/// A worker's clock, read once in each iteration.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Clock {
    now_s: u64,
    now_ms: u64,
    checked_s: u64,
    due: bool,
    /// Whether connections have unchecked input.
    eof_unchecked: bool,
    /// Whether the input of connections is being discarded.
    discarding: bool,
    /// Whether freed memory is to be returned to the system.
    returns_memory: bool,
}

impl Clock {
    /// Returns the maximum wait for events; `None` if no connection needs periodic checks.
    pub(crate) fn wait(&self, timeout_s: Option<u64>) -> Option<Duration> {
        let checks =
            timeout_s.is_some() || self.eof_unchecked || self.discarding || self.returns_memory;
        checks.then(|| Duration::from_secs(PERIOD_S))
    }

    /// Notes that the input of a connection is being discarded.
    pub(crate) fn note_discarding(&mut self) {
        self.discarding = true;
    }

    /// Sets whether freed memory is to be returned to the system at the next check.
    pub(crate) fn set_returns_memory(&mut self, returns_memory: bool) {
        self.returns_memory = returns_memory;
    }

    /// Returns whether connections whose input is discarded are to be checked now. Those that
    /// remain must be [noted](Self::note_discarding) anew.
    pub(crate) fn begin_discarding_check(&mut self) -> bool {
        self.due && std::mem::take(&mut self.discarding)
    }

    /// Notes that bytes were received on a connection.
    #[inline]
    pub(crate) fn note_received(&mut self, connection: &mut Connection) {
        connection.active_s = self.now_s;
        connection.operations.eof_unchecked = true;
        self.eof_unchecked = true;
    }

    /// Returns the connections on which the kernel has not reported everything: the peer has closed
    /// them, or bytes are available, although a receive operation is in progress. The operation
    /// must be restarted.
    ///
    /// If bytes and the end arrive at the same time, Linux may report only the bytes: 6.18 does so
    /// on Unix sockets. So each connection is checked once, after a second without input. Input
    /// after that check is reported. The check also finds bytes that the kernel did not report.
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
            if connection.operations.eof_unchecked && connection.active_s < self.now_s {
                connection.operations.eof_unchecked = false;
                if connection.operations.receiving {
                    numbers.push(number);
                    sockets.push(PollFd::new(&connection.socket, PollFlags::RDHUP | PollFlags::IN));
                }
            }
            self.eof_unchecked |= connection.operations.eof_unchecked;
        }
        // If the poll fails, the end is detected with later input.
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
        // The coarse clock is cheap and monotonic.
        let now = clock_gettime(ClockId::MonotonicCoarse);
        self.now_s = now.tv_sec.unsigned_abs();
        self.now_ms = self.now_s * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000;
        self.due = self.now_s >= self.checked_s + PERIOD_S;
        if self.due {
            self.checked_s = self.now_s;
        }
    }

    /// Returns the seconds at the start of the iteration.
    #[inline]
    pub(crate) fn now_s(&self) -> u64 {
        self.now_s
    }

    /// Returns the milliseconds at the start of the iteration. The clock has a resolution of a few
    /// milliseconds.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Returns whether connections are to be checked in this iteration: once a second.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }
}
