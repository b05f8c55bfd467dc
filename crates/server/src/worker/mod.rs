//! Worker threads: each has its own connections, reactor and cache session.

mod clock;
mod closing;
mod decoder;
mod expiring;
pub(crate) mod heap;
mod input;
mod pressure;
mod spare_buffers;
#[cfg(test)]
mod tests;
mod upkeep;

use crate::log;
use crate::memcache::driver::MemcacheDriver;
use crate::memcache::forwarded::MemcachedRequests;
use crate::mrcache::driver::MrcacheDriver;
use crate::net::accepting::Listeners;
use crate::net::batch::{Batch, Resources};
use crate::net::connection::MAX_KEPT_CAPACITY;
use crate::net::connection::state::State;
use crate::net::connections::Connections;
use crate::net::disk::Disk;
use crate::net::driver::Driver;
use crate::net::forwarding::Forwards;
use crate::net::listener::Listening;
use crate::net::reactor::{BUFFER_LEN, Backend, Event, Number, Reactor, Waker};
use crate::net::work::{Held, Source, Work};
use crate::output::Outgoing;
use crate::pmc::driver::PmcDriver;
use crate::protocol::Framing;
use crate::protocol::Protocol;
use crate::resp::driver::RespDriver;
use crate::state::MemcachedState;
use crate::state::{Client, Endpoints, Metrics, Server, TooManyClients};
use crate::tls::{Session as TlsSession, Tls};
use clock::Clock;
use decoder::{Connection, ProtocolDecoder};
use nuthatch_cache::Session;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
};
use rustix::net::{Shutdown, SocketAddrAny};
use spare_buffers::SpareBuffers;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Maximum and minimum number of receive buffers of a worker.
const MAX_BUFFERS: u64 = 256;
const MIN_BUFFERS: u64 = 16;
/// The receive buffers of all workers use at most one of this many bytes of the budget, unless
/// [`MIN_BUFFERS`] need more.
const BUFFERS_RATIO: u64 = 16;

/// Minimum change of a worker's memory that is reported to the server.
const MIN_REPORTED_CHANGE: isize = 64 << 10;

/// Output of at least this many bytes is sent before the next batch is executed, while it is still
/// in the processor's cache.
const MIN_EARLY_SEND_LEN: usize = 64 << 10;

/// Unanswered probes after which an idle connection is closed.
const KEEPALIVE_PROBES: u64 = 3;

/// State that workers share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) server: Server,
    pub(crate) threads: usize,
    pub(crate) reactor: Backend,
    memcache: Arc<MemcachedState>,
    tls: RwLock<Option<Tls>>,
    /// How often the certificates were replaced.
    tls_changes: AtomicU64,
    wakers: Mutex<Vec<Waker>>,
}

impl Common {
    pub(crate) fn new(
        mut server: Server,
        threads: usize,
        tls: Option<Tls>,
        reactor: Backend,
    ) -> Self {
        let memcache = Arc::new(MemcachedState::new(threads));
        let forwarded_requests = MemcachedRequests(Arc::clone(&memcache));
        server.forwarded_requests = Some(Arc::new(forwarded_requests));
        server.set_certificate_expiry(tls.as_ref().map(Tls::expiry).unwrap_or_default());
        Self {
            server,
            threads,
            reactor,
            memcache,
            tls: RwLock::new(tls),
            tls_changes: AtomicU64::new(0),
            wakers: Mutex::default(),
        }
    }

    fn enroll(&self, waker: Waker) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    /// Makes all workers stop.
    pub(crate) fn stop(&self) {
        self.server.stop();
        self.wake();
    }

    /// Makes all workers accept no more connections, complete requests in progress, and stop.
    pub(crate) fn drain(&self, patience: Duration) {
        if self.server.drain(patience) {
            self.wake();
        }
    }

    /// Replaces the certificates for new connections. Workers then close connections whose client
    /// certificate is no longer accepted.
    pub(crate) fn replace_tls(&self, tls: Tls) {
        self.server.set_certificate_expiry(tls.expiry());
        *self.tls.write().unwrap_or_else(PoisonError::into_inner) = Some(tls);
        self.tls_changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the certificates for new connections.
    fn tls(&self) -> Option<Tls> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins TLS on a new connection; `None` if there are no certificates.
    fn tls_session(&self) -> Option<io::Result<TlsSession>> {
        self.tls().map(|tls| tls.session())
    }

    /// Returns whether workers must stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.server.is_stopping()
    }

