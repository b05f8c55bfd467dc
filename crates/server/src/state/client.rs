//! What a connection has set for itself.

use super::Server;
use super::clients::Connection;
use super::metrics::Metrics;
use super::permissions::Denied;
use super::users::User;
use crate::log;
use crate::output::Lent;
use crate::resp::Version;
use crate::resp::commands::connection::transactions::Transaction;
use crate::resp::commands::lookup;
use std::sync::Arc;

/// The state of one connection, whatever it speaks; versions and transactions are RESP's alone.
///
/// [`Server::connect`](super::Server::connect) makes one that `CLIENT LIST` shows. The default one
/// belongs to no server's list, and counts for itself alone.
#[derive(Debug, Default)]
pub struct Client {
    /// The connection's number; later ones have greater numbers.
    pub id: u64,
    /// The version of the protocol it has chosen.
    pub version: Version,
    /// It asked to be closed, once this answer is sent.
    pub closing: bool,
    pub(crate) state: State,
    /// Who it has logged in as.
    pub(crate) user: Option<Arc<User>>,
    /// What waits for `EXEC`, and what is watched for it.
    pub(crate) transaction: Transaction,
    pub(crate) connection: Arc<Connection>,
    pub(crate) metrics: Arc<Metrics>,
    /// Values of its answers that are not in their buffer.
    pub(crate) lent: Lent,
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

impl Client {
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

    /// What is denied of a request in another protocol, which amounts to this command of RESP over
    /// these keys; nothing if it may be executed.
    pub fn admit<'k>(
        &mut self,
        server: &Server,
        command: &str,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<(), Denied> {
        if self.may_all() {
            return Ok(());
        }
        let user = self.current_user(server).ok_or(Denied::All)?;
        let found = lookup(command.as_bytes()).ok_or(Denied::Command)?;
        user.permissions.check_keys(found, keys)
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
        self.transaction.bytes()
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
        self.connection.say(|words| user.name().clone_into(&mut words.user));
        self.user = Some(user);
    }

    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.connection.resp3.set((version == Version::Resp3).into());
    }

    /// As it was when it connected, but for its number.
    pub(crate) fn reset(&mut self) {
        self.set_version(Version::default());
        self.state = State::default();
        self.user = None;
        self.transaction = Transaction::default();
        self.note_queued();
        self.connection.say(|words| {
            words.name.clear();
            words.user.clear();
        });
        self.connection.unevictable.set(0);
        self.connection.untouching.set(0);
    }

    /// Forgets what is queued and watched.
    pub(crate) fn leave_transaction(&mut self) {
        self.transaction = Transaction::default();
        self.state.queues = false;
        self.note_queued();
    }

    /// Shows others how many requests wait.
    pub(crate) fn note_queued(&self) {
        let queued = if self.state.queues { 1 + self.transaction.len() as u64 } else { 0 };
        self.connection.queued.set(queued);
        self.connection.queued_len.set(self.transaction.bytes() as u64);
    }
}
