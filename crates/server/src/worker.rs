//! One thread of the server: its connections, its reactor, and its session of the cache.

use crate::batch::{Batch, Scene, Source, Work};
use crate::commands::{Client, Endpoints, Failure, Metrics, Server};
use crate::connection::{Connection, KEPT};
use crate::connections::Connections;
use crate::journal;
use crate::reactor::{BUFFER_LEN, Event, Filled, Number, Uring, Waker};
use nuthatch_cache::Session;
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{Shutdown, SocketAddrAny};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Buffers to receive into: 4 MiB at most, as far as they are ever used.
const BUFFERS: u16 = 256;

/// Changes of a worker's memory are told to the others from so many bytes on.
const TOLD_FROM: isize = 64 << 10;

/// When connections take more than this part of the budget, they must make do with less.
const HELD_PART: u64 = 4;

/// What workers share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) server: Server,
    pub(crate) threads: usize,
    stopping: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
    /// Bytes that connections and buffers take of the budget.
    held: AtomicIsize,
}

impl Common {
    pub(crate) fn new(server: Server, threads: usize) -> Self {
        Self {
            server,
            threads,
            stopping: AtomicBool::new(false),
            wakers: Mutex::default(),
            held: AtomicIsize::new(0),
        }
    }

    fn enroll(&self, waker: Waker) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
    }

    /// Counts memory that is taken, or given back.
    fn hold(&self, bytes: isize) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.server.reserve_for_connections(u64::try_from(held).unwrap_or(0));
    }

    /// Whether connections take so much memory that they must make do with less.
    fn is_short_of_memory(&self) -> bool {
        let held = u64::try_from(self.held.load(Ordering::Relaxed)).unwrap_or(0);
        held > self.server.cache.memory() / HELD_PART
    }

    /// Makes all workers stop.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether workers are to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Makes all workers look at what has changed.
    fn wake(&self) {
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.iter().for_each(Waker::wake);
    }
}

/// A thread's part of the server.
pub(crate) struct Worker<'c> {
    common: &'c Common,
    reactor: Uring,
    listeners: Vec<OwnedFd>,
    connections: Connections,
    session: Session<'c>,
    batch: Batch,
    works: Vec<Work>,
    /// Connections that may have something to send, or to begin again.
    touched: Vec<Number>,
    /// Bytes taken and not told to the others.
    untold: isize,
    metrics: Arc<Metrics>,
    /// Connections that were to be ended when we last looked.
    kills: u64,
}

impl<'c> Worker<'c> {
    pub(crate) fn new(common: &'c Common, listeners: Vec<OwnedFd>) -> io::Result<Self> {
        let mut reactor = Uring::new(BUFFERS)?;
        for (number, listener) in listeners.iter().enumerate() {
            reactor.accept(listener.as_fd(), number as Number)?;
        }
        common.enroll(reactor.waker());
        Ok(Self {
            common,
            reactor,
            listeners,
            connections: Connections::default(),
            session: common.server.cache.session().map_err(io::Error::other)?,
            batch: Batch::default(),
            works: Vec::new(),
            touched: Vec::new(),
            untold: isize::try_from(usize::from(BUFFERS) * BUFFER_LEN).unwrap_or(0),
            metrics: common.server.thread(),
            kills: 0,
        })
    }

