//! Connections that a worker closes: killed ones, silent ones, and those beyond output limits.

use super::Worker;
use crate::commands::Server;
use crate::connection::DISCARD_IDLE_S;

impl Worker<'_> {
    /// Tells the other threads of what changed here, for they may be asleep, and ends the
    /// connections that somebody wants to end.
    pub(super) fn heed_changes(&mut self) {
        let Server { clients, settings, .. } = &self.common.server;
        let changes = (clients.marks(), settings.changes(), self.common.server.users_changes());
        if changes == self.changes {
            return;
        }
        let are_users_new = changes.2 != self.changes.2;
        self.changes = changes;
        self.common.wake();
        if are_users_new {
            self.renew_users();
        }
        for (number, connection) in self.connections.iter() {
            if connection.client.is_killed() {
                connection.abort();
                self.touched.push(number);
            }
        }
    }

    /// Ends the connections that have sent nothing for too long.
    pub(super) fn close_idle(&mut self, timeout_s: Option<u64>) {
        let server = &self.common.server;
        let has_limits = server.settings.output_soft_limit().is_some();
        if !self.idle.is_due() || timeout_s.is_none() && !has_limits {
            return;
        }
        let now_s = self.idle.now_s();
        for (number, connection) in self.connections.iter() {
            let silent_s = now_s.saturating_sub(connection.seen_s);
            if timeout_s.is_some_and(|timeout_s| silent_s >= timeout_s) {
                connection.abort();
                self.touched.push(number);
            } else if has_limits && connection.enforce_output_limits(server, now_s) {
                self.touched.push(number);
            }
        }
    }

    /// Closes connections whose input is discarded and that have sent nothing for a while.
    pub(super) fn close_discarding(&mut self) {
        if !self.idle.begin_discarding_check() {
            return;
        }
        for (number, connection) in self.connections.iter() {
            if connection.discards_input() {
                if self.idle.now_s().saturating_sub(connection.seen_s) >= DISCARD_IDLE_S {
                    connection.discards = 0;
                }
                self.touched.push(number);
            }
        }
    }
}
