//! The list of connections, for `CLIENT LIST` and `CLIENT KILL`.

use super::catalog::Catalog;
use super::counter::Counter;
use super::other_requests;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The addresses of a connection.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// The address of the client, such as `127.0.0.1:40000`; `unix` for a socket file.
    pub peer: String,
    /// The address of the server, in the same form.
    pub local: String,
    /// The file descriptor of the connection.
    pub fd: i32,
}

/// All connections.
#[derive(Debug, Default)]
pub struct Clients {
    open: Arc<Open>,
    last_id: AtomicU64,
    kills: AtomicU64,
    /// Connections that were marked to be closed.
    marks: AtomicU64,
    /// Connections that are marked and whose memory is not free yet.
    closing: Arc<AtomicU64>,
    /// Total of connections that were closed for the memory of their buffers.
    output_closed: AtomicU64,
    refused: AtomicU64,
    http_refused: AtomicU64,
}

/// A connection was refused because `maxclients` was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyClients;

impl TooManyClients {
    /// The error for the client, with the text of Redis.
    pub const TEXT: &str = "ERR max number of clients reached";
}

type Open = Mutex<BTreeMap<u64, Weak<Connection>>>;

impl Clients {
    pub(crate) fn open(&self, endpoints: Endpoints, now_ms: u64) -> Arc<Connection> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut connection = Connection::default();
        connection.id = id;
        connection.endpoints = endpoints;
        connection.since_ms = now_ms;
        connection.clients = Arc::downgrade(&self.open);
        connection.closing = Arc::clone(&self.closing);
        connection.active_ms.set(now_ms);
        let connection = Arc::new(connection);
        lock(&self.open).insert(id, Arc::downgrade(&connection));
        connection
    }

    /// Returns the number of open connections.
    pub fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Returns whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts a connection that was refused because of the maximum number of connections.
    pub fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many connections were refused because of the maximum number of connections.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts a connection that was closed because HTTP arrived on it.
    pub fn add_http_refused(&self) {
        self.http_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many connections were closed because HTTP arrived on them.
    pub fn http_refused(&self) -> u64 {
        self.http_refused.load(Ordering::Relaxed)
    }

    /// Returns how many connections other connections have closed with `CLIENT KILL`.
    pub fn kills(&self) -> u64 {
        self.kills.load(Ordering::Acquire)
    }

    /// Returns how many connections were closed for the memory of their buffers: because of a
    /// client-output limit, or because memory was short.
    pub fn output_closed(&self) -> u64 {
        self.output_closed.load(Ordering::Relaxed)
    }

    /// Counts a connection that is closed for the memory of its buffers.
    pub(crate) fn add_output_closed(&self) {
        self.output_closed.fetch_add(1, Ordering::Relaxed);
    }

    /// Marks a connection to be closed for the memory of its buffers. Returns false if it is marked
    /// or closed already.
    pub(crate) fn shed(&self, connection: &Connection) -> bool {
        let is_marked = self.mark(connection);
        if is_marked {
            self.add_output_closed();
        }
        is_marked
    }

    /// Marks a connection to be closed. Returns false if it is marked or closed already.
    fn mark(&self, connection: &Connection) -> bool {
        // Counted first, since its thread may close it at once.
        self.closing.fetch_add(1, Ordering::AcqRel);
        let is_marked = connection.lifecycle.mark();
        if is_marked {
            self.marks.fetch_add(1, Ordering::Release);
        } else {
            self.closing.fetch_sub(1, Ordering::AcqRel);
        }
        is_marked
    }

    /// Returns whether connections are marked to be closed and their memory is not free yet.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire) > 0
    }

    /// Records that the memory of this many marked connections is free. Returns whether the memory
    /// of all marked connections is.
    pub(crate) fn note_closed(&self, count: u64) -> bool {
        self.closing.fetch_sub(count, Ordering::AcqRel) == count
    }

    /// Returns how many connections were marked to be closed so far. When the number has changed,
    /// each worker thread closes its connections for which
    /// [`Client::is_killed`](super::Client::is_killed) is true.
    pub fn marks(&self) -> u64 {
        self.marks.load(Ordering::Acquire)
    }

    /// Returns all connections, by number.
    pub(crate) fn all(&self) -> Vec<Arc<Connection>> {
        // The lock is released before any of them is dropped, which takes it.
        let open = lock(&self.open);
        let all = open.values().filter_map(Weak::upgrade).collect();
        drop(open);
        all
    }

    /// Returns the number of connections, and those that hold the most memory, at most this many.
    pub(super) fn largest(
        &self,
        now_ms: u64,
        max: usize,
        catalog: &Catalog,
    ) -> (usize, Vec<ClientSummary>) {
        let mut all = self.all();
        let count = all.len();
        // Read once, since workers change them meanwhile.
        all.sort_by_cached_key(|one| {
            (std::cmp::Reverse(one.bytes()), std::cmp::Reverse(one.active_ms.get()), one.id)
        });
        all.truncate(max);
        (count, all.iter().map(|one| one.summary(now_ms, catalog)).collect())
    }

    /// Marks a connection to be closed, and counts that it was killed.
    pub(crate) fn kill(&self, connection: &Connection) {
        self.mark(connection);
        self.kills.fetch_add(1, Ordering::Relaxed);
    }
}

