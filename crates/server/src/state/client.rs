//! What a connection has set for itself.

use super::Server;
use super::clients::{Connection, Endpoints, TooManyClients};
use super::metrics::Metrics;
use super::other_requests::OtherRequest;
use super::users::User;
use crate::log;
use crate::output::ZeroCopyValues;
use std::sync::Arc;

/// The version of the protocol a client has chosen with `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// What every client speaks until it says otherwise.
    #[default]
    Resp2,
    /// The version with maps, sets, doubles and pushes.
    Resp3,
}

/// The state of one connection, whatever it speaks; versions and transactions are RESP's alone.
///
/// [`Server::connect`](super::Server::connect) makes one that `CLIENT LIST` shows. The default one
/// belongs to no server's list, and counts for itself alone.
#[derive(Debug, Default)]
pub struct Client<S> {
    /// The connection's number; later ones have greater numbers.
    pub id: u64,
    /// The version of the protocol it has chosen.
    pub version: Version,
    /// It asked to be closed, once this answer is sent.
    pub closing: bool,
    pub(crate) state: State,
    /// Who it has logged in as.
    pub(crate) user: Option<Arc<User>>,
    /// What the protocol remembers of the connection.
    pub(crate) session: S,
    pub(crate) connection: Arc<Connection>,
    pub(crate) metrics: Arc<Metrics>,
    /// Values of its answers that are not in their buffer.
    pub(crate) zero_copy: ZeroCopyValues,
}

/// What every command has to look at, before it runs or after. Usually nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// It may do everything, and nobody needs to ask.
    pub(crate) trusted: bool,
    /// Requests are queued for `EXEC`.
    pub(crate) queues: bool,
    /// Which answers are sent.
    pub(crate) answers: Answers,
}

/// Which answers are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    #[default]
    All,
    /// All but that to the next command.
    SkipNext,
    /// All but that to this command.
    Skip,
    None,
}

impl State {
    /// What nearly every command finds.
    pub(crate) const PLAIN: Self = Self { trusted: true, queues: false, answers: Answers::All };
}

/// What a protocol remembers of a connection.
pub trait Session: Default + std::fmt::Debug {
    /// Returns the bytes of memory of requests that are queued.
    fn queued_len(&self) -> usize;
}

impl<S: Session> Client<S> {
    /// A client with this number, of which no list knows.
    pub fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    /// Somebody else asked for the connection to be closed, with `CLIENT KILL`.
    pub fn is_killed(&self) -> bool {
        self.connection.is_killed()
    }

    /// Whether the client has logged in, or need not. Before that a request may not be as long:
    /// see [`Limits::before_auth`](crate::resp::Limits::before_auth).
    pub fn is_authenticated(&self, server: &Server) -> bool {
        self.user.is_some() || server.users().open().is_some()
    }

    /// Whether it may do everything, so that nobody needs to ask. At first that is not known.
    #[inline]
    pub fn may_all(&self) -> bool {
        self.state.trusted
    }

    /// Logs in; false if the password is wrong, or the user may not.
    pub fn log_in(&mut self, server: &Server, name: &[u8], password: &[u8]) -> bool {
        let user = server.users().log_in(name, password);
        if let Some(user) = user {
            self.become_user(user);
            return true;
        }
        log::login_failed(self.peer(), name);
        false
    }

    /// The user it has logged in as, or the one that clients are without logging in.
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

    /// Adopts the rights that its user has now. Returns false if the user was removed, or has lost
    /// rights: then the connection must be closed.
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

    /// Bytes of the requests that wait for `EXEC`, and of the keys that are watched.
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

    /// Publishes the buffers of the connection, in bytes: input that is not executed yet, room
    /// after it, unsent output, and the memory of that output without items of the cache.
    /// `CLIENT LIST` shows them.
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

    /// It must take some of its answers before it gets more.
    #[cold]
    pub(crate) fn note_output_limit(&self) {
        self.metrics.add_output_limit();
        log::output_limit_hit(self.peer());
    }

    /// Where it connects from.
    pub(crate) fn peer(&self) -> &str {
        &self.connection.endpoints.peer
    }

    /// From here on the client is this user.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        self.state.trusted = user.permissions.are_all();
        self.connection.update_info(|info| user.name().clone_into(&mut info.user));
        self.user = Some(user);
    }

    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.connection.resp3.set((version == Version::Resp3).into());
    }

    /// A request of so many bytes begins.
    #[inline]
    pub fn begin(&self, server: &Server, request_len: usize) {
        self.metrics.begin(Metrics::is_short_len(request_len, &server.settings), &server.settings);
    }

    /// The request is done that [began](Self::begin) last.
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
    /// A new connection, which belongs to the thread that counts in `metrics`.
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