    /// Wakes all workers, so that they apply changes.
    pub(crate) fn wake(&self) {
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.iter().for_each(Waker::wake);
    }
}

/// A worker thread.
pub(crate) struct Worker<'c> {
    common: &'c Common,
    reactor: Reactor,
    listeners: Listeners,
    connections: Connections<ProtocolDecoder>,
    session: Session<'c>,
    batch: Batch,
    /// The disk tier, if there is one.
    disk: Option<Disk>,
    /// Forwards requests to other nodes of a cluster, if there is one.
    forwards: Option<Forwards>,
    /// Input of this iteration, by protocol.
    works: [Vec<Work>; Protocol::COUNT],
    /// Output buffers to be used again.
    spare_buffers: SpareBuffers,
    /// Bytes of memory of the receive buffers.
    buffers_len: usize,
    /// Whether memory is scarce, so that unused capacity is freed.
    saves_memory: bool,
    /// Connections that may have something to send or to receive.
    touched: Vec<Number>,
    /// Connections whose requests wait for the next iteration.
    waiting: Vec<Number>,
    /// Connections whose requests wait until the memory of clients that are being closed is free.
    starving: Vec<Number>,
    /// Connections whose requests wait for slots of the cluster.
    slot_waiters: Vec<Number>,
    /// How often the slots of the cluster had changed before this iteration.
    slot_changes: u64,
    /// Connections that were marked to be closed and were removed in this iteration.
    closed: u64,
    /// Bytes by which the memory of this worker's connections and buffers has changed since it was
    /// last reported to the server.
    uncounted: isize,
    metrics: Arc<Metrics>,
    /// The numbers of marks, changed settings, replaced users and replaced certificates that this
    /// worker has handled.
    changes: [u64; 4],
    /// The clock, and periodic checks of connections.
    clock: Clock,
    /// When expired items are removed next, in milliseconds of the worker's clock.
    expires_at_ms: u64,
}

impl<'c> Worker<'c> {
    pub(crate) fn new(common: &'c Common, listeners: Vec<Listening>) -> io::Result<Self> {
        let buffers = buffers(common.server.cache.memory(), common.threads);
        // Counted before the buffers are allocated.
        common.server.hold((usize::from(buffers) * BUFFER_LEN).cast_signed());
        let mut reactor = Reactor::new(common.reactor, buffers)?;
        let listeners = Listeners::start(listeners, &mut reactor)?;
        common.enroll(reactor.waker());
        let disk = common.server.disk.clone();
        let disk = disk.map(|tiered| Disk::new(tiered, &mut reactor));
        let cluster = common.server.cluster.clone();
        let forwards = cluster.map(|cluster| Forwards::new(cluster, &reactor));
        Ok(Self {
            common,
            reactor,
            listeners,
            connections: Connections::default(),
            session: common.server.cache.session().map_err(io::Error::other)?,
            batch: Batch::new(&common.server),
            disk,
            forwards,
            works: Default::default(),
            spare_buffers: SpareBuffers::new(common.server.cache.memory()),
            buffers_len: usize::from(buffers) * BUFFER_LEN,
            saves_memory: false,
            touched: Vec::new(),
            waiting: Vec::new(),
            starving: Vec::new(),
            slot_waiters: Vec::new(),
            slot_changes: 0,
            closed: 0,
            uncounted: 0,
            metrics: common.server.thread(),
            changes: [0; 4],
            clock: Clock::default(),
            expires_at_ms: 0,
        })
    }

