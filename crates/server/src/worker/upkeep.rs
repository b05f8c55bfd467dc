//! Draining, and connections of users who lost permissions.

use super::Worker;
use crate::log;
use rustix::io::ioctl_fionread;
use std::io;
use std::time::{Duration, Instant};

impl Worker<'_> {
    /// Closes the connections of users who were removed or lost permissions.
    pub(super) fn renew_users(&mut self) {
        let server = &self.common.server;
        for (number, connection) in self.connections.iter() {
            let was_trusted = connection.trusted;
            let keeps = connection.client.renew_user(server);
            if !keeps || (was_trusted && !connection.client.is_authenticated(server)) {
                log::connection_lost_rights(connection.client.peer());
                connection.abort();
                self.touched.push(number);
            }
        }
    }

    /// Returns the maximum wait for events while the server drains.
    pub(super) fn drain_timeout(&self) -> Option<Duration> {
        let until = self.common.server.drains_until()?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// Returns whether the server drains, and no connection or no time is left.
    pub(super) fn is_drained(&self) -> bool {
        self.listeners.is_closed()
            && (self.connections.is_empty() || self.drain_timeout() == Some(Duration::ZERO))
    }

    /// Closes connections without requests in progress, while the server drains.
    pub(super) fn close_drained(&mut self) {
        if self.common.server.drains_until().is_none() {
            return;
        }
        if !self.listeners.is_closed() {
            self.listeners.close();
            self.touched.extend(self.connections.iter().map(|(number, _)| number));
        }
        for number in &self.touched {
            if let Some(connection) = self.connections.get(*number) {
                // Requests that the client has sent already are executed, too. Bytes in the socket
                // are reported by a later event.
                let arrives = ioctl_fionread(&connection.socket).is_ok_and(|len| len > 0);
                if !arrives && !connection.has_work() {
                    connection.state.close();
                }
            }
        }
    }

    /// Restarts receive operations on which the kernel has not reported everything.
    pub(super) fn receive_unreported(&mut self) -> io::Result<()> {
        let unreported = self.clock.find_unreported(self.connections.iter());
        unreported.into_iter().try_for_each(|number| self.reactor.pause(number))
    }
}
