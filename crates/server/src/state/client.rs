//! The state of a connection that is independent of sockets.

use super::Server;
use super::clients::{Connection, Endpoints, TooManyClients};
use super::metrics::Metrics;
use super::other_requests::OtherRequest;
use super::users::User;
use crate::log;
use crate::output::ZeroCopyValues;
use std::cell::Cell;
use std::sync::Arc;

/// The version of RESP that a client has chosen with `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// The default version.
    #[default]
    Resp2,
    /// The version with maps, sets, doubles and pushes.
    Resp3,
}

/// The state of a connection in any protocol, apart from its socket and buffers.
///
/// [`Server::connect`](super::Server::connect) creates a client that `CLIENT LIST` contains. A
/// default client is not in the list, and has metrics of its own.
#[derive(Debug, Default)]
pub struct Client<S> {
    /// The number of the connection, which `CLIENT ID` returns. Later connections have greater
    /// numbers.
    pub id: u64,
    /// The RESP version.
    pub version: Version,
    /// Whether the connection is to be closed after this reply, because of `QUIT` or a `CLIENT
    /// KILL` of itself.
    pub closing: bool,
    pub(crate) state: State,
    /// The user, if known.
    pub(crate) user: Option<Arc<User>>,
    /// What the protocol stores for the connection.
    pub(crate) session: S,
    pub(crate) connection: Arc<Connection>,
    pub(crate) metrics: Arc<Metrics>,
    /// What a request waits for that this node of a cluster does not execute now.
    pub(crate) cluster_wait: Cell<ClusterWait>,
    /// Whether requests that other nodes of the cluster have to execute are refused in any case:
    /// other nodes forward them to this one.
    pub(crate) is_forwarded: bool,
    /// Values of replies that are sent without a copy.
    pub(crate) zero_copy: ZeroCopyValues,
}

/// What a request waits for that this node of a cluster does not execute now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClusterWait {
    /// Nothing: it is executed or refused.
    #[default]
    Nothing,
    /// Its slot, which this node or another one is about to serve.
    Slot,
    /// The reply of the owner of its slot, to which it is forwarded.
    Owner,
    /// Nothing any more: the owner of its slot has executed its part.
    Ended,
}

/// State that is checked before every command. It is [`PLAIN`](Self::PLAIN) for nearly all clients,
/// so that one comparison suffices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The user has all permissions.
    pub(crate) trusted: bool,
    /// Requests are queued for `EXEC`.
    pub(crate) queues: bool,
    /// Which replies are sent.
    pub(crate) reply_mode: ReplyMode,
}

/// Which replies are sent: set by `CLIENT REPLY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    /// The reply to the next command is not sent.
    SkipNext,
    /// The reply to the current command is not sent.
    Skip,
    /// No replies are sent.
    Off,
}

impl State {
    /// The state of a client with all permissions, outside of transactions.
    pub(crate) const PLAIN: Self = Self { trusted: true, queues: false, reply_mode: ReplyMode::On };
}

/// What a protocol stores for a connection.
pub trait Session: Default + std::fmt::Debug {
    /// Returns the bytes of memory of requests that are queued.
    fn queued_len(&self) -> usize;
}

impl<S: Session> Client<S> {
    /// Creates a client with this number that `CLIENT LIST` does not contain.
    pub fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    /// Returns whether the connection is closed or marked to be closed, for example by
    /// `CLIENT KILL`.
    pub fn is_killed(&self) -> bool {
        self.connection.is_killed()
    }

    /// Returns whether the client has logged in, or need not. Until then its requests are limited:
    /// see [`Limits::before_auth`](crate::resp::Limits::before_auth).
    pub fn is_authenticated(&self, server: &Server) -> bool {
        self.user.is_some() || server.users().open().is_some()
    }

    /// Returns whether the user is known to have all permissions. Returns false before the first
    /// permission check of a connection, which determines its user.
    #[inline]
    pub fn may_all(&self) -> bool {
        self.state.trusted
    }

    /// Logs in. Returns false if the password is wrong or the user is disabled.
    pub fn log_in(&mut self, server: &Server, name: &[u8], password: &[u8]) -> bool {
        let user = server.users().log_in(name, password);
        if let Some(user) = user {
            self.become_user(user);
            return true;
        }
        log::login_failed(self.peer(), name);
        false
    }

    /// Returns the user, which is the default user if no login is required.
    pub(crate) fn current_user(&mut self, server: &Server) -> Option<&User> {
        if self.user.is_none() {
            let open = server.users().open();
            if let Some(user) = open {
                self.become_user(user);
            }
        }
        self.user.as_deref()
    }

    /// Returns the user, or the default user if no login is required, and changes nothing.
    pub(crate) fn effective_user(&self, server: &Server) -> Option<Arc<User>> {
        self.user.clone().or_else(|| server.users().open())
    }