    /// Serves until the server stops.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::new();
        while !self.common.is_stopping() {
            self.reactor.wait(None, &mut events)?;
            self.metrics.begin_turn();
            for event in events.drain(..) {
                self.take(event)?;
            }
            self.execute();
            self.metrics.settle(&self.common.server.settings);
            self.close_killed();
            self.send()?;
            self.metrics.end_turn();
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Accepted { listener, socket, more } => {
                match socket {
                    Ok(socket) => self.welcome(socket),
                    Err(error) => journal::accept_failed(&error),
                }
                if !more {
                    let socket = self.listeners[listener as usize].as_fd();
                    self.reactor.accept(socket, listener)?;
                }
            }
            Event::Received { connection, bytes, more } => {
                self.touched.push(connection);
                let Some(found) = self.connections.get(connection) else { return Ok(()) };
                found.receiving = more;
                match bytes {
                    Ok(Some(filled)) => {
                        self.metrics.add_received(filled.len() as u64);
                        self.receive(connection, filled);
                    }
                    Ok(None) => found.ended = true,
                    Err(error) if is_passing(&error) => {}
                    Err(_) => (found.closing, found.shut) = (true, true),
                }
            }
            Event::Sent { connection, mut buffer, result } => {
                self.touched.push(connection);
                let Some(found) = self.connections.get(connection) else { return Ok(()) };
                found.sending = 0;
                self.metrics.add_sent(buffer.len() as u64);
                if result.is_err() {
                    (found.closing, found.shut) = (true, true);
                    found.out.clear();
                } else if found.out.is_empty() && buffer.capacity() <= KEPT {
                    buffer.clear();
                    found.out = buffer;
                }
                self.unblock(connection);
            }
            Event::Woken => {}
        }
        Ok(())
    }

    fn welcome(&mut self, socket: OwnedFd) {
        // A socket in the file system has no delay to switch off.
        let _ = set_tcp_nodelay(&socket, true);
        let server = &self.common.server;
        let now_ms = self.session.turn().now_ms();
        let connection = match server.connect(&self.metrics, endpoints(&socket), now_ms) {
            Ok(client) => Connection::new(socket, client, server),
            Err(failure) => {
                let mut connection = Connection::new(socket, Client::default(), server);
                if let Failure::Answer(text) = failure {
                    connection.refuse(&text);
                }
                connection
            }
        };
        let number = self.connections.insert(connection);
        self.touched.push(number);
    }

    /// Ends the connections that somebody wants to end, here and in other threads.
    fn close_killed(&mut self) {
        let kills = self.common.server.clients.kills();
        if kills == self.kills {
            return;
        }
        self.kills = kills;
        self.common.wake();
        for (number, connection) in self.connections.iter() {
            if connection.client.is_killed() {
                connection.closing = true;
                self.touched.push(number);
            }
        }
    }

    /// Bytes came: they are executed with those of others, behind what came before.
    fn receive(&mut self, number: Number, filled: Filled) {
        let Some(connection) = self.connections.get(number) else { return };
        let earlier = self.works.iter().position(|work| work.connection == number);
        if earlier.is_none() && connection.inbox.is_empty() && connection.is_open() {
            self.works.push(Work::new(number, Source::Buffer(filled)));
            return;
        }
        if !connection.closing {
            let mut inbox = std::mem::take(&mut connection.inbox);
            let earlier = earlier.map(|at| self.works.swap_remove(at).source);
            match earlier {
                Some(Source::Inbox(bytes)) => inbox = bytes,
                Some(Source::Buffer(first)) => {
                    inbox.extend_from_slice(self.reactor.bytes(&first));
                    self.reactor.give_back(first);
                }
                None => {}
            }
            inbox.extend_from_slice(self.reactor.bytes(&filled));
            if connection.blocked {
                connection.inbox = inbox;
            } else {
                self.works.push(Work::new(number, Source::Inbox(inbox)));
            }
        }
        self.reactor.give_back(filled);
    }

    /// The client has taken answers: what waited goes on.
    fn unblock(&mut self, number: Number) {
        let Some(connection) = self.connections.get(number) else { return };
        if !connection.blocked {
            return;
        }
        connection.note_output(self.common.is_short_of_memory());
        if connection.is_open() && !connection.inbox.is_empty() {
            let inbox = std::mem::take(&mut connection.inbox);
            self.works.push(Work::new(number, Source::Inbox(inbox)));
        }
    }

    /// Executes what was received.
    fn execute(&mut self) {
        if self.works.is_empty() {
            return;
        }
        let mut scene = Scene {
            reactor: &self.reactor,
            connections: &mut self.connections,
            session: &mut self.session,
            server: &self.common.server,
            shared: self.common.threads > 1,
            short_of_memory: self.common.is_short_of_memory(),
        };
        self.batch.execute_all(&mut self.works, &mut scene);
        for work in self.works.drain(..) {
            self.touched.push(work.connection);
            if let Some(connection) = self.connections.get(work.connection) {
                connection.keep(work.rest(&self.reactor), &self.common.server);
            }
            match work.source {
                Source::Buffer(filled) => self.reactor.give_back(filled),
                Source::Inbox(_) => {}
            }
        }
    }

    /// Sends what there is to send, and goes on receiving where that had ended.
    fn send(&mut self) -> io::Result<()> {
        let short_of_memory = self.common.is_short_of_memory();
        while let Some(number) = self.touched.pop() {
            let Some(connection) = self.connections.get(number) else { continue };
            if connection.is_too_long(short_of_memory) && !connection.closing {
                connection.refuse_input();
            }
            self.untold += connection.count_memory();
            connection.tell_buffers();
            if connection.sending == 0 && !connection.out.is_empty() && !connection.shut {
                let buffer = std::mem::take(&mut connection.out);
                connection.sending = buffer.len();
                self.reactor.send(connection.socket.as_fd(), number, buffer)?;
            }
            // What was received before the end is answered.
            connection.closing |= connection.ended && !connection.blocked;
            connection.shut |= connection.closing && connection.sending == 0;
            if connection.shut {
                // Ends what the kernel does for it. It may be gone already.
                let _ = rustix::net::shutdown(&connection.socket, Shutdown::Both);
                if connection.is_idle() {
                    self.untold -= connection.counted.cast_signed();
                    self.connections.remove(number);
                }
                continue;
            }
            if connection.blocked && connection.receiving {
                self.reactor.pause(number)?;
            } else if connection.is_open() && !connection.receiving && !connection.ended {
                connection.receiving = true;
                self.reactor.receive(connection.socket.as_fd(), number)?;
            }
        }
        if self.untold.abs() >= TOLD_FROM {
            self.common.hold(std::mem::take(&mut self.untold));
        }
        Ok(())
    }
}

/// No buffer was free, or we ended it: receiving goes on later.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::NOBUFS, Errno::CANCELED, Errno::INTR, Errno::AGAIN]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Where a connection leads, as people read it.
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
