//! The state of a connection that is independent of sockets.

use super::Server;
use super::clients::{Connection, Endpoints, TooManyClients};
use super::metrics::Metrics;
use super::other_requests::OtherRequest;
use super::users::User;
use crate::log;
use crate::output::ZeroCopyValues;
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

/// The state of a connection in any protocol.
///
/// [`Server::connect`](super::Server::connect) creates one that `CLIENT LIST` contains. A default
/// one is in no list, and has its own metrics.
#[derive(Debug, Default)]
pub struct Client<S> {
    /// The number of the connection. Later connections have greater numbers.
    pub id: u64,
    /// The RESP version.
    pub version: Version,
    /// Whether the client asked to be closed after this reply.
    pub closing: bool,
    pub(crate) state: State,
    /// The user, if known.
    pub(crate) user: Option<Arc<User>>,
    /// What the protocol stores for the connection.
    pub(crate) session: S,
    pub(crate) connection: Arc<Connection>,
    pub(crate) metrics: Arc<Metrics>,
    /// Values of replies that are sent without a copy.
    pub(crate) zero_copy: ZeroCopyValues,
}

/// State that every command checks. It has the value [`PLAIN`](Self::PLAIN) for nearly all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The user has all permissions.
    pub(crate) trusted: bool,
    /// Requests are queued for `EXEC`.
    pub(crate) queues: bool,
    /// Which replies are sent.
    pub(crate) answers: Answers,
}

/// Which replies are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    #[default]
    All,
    /// All except that of the next command.
    SkipNext,
    /// All except that of this command.
    Skip,
    None,
}

impl State {
    /// The state of a client with all permissions, outside of transactions.
    pub(crate) const PLAIN: Self = Self { trusted: true, queues: false, answers: Answers::All };
}

/// What a protocol stores for a connection.
pub trait Session: Default + std::fmt::Debug {
    /// Returns the bytes of memory of requests that are queued.
    fn queued_len(&self) -> usize;
}

impl<S: Session> Client<S> {
    /// Creates a client with this number that is in no list.
    pub fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    /// Returns whether the connection is marked to be closed, for example by `CLIENT KILL`.
    pub fn is_killed(&self) -> bool {
        self.connection.is_killed()
    }

    /// Returns whether the client has logged in, or need not. Until then its requests are limited:
    /// see [`Limits::before_auth`](crate::resp::Limits::before_auth).
    pub fn is_authenticated(&self, server: &Server) -> bool {
        self.user.is_some() || server.users().open().is_some()
    }

    /// Returns whether the user is known to have all permissions. It is unknown at first.
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

    /// Publishes the buffers of the connection, in bytes: input that is not executed, unused
    /// capacity, unsent output, and the memory of that output without items. `CLIENT LIST` contains
    /// them.
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

    /// Notes that replies were sent, or requests executed with no reply unsent, or that nothing
    /// is pending, in seconds of the workers' clock.
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

    /// Begins a request of this length.
    #[inline]
    pub fn begin(&self, server: &Server, request_len: usize) {
        self.metrics.begin(Metrics::is_short_len(request_len, &server.settings), &server.settings);
    }

    /// Ends the request that [`begin`](Self::begin) began.
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