    /// Returns whether requests are queued for `EXEC`.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.state.queues
    }

    /// Applies the current permissions of the user. Returns false if the user was removed or lost
    /// permissions: then the connection must be closed.
    pub(crate) fn renew_user(&mut self, server: &Server) -> bool {
        let Some(user) = &self.user else { return true };
        let renewed = server.users().renewed(user);
        match renewed {
            Some(user) => {
                self.become_user(user);
                true
            }
            None => false,
        }
    }

    /// Returns whether the client gets the reply to its next request, and notes that it has been
    /// executed.
    pub(crate) fn takes_reply(&mut self) -> bool {
        let reply_mode = &mut self.state.reply_mode;
        match *reply_mode {
            ReplyMode::On => true,
            ReplyMode::Off => false,
            ReplyMode::Skip | ReplyMode::SkipNext => {
                *reply_mode = ReplyMode::On;
                false
            }
        }
    }

    /// Returns the bytes of queued requests and watched keys.
    #[inline]
    pub fn queued_len(&self) -> usize {
        self.session.queued_len()
    }

    /// Notes that the connection is closed. Returns whether it was marked to be closed: then
    /// [`Clients::note_closed`](super::Clients::note_closed) must be called once its memory is
    /// free.
    pub(crate) fn close(&self) -> bool {
        self.connection.lifecycle.close()
    }

    /// Publishes the lengths of the connection's buffers in bytes, for `CLIENT LIST` and for
    /// closing clients when memory is short. `input` is not executed yet, `room` is unused
    /// capacity, `output` is unsent, and `output_buffer` is the memory of that output without items
    /// of the cache.
    pub fn set_buffers(&self, input: usize, room: usize, output: usize, output_buffer: usize) {
        self.connection.input_len.set(input as u64);
        self.connection.input_room.set(room as u64);
        self.connection.output_len.set(output as u64);
        self.connection.output_buffer_len.set(output_buffer as u64);
    }

    /// Returns whether the connection had no incomplete request and no unsent reply at the last
    /// call of [`set_buffers`](Self::set_buffers).
    pub(crate) fn is_without_buffers(&self) -> bool {
        self.connection.input_len.get() == 0 && self.connection.output_len.get() == 0
    }

    /// Records that the connection made progress at this time, in seconds of the workers' clock:
    /// replies were sent, requests were executed and no reply is unsent, or nothing is pending.
    pub(crate) fn note_progress(&self, now_s: u64) {
        self.connection.progress_s.set(now_s);
    }

    /// Counts that the client must read replies before more are produced.
    #[cold]
    pub(crate) fn note_output_limit(&self) {
        self.metrics.add_output_limit();
        log::output_limit_hit(self.peer());
    }

    /// Returns the address of the client.
    pub(crate) fn peer(&self) -> &str {
        &self.connection.endpoints.peer
    }

    /// Sets the user.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        self.state.trusted = user.permissions.are_all();
        self.connection.update_info(|info| user.name().clone_into(&mut info.user));
        self.user = Some(user);
    }

    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.connection.resp3.set((version == Version::Resp3).into());
    }

    /// Begins a request of this length in bytes, in a protocol other than RESP, for the metrics.
    #[inline]
    pub fn begin(&self, server: &Server, request_len: usize) {
        self.metrics.begin(Metrics::is_short_len(request_len, &server.settings), &server.settings);
    }

    /// Ends the request that [`begin`](Self::begin) began: counts it under its kind. The tuple has
    /// the kind, and the lengths in bytes of request and reply.
    #[inline]
    pub fn end(
        &self,
        server: &Server,
        (other, request_len, reply_len): (OtherRequest, usize, usize),
        now_ms: u64,
    ) {
        let number = other.number();
        let short = Metrics::is_short_len(request_len, &server.settings);
        self.metrics.end(number, (short, reply_len), &server.settings);
        self.connection.command.set(number as u64 + 1);
        self.connection.active_ms.set(now_ms);
    }
}

impl Server {
    /// Creates the client of a new connection of the thread with these metrics.
    ///
    /// # Errors
    ///
    /// [`TooManyClients`] if `maxclients` is reached.
    pub fn connect<S: Session>(
        &self,
        metrics: &Arc<Metrics>,
        endpoints: Endpoints,
        now_ms: u64,
    ) -> Result<Client<S>, TooManyClients> {
        if self.clients.len() as u64 >= self.settings.max_clients() {
            self.clients.add_refused();
            log::connection_refused(&endpoints.peer, self.settings.max_clients());
            return Err(TooManyClients);
        }
        let connection = self.clients.open(endpoints, now_ms);
        metrics.add_connection();
        let metrics = Arc::clone(metrics);
        Ok(Client { id: connection.id, connection, metrics, ..Client::default() })
    }
}
