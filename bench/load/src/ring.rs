//! Sockets of one thread: a handler receives the bytes of each socket, and the ring sends its
//! replies.

use crate::uring::{Event, Filled, Uring, is};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::collections::VecDeque;
use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The handler of the events of a ring.
pub(crate) trait Handler {
    /// The error that ends the loop.
    type Error: From<io::Error>;

    /// Handles received bytes. Returns the part of the outbox to send as the reply, if any.
    fn received(
        &mut self,
        connection: usize,
        bytes: &[u8],
    ) -> Result<Option<Range<usize>>, Self::Error>;

    /// Handles a new connection of a listening socket. Numbers of closed connections are reused.
    fn opened(&mut self, connection: usize);

    /// Handles a connection that the peer has closed or that failed.
    fn closed(&mut self, connection: usize, cause: Option<io::Error>) -> Result<(), Self::Error>;
}

#[derive(Debug)]
struct Socket {
    fd: OwnedFd,
    /// Whether the socket may still receive bytes.
    is_open: bool,
    /// Parts of the outbox to send. The first one is being sent.
    sending: VecDeque<Range<usize>>,
}

/// The sockets of one `io_uring`.
pub(crate) struct Ring {
    // Declared before the sockets: dropping it cancels the operations that use them.
    uring: Uring,
    listener: Option<OwnedFd>,
    sockets: Vec<Option<Socket>>,
    free: Vec<usize>,
    events: Vec<Event>,
}

impl Ring {
    /// Creates a ring for about `connections` connections, which send parts of `outbox`.
    pub(crate) fn new(outbox: Arc<Vec<u8>>, connections: usize) -> io::Result<Self> {
        // One buffer for each connection keeps the received bytes in the processor caches. If the
        // buffers run out, receiving continues after the next wait.
        let buffers = connections.next_power_of_two().clamp(64, 1024);
        let entries = (2 * connections).next_power_of_two().clamp(64, 16_384);
        let uring = Uring::new(outbox, entries as u32, buffers as u16)?;
        let (sockets, free, events) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { uring, listener: None, sockets, free, events })
    }

    /// Starts accepting connections.
    pub(crate) fn listen(&mut self, listener: OwnedFd) -> io::Result<()> {
        self.uring.accept(listener.as_fd())?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Adds a connected socket, and returns its number, counted from zero.
    pub(crate) fn add(&mut self, fd: OwnedFd) -> io::Result<usize> {
        let connection = self.free.pop().unwrap_or_else(|| {
            self.sockets.push(None);
            self.sockets.len() - 1
        });
        self.uring.receive(fd.as_fd(), connection)?;
        let socket = Socket { fd, is_open: true, sending: VecDeque::new() };
        self.sockets[connection] = Some(socket);
        Ok(connection)
    }

    /// Sends a part of the outbox, after all parts that are already queued.
    pub(crate) fn send(&mut self, connection: usize, part: Range<usize>) -> io::Result<()> {
        let Some(socket) = self.sockets[connection].as_mut() else { return Ok(()) };
        socket.sending.push_back(part.clone());
        if socket.sending.len() > 1 {
            return Ok(()); // concurrent sends on a socket could interleave
        }
        self.uring.send(socket.fd.as_fd(), connection, part)
    }

    /// Submits the queued operations, and waits for an event for at most `at_most`.
    pub(crate) fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.uring.wait(at_most, &mut self.events)
    }

    /// Passes the events to the handler.
    pub(crate) fn dispatch<H: Handler>(&mut self, handler: &mut H) -> Result<(), H::Error> {
        let mut events = mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                Event::Accepted { fd, more } => {
                    handler.opened(self.add(fd?)?);
                    if let (false, Some(listener)) = (more, &self.listener) {
                        self.uring.accept(listener.as_fd())?;
                    }
                }
                Event::Received { connection, filled: Ok(Some(filled)), more } => {
                    self.received(connection, filled, more, handler)?;
                }
                // All buffers were in use. They are free at the next wait.
                Event::Received { connection, filled: Err(error), .. }
                    if is(&error, Errno::NOBUFS) =>
                {
                    self.receive_again(connection)?;
                }
                Event::Received { connection, filled, .. } => {
                    handler.closed(connection, filled.err())?;
                    if let Some(socket) = self.sockets[connection].as_mut() {
                        socket.is_open = false;
                    }
                    self.forget_if_done(connection);
                }
                Event::Sent { connection, len } => self.sent(connection, len)?,
            }
        }
        self.events = events;
        Ok(())
    }

    fn received<H: Handler>(
        &mut self,
        connection: usize,
        filled: Filled,
        more: bool,
        handler: &mut H,
    ) -> Result<(), H::Error> {
        let answer = self.uring.read(filled, |bytes| handler.received(connection, bytes))?;
        if let Some(part) = answer {
            self.send(connection, part)?;
        }
        if !more {
            self.receive_again(connection)?;
        }
        Ok(())
    }

    fn receive_again(&mut self, connection: usize) -> io::Result<()> {
        let Some(socket) = &self.sockets[connection] else { return Ok(()) };
        self.uring.receive(socket.fd.as_fd(), connection)
    }

    fn sent(&mut self, connection: usize, len: io::Result<usize>) -> io::Result<()> {
        let Some(socket) = self.sockets[connection].as_mut() else { return Ok(()) };
        match (len, socket.sending.front_mut()) {
            (Ok(len), Some(first)) if len < first.len() => first.start += len,
            (Ok(_), _) => drop(socket.sending.pop_front()),
            (Err(_), _) => {
                // The shutdown ends receiving, which reports the end of the connection to the
                // handler.
                socket.sending.clear();
                let _ = shutdown(&socket.fd, Shutdown::Both);
            }
        }
        if let Some(next) = socket.sending.front() {
            return self.uring.send(socket.fd.as_fd(), connection, next.clone());
        }
        self.forget_if_done(connection);
        Ok(())
    }

    /// Closes a connection and frees its number if no further events for it are possible.
    fn forget_if_done(&mut self, connection: usize) {
        let is_done = |socket: &Socket| !socket.is_open && socket.sending.is_empty();
        if self.sockets[connection].as_ref().is_some_and(is_done) {
            self.sockets[connection] = None;
            self.free.push(connection);
        }
    }
}
