//! Closes a connection: at once, after its replies, or after its input.

use super::Connection;
use crate::log;
use crate::net::decoders::Decoders;
use crate::net::pending_value::InPlace;
use crate::state::Server;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{Shutdown, shutdown};
use std::time::Duration;

/// Maximum bytes of requests that wait until a client that has not logged in reads its replies.
const MAX_INPUT_BEFORE_LOGIN: usize = 16 << 10;

/// Errors of a connection that is closed because of its input.
const TOO_LONG_NOW: &str = "ERR the request is too long for the memory that is free now";
const TOO_MUCH_BEFORE_LOGIN: &str = "ERR too many requests before login";

impl<T: Decoders> Connection<T> {
    /// Closes the connection at once. Unread replies are dropped, with a reset also those in the
    /// kernel.
    pub(crate) fn abort(&mut self) {
        self.state.abort(self.output_len() > 0);
        self.drop_output();
        (self.inbox, self.done) = (Vec::new(), 0);
        self.in_place = InPlace::None;
    }

    /// Closes the connection if its output exceeds a limit. Returns whether it does.
    pub(crate) fn enforce_output_limits(&mut self, server: &Server, now_s: u64) -> bool {
        let output = self.output_len() as u64;
        let soft = server.settings.output_soft_limit();
        if soft.is_none_or(|(bytes, _)| output <= bytes) {
            self.over_soft_since_s = None;
        }
        let is_beyond_soft = soft.is_some_and(|(bytes, seconds)| {
            let is_over = output > bytes;
            is_over && now_s - *self.over_soft_since_s.get_or_insert(now_s) >= seconds
        });
        let is_beyond_hard = server.settings.output_hard_limit().is_some_and(|max| output > max);
        let is_beyond = (is_beyond_soft || is_beyond_hard) && !self.state.is_shut_down();
        if is_beyond {
            log::output_limit_exceeded(self.client.peer(), output);
            server.clients.add_output_closed();
            self.abort();
        }
        is_beyond
    }

    /// Closes the connection if a client that has not logged in sends more requests than allowed
    /// without reading their replies. [`Decoders::new`] limits single requests.
    pub(crate) fn enforce_input_before_login(&mut self) {
        let unread = if self.waits { 0 } else { self.inbox.len() - self.done };
        if self.trusted || self.state.is_closing() || unread <= MAX_INPUT_BEFORE_LOGIN {
            return;
        }
        if self.operations.sending == 0 {
            self.refuse_input(TOO_MUCH_BEFORE_LOGIN);
        } else {
            // The client does not read replies, so it would not read this error.
            log::input_refused(self.client.peer(), TOO_MUCH_BEFORE_LOGIN);
            self.abort();
        }
    }

    /// Closes the connection with this error, and frees the memory of its input.
    pub(crate) fn refuse_input(&mut self, text: &str) {
        log::input_refused(self.client.peer(), text);
        self.refuse(text);
        (self.inbox, self.done) = (Vec::new(), 0);
        self.in_place = InPlace::None;
    }

    /// Closes the connection if its requests have more bytes than this.
    pub(crate) fn refuse_if_too_long(&mut self, limit: usize) {
        if self.is_too_long(limit) {
            self.refuse_input(TOO_LONG_NOW);
        }
    }

    /// Replies with this error, if the protocol has error replies, and closes the connection.
    pub(crate) fn refuse(&mut self, text: &str) {
        self.decoder.reply_error(&mut self.out, self.client.version, text);
        self.close_after_input();
    }

    /// Closes the connection after its input ends, and discards that input. Otherwise a client in
    /// the middle of a long request would fail as it writes, and never read the reply.
    pub(crate) fn close_after_input(&mut self) {
        self.state.begin_discarding();
    }

    /// Closes the connection because HTTP arrived. Nothing of it is executed. See
    /// [`http_guard`](crate::http_guard).
    #[cold]
    pub(crate) fn refuse_http(&mut self, server: &Server) {
        server.clients.add_http_refused();
        log::http_refused(self.client.peer(), self.decoder.protocol().system());
        self.state.close();
    }

    /// Shuts down the sending side, so that the client sees the end of the replies.
    pub(crate) fn close_write(&mut self) {
        if self.state.close_write() {
            // The client may have disconnected.
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
    }

    /// Prepares removal: resets the connection if input was dropped or it was aborted. Otherwise
    /// the system of a client that is still sending may wait for a minute.
    pub(crate) fn prepare_removal(&self) {
        if self.state.resets() {
            // The client may have disconnected.
            let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
        }
    }
}
