//! Sockets that one thread serves: what comes goes to a handler, what the handler answers is sent.

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

/// What happens on the sockets of a ring.
pub(crate) trait Handler {
    /// What ends the loop.
    type Error: From<io::Error>;

    /// Bytes came. Returns which part of the outbox goes out in answer, if any.
    fn received(
        &mut self,
        connection: usize,
        bytes: &[u8],
    ) -> Result<Option<Range<usize>>, Self::Error>;

    /// A listening socket has a new connection. Numbers of closed ones are used again.
    fn opened(&mut self, connection: usize);

    /// The other side has closed, or the connection failed.
    fn closed(&mut self, connection: usize, cause: Option<io::Error>) -> Result<(), Self::Error>;
}

#[derive(Debug)]
struct Socket {
    fd: OwnedFd,
    /// Whether bytes may still come.
    is_open: bool,
    /// Parts of the outbox to send; the first of them is on its way.
    sending: VecDeque<Range<usize>>,
}

/// Sockets on one `io_uring`.
pub(crate) struct Ring {
    // Before the sockets: dropping it ends the operations that use them.
    uring: Uring,
    listener: Option<OwnedFd>,
    sockets: Vec<Option<Socket>>,
    free: Vec<usize>,
    events: Vec<Event>,
}

impl Ring {
    /// For about so many connections, which send parts of `outbox`.
    pub(crate) fn new(outbox: Arc<Vec<u8>>, connections: usize) -> io::Result<Self> {
        // One buffer for each connection keeps what one wait returns within the processor's caches;
        // where they run out, receiving goes on with the next wait.
        let buffers = connections.next_power_of_two().clamp(64, 1024);
        let entries = (2 * connections).next_power_of_two().clamp(64, 16_384);
        let uring = Uring::new(outbox, entries as u32, buffers as u16)?;
        let (sockets, free, events) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { uring, listener: None, sockets, free, events })
    }

    /// Accepts connections from now on.
    pub(crate) fn listen(&mut self, listener: OwnedFd) -> io::Result<()> {
        self.uring.accept(listener.as_fd())?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Takes a connected socket in; returns its number, counted from zero.
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

    /// Sends a part of the outbox after all that is on its way already.
    pub(crate) fn send(&mut self, connection: usize, part: Range<usize>) -> io::Result<()> {
        let Some(socket) = self.sockets[connection].as_mut() else { return Ok(()) };
        socket.sending.push_back(part.clone());
        if socket.sending.len() > 1 {
            return Ok(()); // two at once could mix
        }
        self.uring.send(socket.fd.as_fd(), connection, part)
    }

    /// Hands operations to the kernel and waits until something has happened, or so long.
    pub(crate) fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.uring.wait(at_most, &mut self.events)
    }

    /// Tells the handler what has happened.
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
                // All buffers were filled; by the next wait they are free again.
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
                // Receiving ends with this, and its end tells the handler.
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

    /// Closes a connection, and frees its number, once no more events for it can come.
    fn forget_if_done(&mut self, connection: usize) {
        let is_done = |socket: &Socket| !socket.is_open && socket.sending.is_empty();
        if self.sockets[connection].as_ref().is_some_and(is_done) {
            self.sockets[connection] = None;
            self.free.push(connection);
        }
    }
}