    /// Serves until the server stops.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::new();
        while !self.common.is_stopping() && !self.is_drained() {
            self.run_iteration(&mut events)?;
        }
        Ok(())
    }

    /// Runs one iteration: waits for events and handles all their consequences.
    fn run_iteration(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout_s = self.common.server.settings.timeout_s();
        let at_once = self.has_waiting().then_some(Duration::ZERO);
        let looks_s = timeout_s.or(self.common.server.settings.output_soft_limit().map(|_| 1));
        let (listens, idles) = (self.listeners.timeout(), self.clock.wait(looks_s));
        let waits = [at_once, listens, idles, self.expiry_wait(), self.drain_timeout()];
        self.reactor.wait(waits.into_iter().flatten().min(), events)?;
        self.metrics.begin_iteration();
        self.clock.read();
        if self.clock.is_due() {
            self.common.server.sample_rates();
        }
        if let Some(snapshots) = &self.common.server.snapshots {
            snapshots.renew_thread();
        }
        self.end_reads(events);
        self.take_done_by_disk();
        self.take_forwarded();
        self.resume_slot_waiters();
        self.resume_waiting();
        for event in events.drain(..) {
            self.take(event)?;
        }
        self.execute()?;
        self.start_reads()?;
        self.metrics.settle(&self.common.server.settings);
        self.expire();
        self.common.server.compression.refresh();
        self.common.server.hold_compression();
        self.forwards.iter().for_each(|forwards| forwards.count_memory(&self.common.server));
        self.apply_changes();
        self.close_idle(timeout_s);
        self.close_discarding();
        self.receive_unreported()?;
        self.apply_memory_pressure();
        self.close_drained();
        self.send()?;
        self.shed_buffers();
        self.return_freed_memory();
        self.listeners.resume_if_due(&mut self.reactor)?;
        self.metrics.end_iteration();
        Ok(())
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Accepted { listener, socket, more } => {
                let error = socket.map(|socket| self.add_connection(socket, listener)).err();
                if !self.listeners.is_closed() {
                    error.iter().for_each(log::accept_failed);
                }
                if !more {
                    self.listeners.note_ended(listener, error.as_ref(), &mut self.reactor)?;
                }
            }
            Event::Received { connection, bytes, more } => {
                self.touched.push(connection);
                if let Some(found) = self.connections.get(connection) {
                    found.operations.receiving = more;
                    match &bytes {
                        Ok(Some(_)) => self.clock.note_received(found),
                        Ok(None) => found.state.end_input(),
                        Err(error) if is_transient(error) => {}
                        Err(_) => found.state.shut_down(),
                    }
                }
                if let Ok(Some(filled)) = bytes {
                    self.metrics.add_received(filled.len() as u64);
                    self.receive(connection, filled);
                }
            }
            Event::Sent { connection, outgoing, result } => {
                self.touched.push(connection);
                let Some(found) = self.connections.get(connection) else { return Ok(()) };
                (found.operations.sending, found.operations.sending_buffer) = (0, 0);
                found.active_s = self.clock.now_s();
                found.client.note_progress(found.active_s);
                self.metrics.add_sent(outgoing.bytes().len() as u64);
                if result.is_err() {
                    found.state.shut_down();
                    found.drop_output();
                } else if let Outgoing::Bytes(mut buffer) = outgoing {
                    buffer.clear();
                    if found.out.capacity() == 0 && buffer.capacity() <= MAX_KEPT_CAPACITY {
                        found.out = buffer;
                    } else {
                        self.uncounted += self.spare_buffers.put(buffer);
                    }
                }
                self.unblock(connection);
            }
            Event::Read { .. } | Event::Woken => {}
        }
        Ok(())
    }

    fn add_connection(&mut self, socket: OwnedFd, listener: Number) {
        let (protocol, tls) = self.listeners.protocol_of(listener);
        let tls = match tls.then(|| self.common.tls_session()).flatten() {
            Some(Ok(session)) => Some(Box::new(session)),
            Some(Err(_)) => return,
            None => None,
        };
        // A Unix socket has no delay to disable.
        let _ = set_tcp_nodelay(&socket, true);
        let server = &self.common.server;
        if let Some(idle_s) = server.settings.keepalive_s() {
            keep_alive(&socket, idle_s);
        }
        let now_ms = self.session.guard().now_ms();
        let client = server.connect(&self.metrics, endpoints(&socket), now_ms);
        let (client, is_refused) = match client {
            Ok(client) => (client, false),
            Err(TooManyClients) => (Client::default(), true),
        };
        let mut connection = Connection::new(socket, protocol, client, server);
        connection.active_s = self.clock.now_s();
        connection.client.note_progress(connection.active_s);
        connection.tls = tls;
        connection.client.zero_copy.enable();
        if is_refused {
            connection.refuse(TooManyClients::TEXT);
            // Discarding its input would keep its file descriptor, of which there are too few.
            connection.state.end_discarding();
        }
        let number = self.connections.insert(connection);
        self.touched.push(number);
    }

    /// Executes the input of this iteration.
    fn execute(&mut self) -> io::Result<()> {
        self.execute_of::<RespDriver>(Protocol::Resp)?;
        self.execute_of::<MemcacheDriver>(Protocol::Memcache)?;
        self.execute_of::<PmcDriver>(Protocol::Pmc)?;
        self.execute_of::<MrcacheDriver>(Protocol::Mrcache(Framing::default()))
    }

    /// Executes the input of connections with one protocol.
    fn execute_of<D: Driver<ProtocolDecoder>>(&mut self, protocol: Protocol) -> io::Result<()> {
        let mut works = std::mem::take(&mut self.works[protocol.index()]);
        if !works.is_empty() {
            for work in &works {
                self.attach_buffer(work.connection);
            }
            self.batch.begin(works.len());
            while let Some(done) = self.execute_next::<D>(&works) {
                for work in &works[done] {
                    self.send_early(work.connection)?;
                }
            }
        }
        let server = &self.common.server;
        let mut begun = 0;
        let waiting = self.waiting.len();
        for (work, progress) in works.iter_mut().zip(self.batch.progress()) {
            self.touched.push(work.connection);
            if let Some(connection) = self.connections.get(work.connection) {
                connection.work = None;
                connection.keep(work, *progress, &self.reactor, server);
                connection.begin_in_place(&mut self.session, server);
                match progress.held {
                    _ if !connection.waits => {}
                    Some(Held::Memory) => self.starving.push(work.connection),
                    // Resumed when the disk is done, or the reply of the owner has arrived.
                    Some(Held::Disk | Held::Forward) => {}
                    Some(Held::Slot) => self.slot_waiters.push(work.connection),
                    None => {
                        self.waiting.push(work.connection);
                        begun += usize::from(!progress.is_none());
                    }
                }
            }
        }
        // The last connections were not served. They are the first ones in the next iteration.
        self.waiting[waiting..].rotate_left(begun);
        for work in works.drain(..) {
            match work.source {
                Source::Buffer(filled) => self.reactor.give_back(filled),
                Source::Inbox(_) => {}
            }
        }
        self.works[protocol.index()] = works;
        Ok(())
    }

    fn execute_next<D: Driver<ProtocolDecoder>>(&mut self, works: &[Work]) -> Option<Range<usize>> {
        let common = self.common;
        let mut resources = Resources {
            reactor: &self.reactor,
            connections: &mut self.connections,
            session: &mut self.session,
            server: &common.server,
            memcache: &common.memcache,
            disk: self.disk.as_ref(),
            forwards: self.forwards.as_ref(),
            shared: common.threads > 1,
            short_of_memory: common.server.is_short_of_memory(),
        };
        self.batch.execute_next::<ProtocolDecoder, D>(works, &mut resources)
    }

    /// Attaches an output buffer to a connection without one.
    fn attach_buffer(&mut self, number: Number) {
        if let Some(connection) = self.connections.get(number)
            && connection.out.capacity() == 0
            && let Some(spare) = self.spare_buffers.take()
        {
            self.uncounted -= spare.capacity().cast_signed();
            connection.out = spare;
        }
    }

    /// Sends long output while it is still in the processor's cache.
    fn send_early(&mut self, number: Number) -> io::Result<()> {
        let Some(connection) = self.connections.get(number) else { return Ok(()) };
        let short =
            connection.out.len() < MIN_EARLY_SEND_LEN && connection.client.zero_copy.is_empty();
        if short || connection.operations.sending > 0 || connection.state.is_shut_down() {
            return Ok(());
        }
        self.send_output(number)?;
        self.attach_buffer(number);
        self.reactor.submit()
    }

    /// Passes the output of a connection to the kernel.
    fn send_output(&mut self, number: Number) -> io::Result<()> {
        let Some(connection) = self.connections.get(number) else { return Ok(()) };
        if let Ok(outgoing) = connection.take_output(self.saves_memory) {
            connection.operations.sending = outgoing.bytes().len();
            connection.operations.sending_buffer = outgoing.buffered_len();
            if connection.tls.is_some() {
                // The encrypted bytes use memory in addition to the replies, which were counted.
                self.uncounted += connection.count_memory();
            }
            return self.reactor.send(&connection.socket, number, outgoing);
        }
        connection.state.shut_down();
        Ok(())
    }

    /// Sends output of connections, resumes receiving, and removes closed connections.
    fn send(&mut self) -> io::Result<()> {
        if self.common.server.cache.is_exhausted() {
            // Beginning a guard frees retired memory.
            drop(self.session.guard());
        }
        let (input_limit, max_input) = self.common.server.input_limits();
        while let Some(number) = self.touched.pop() {
            let Some(connection) = self.connections.get(number) else { continue };
            connection.enforce_input_before_login();
            if connection.is_too_long(input_limit) && !connection.state.is_closing() {
                if connection.may_wait_for_memory(&self.common.server) {
                    connection.waits = true;
                    self.starving.push(number);
                } else if !connection.discard_value(input_limit) {
                    connection.refuse_if_too_long(max_input);
                }
            }
            if self.saves_memory {
                connection.drop_unused();
            }
            self.uncounted += connection.count_memory();
            connection.enforce_output_limits(&self.common.server, self.clock.now_s());
            connection.publish_buffers(self.clock.now_s());
            // Input that arrived before the end is executed first.
            let is_pending = connection.blocked || connection.waits;
            if connection.state == State::ReadClosed && !is_pending {
                connection.state.close();
            }
            let may_send = connection.operations.sending == 0 && !connection.state.is_shut_down();
            if may_send && connection.has_output() {
                self.send_output(number)?;
            }
            let Some(connection) = self.connections.get(number) else { continue };
            if connection.operations.sending == 0 {
                match connection.state {
                    State::Discarding { .. } => {
                        connection.close_write();
                        self.clock.note_discarding();
                    }
                    State::Closing(_) => connection.state.shut_down(),
                    State::Open | State::ReadClosed | State::ShutDown(_) => {}
                }
            }
            if connection.state.is_shut_down() {
                // Ends operations of the kernel. The client may have disconnected.
                let _ = rustix::net::shutdown(&connection.socket, Shutdown::Both);
                if connection.operations.is_idle() {
                    connection.prepare_removal();
                    self.uncounted -= connection.counted.cast_signed();
                    self.closed += u64::from(connection.client.close());
                    self.connections.remove(number);
                    self.listeners.resume(&mut self.reactor)?;
                }
                continue;
            }
            let has_enough = connection.blocked || connection.has_long_backlog();
            let is_receiving = connection.operations.receiving;
            if has_enough && is_receiving {
                self.reactor.pause(number)?;
            } else if !has_enough && !is_receiving && connection.state.receives() {
                connection.operations.receiving = true;
                self.reactor.receive(&connection.socket, number)?;
            }
        }
        if self.uncounted.abs() >= MIN_REPORTED_CHANGE || self.closed > 0 {
            self.common.server.hold(std::mem::take(&mut self.uncounted));
        }
        self.report_closed();
        Ok(())
    }
}