/// The public state of a connection. Only its own thread writes here, except `lifecycle`, which any
/// thread may mark.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) endpoints: Endpoints,
    since_ms: u64,
    pub(crate) lifecycle: Lifecycle,
    info: Mutex<ClientInfo>,
    pub(crate) active_ms: Counter,
    /// The number of the last command, plus one.
    pub(crate) command: Counter,
    pub(crate) resp3: Counter,
    /// The number of queued requests plus one; zero outside of a transaction.
    pub(crate) queued: Counter,
    pub(crate) queued_len: Counter,
    pub(crate) unevictable: Counter,
    pub(crate) untouching: Counter,
    pub(crate) input_len: Counter,
    pub(crate) input_room: Counter,
    /// Bytes of unread replies, with items that are sent without a copy.
    pub(crate) output_len: Counter,
    /// Bytes of memory of those replies, without items.
    pub(crate) output_buffer_len: Counter,
    /// When it last made progress, in seconds of the workers' clock: see
    /// [`Client::note_progress`](super::Client::note_progress).
    pub(crate) progress_s: Counter,
    clients: Weak<Open>,
    /// Shared with [`Clients`].
    closing: Arc<AtomicU64>,
}

/// Whether a connection is open, is marked to be closed, or is closed.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle(AtomicU8);

impl Lifecycle {
    const OPEN: u8 = 0;
    const MARKED: u8 = 1;
    const CLOSED: u8 = 2;

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::OPEN
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::MARKED
    }

    /// Marks an open connection. Returns false if it is not open.
    fn mark(&self) -> bool {
        let (from, to) = (Self::OPEN, Self::MARKED);
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Notes that the connection is closed. Returns whether it was marked.
    pub(crate) fn close(&self) -> bool {
        self.0.swap(Self::CLOSED, Ordering::AcqRel) == Self::MARKED
    }
}

/// A connection for the live page.
#[derive(Debug)]
pub(crate) struct ClientSummary {
    pub(crate) id: u64,
    pub(crate) peer: String,
    pub(crate) info: ClientInfo,
    pub(crate) age_s: u64,
    pub(crate) idle_s: u64,
    /// The last command.
    pub(crate) command: &'static str,
    /// Memory of the connection.
    pub(crate) bytes: u64,
}

/// What a client has sent about itself, and its user.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(open) = self.clients.upgrade() {
            lock(&open).remove(&self.id);
        }
        // Here no worker has closed the connection, for example at the end of the server.
        if self.lifecycle.close() {
            self.closing.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Connection {
    pub(crate) fn is_killed(&self) -> bool {
        !self.lifecycle.is_open()
    }

    /// Returns what the client has sent about itself.
    pub(crate) fn info(&self) -> ClientInfo {
        lock(&self.info).clone()
    }

    /// Returns the bytes of memory of incomplete and queued requests.
    pub(crate) fn input_bytes(&self) -> u64 {
        self.input_len.get() + self.input_room.get() + self.queued_len.get()
    }

    /// Changes what the client has sent about itself.
    pub(crate) fn update_info(&self, change: impl FnOnce(&mut ClientInfo)) {
        change(&mut lock(&self.info));
    }

    /// Returns the bytes of memory of the connection, as `CLIENT LIST` shows them.
    fn bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.input_bytes() + self.output_len.get()
    }

    /// Returns the name of the last command, or `NULL` as Redis does.
    fn last_command(&self, catalog: &Catalog) -> &'static str {
        (self.command.get() as usize)
            .checked_sub(1)
            .and_then(|number| other_requests::names(catalog).nth(number))
            .unwrap_or("NULL")
    }

    fn summary(&self, now_ms: u64, catalog: &Catalog) -> ClientSummary {
        let seconds = |since_ms| now_ms.saturating_sub(since_ms) / 1000;
        ClientSummary {
            id: self.id,
            peer: self.endpoints.peer.clone(),
            info: self.info(),
            age_s: seconds(self.since_ms),
            idle_s: seconds(self.active_ms.get()),
            command: self.last_command(catalog),
            bytes: self.bytes(),
        }
    }

    /// Returns the line of `CLIENT LIST`.
    pub(crate) fn line(&self, now_ms: u64, catalog: &Catalog) -> String {
        let Endpoints { peer, local, fd } = &self.endpoints;
        let ClientInfo { name, user, library, library_version } = self.info();
        let seconds = |since_ms| now_ms.saturating_sub(since_ms) / 1000;
        let (age, idle) = (seconds(self.since_ms), seconds(self.active_ms.get()));
        let queued = self.queued.get();
        let multi = queued.cast_signed() - 1;
        let mut flags = String::new();
        for (set, flag) in
            [(queued > 0, 'x'), (self.unevictable.get() > 0, 'e'), (self.untouching.get() > 0, 'T')]
        {
            flags.extend(set.then_some(flag));
        }
        let flags = if flags.is_empty() { "N" } else { &flags };
        let (qbuf, free) = (self.input_len.get(), self.input_room.get());
        let (obl, multi_mem) = (self.output_len.get(), self.queued_len.get());
        let (tot_mem, command) = (self.bytes(), self.last_command(catalog));
        let user = if user.is_empty() { super::users::DEFAULT.to_owned() } else { user };
        let resp = 2 + self.resp3.get();
        let id = self.id;
        format!(
            "id={id} addr={peer} laddr={local} fd={fd} name={name} age={age} idle={idle} \
             flags={flags} db=0 sub=0 psub=0 ssub=0 multi={multi} qbuf={qbuf} qbuf-free={free} \
             argv-mem=0 multi-mem={multi_mem} rbs=0 rbp=0 obl={obl} oll=0 omem=0 \
             tot-mem={tot_mem} events=r cmd={command} user={user} redir=-1 resp={resp} \
             lib-name={library} lib-ver={library_version}"
        )
    }
}
