//! Closes connections: killed ones, idle ones, and those that exceed output limits.

use super::Worker;
use crate::log;
use crate::net::connection::state::DISCARD_IDLE_S;
use crate::state::Server;
use std::sync::atomic::Ordering;

impl Worker<'_> {
    /// Applies changed settings, users and certificates, and closes killed connections. If there
    /// were changes, wakes the other threads, which may be waiting for events.
    pub(super) fn apply_changes(&mut self) {
        let Server { clients, settings, .. } = &self.common.server;
        let users = self.common.server.users_changes();
        let tls = self.common.tls_changes.load(Ordering::Acquire);
        let changes = [clients.marks(), settings.changes(), users, tls];
        if changes == self.changes {
            return;
        }
        let [_, _, users_before, tls_before] = self.changes;
        self.changes = changes;
        self.common.wake();
        if users != users_before {
            self.renew_users();
        }
        if tls != tls_before {
            self.close_unaccepted();
        }
        for (number, connection) in self.connections.iter() {
            if connection.client.is_killed() {
                connection.abort();
                self.touched.push(number);
            }
        }
    }

    /// Returns whether connections were marked to be closed since this worker last closed its own.
    pub(super) fn has_new_marks(&self) -> bool {
        self.common.server.clients.marks() != self.changes[0]
    }

    /// Closes the TLS connections whose client certificate is no longer accepted or missing.
    fn close_unaccepted(&mut self) {
        let Some(tls) = self.common.tls() else { return };
        for (number, connection) in self.connections.iter() {
            let session = connection.tls.as_ref();
            if session.is_some_and(|session| !tls.accepts(session.client_certificates())) {
                log::certificate_not_accepted(connection.client.peer());
                connection.abort();
                self.touched.push(number);
            }
        }
    }

    /// Closes connections that were idle for too long without waiting for a reply, or that exceed
    /// output limits.
    pub(super) fn close_idle(&mut self, timeout_s: Option<u64>) {
        let server = &self.common.server;
        let has_limits = server.settings.output_soft_limit().is_some();
        if !self.clock.is_due() || timeout_s.is_none() && !has_limits {
            return;
        }
        let now_s = self.clock.now_s();
        for (number, connection) in self.connections.iter() {
            let silent_s = now_s.saturating_sub(connection.active_s);
            let is_silent = timeout_s.is_some_and(|timeout_s| silent_s >= timeout_s);
            if is_silent && !connection.waits_for_reply() {
                connection.abort();
                self.touched.push(number);
            } else if has_limits && connection.enforce_output_limits(server, now_s) {
                self.touched.push(number);
            }
        }
    }

    /// Closes connections whose input is discarded and that have sent nothing for
    /// [`DISCARD_IDLE_S`] seconds.
    pub(super) fn close_discarding(&mut self) {
        if !self.clock.begin_discarding_check() {
            return;
        }
        for (number, connection) in self.connections.iter() {
            if connection.state.discards_input() {
                if self.clock.now_s().saturating_sub(connection.active_s) >= DISCARD_IDLE_S {
                    connection.state.end_discarding();
                }
                self.touched.push(number);
            }
        }
    }
}