/// Returns the number of receive buffers of each worker, a power of two.
fn buffers(memory: u64, workers: usize) -> u16 {
    let room = memory / BUFFERS_RATIO / workers as u64 / BUFFER_LEN as u64;
    let max = room.clamp(MIN_BUFFERS, MAX_BUFFERS);
    1 << max.ilog2()
}

/// Returns whether the connection is not affected by this error of a receive operation: no buffer
/// was free, or the operation was cancelled or interrupted.
fn is_transient(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::NOBUFS, Errno::CANCELED, Errno::INTR, Errno::AGAIN]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Enables keepalive probes after this many idle seconds. The kernel sends three probes in another
/// period of this length, and ends the connection if none is answered. Unix sockets have no probes.
fn keep_alive(socket: &OwnedFd, idle_s: u64) {
    let interval = Duration::from_secs((idle_s / KEEPALIVE_PROBES).max(1));
    let _ = set_tcp_keepidle(socket, Duration::from_secs(idle_s))
        .and_then(|()| set_tcp_keepintvl(socket, interval))
        .and_then(|()| set_tcp_keepcnt(socket, KEEPALIVE_PROBES as u32))
        .and_then(|()| set_socket_keepalive(socket, true));
}

/// Returns the addresses of a connection as text.
fn endpoints(socket: &OwnedFd) -> Endpoints {
    let text = |address: Option<SocketAddrAny>| {
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        address.map_or_else(|| "unix".to_owned(), |address| address.to_string())
    };
    Endpoints {
        peer: text(rustix::net::getpeername(socket).ok().flatten()),
        local: text(rustix::net::getsockname(socket).ok()),
        fd: socket.as_raw_fd(),
    }
}
