//! Sockets of one thread: a handler receives the bytes of each socket, and the ring sends its
//! replies.

use nuthatch_uring::{Completion, Filled, Outbox, RingOptions, SocketRing};
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

const NEEDED: &str = "io_uring is required (Linux 6.1 or later, permitted by seccomp and sysctl)";

/// The number of the listening socket. Completions of listeners and of connections differ.
const LISTENER: u32 = 0;

/// The sockets of one `io_uring`.
pub(crate) struct Ring {
    // Declared before the sockets: dropping it cancels the operations that use them.
    uring: SocketRing<Outbox>,
    listener: Option<OwnedFd>,
    sockets: Vec<Option<Socket>>,
    free: Vec<usize>,
    events: Vec<Completion<()>>,
}

impl Ring {
    /// Creates a ring for about `connections` connections, which send parts of `outbox`.
    pub(crate) fn new(outbox: Arc<Vec<u8>>, connections: usize) -> io::Result<Self> {
        // One buffer for each connection keeps the received bytes in the processor caches. If the
        // buffers run out, receiving continues after the next wait.
        let buffers = connections.next_power_of_two().clamp(64, 1024);
        let entries = (2 * connections).next_power_of_two().clamp(64, 16_384);
        let operations = entries as u32;
        let completions = 4 * operations;
        let options = RingOptions { operations, completions, counts_as_iowait: true };
        let uring = SocketRing::new(&options, buffers as u16, Outbox::new(outbox))
            .map_err(|error| io::Error::new(error.kind(), format!("{NEEDED}: {error}")))?;
        let (sockets, free, events) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { uring, listener: None, sockets, free, events })
    }

    /// Starts accepting connections.
    pub(crate) fn listen(&mut self, listener: OwnedFd) -> io::Result<()> {
        self.uring.accept(listener.as_fd(), LISTENER)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Adds a connected socket, and returns its number, counted from zero.
    pub(crate) fn add(&mut self, fd: OwnedFd) -> io::Result<usize> {
        let connection = self.free.pop().unwrap_or_else(|| {
            self.sockets.push(None);
            self.sockets.len() - 1
        });
        self.uring.receive(fd.as_fd(), connection as u32)?;
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
        self.uring.send_part(socket.fd.as_fd(), connection as u32, part)
    }

    /// Submits the queued operations, and waits for an event for at most `at_most`.
    pub(crate) fn wait(&mut self, at_most: Duration) -> io::Result<()> {
        self.uring.wait(Some(at_most))?;
        self.uring.take_completions(|completion| self.events.push(completion));
        Ok(())
    }

    /// Passes the events to the handler.
    pub(crate) fn dispatch<H: Handler>(&mut self, handler: &mut H) -> Result<(), H::Error> {
        let mut events = mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                Completion::Accepted { socket, more, .. } => {
                    handler.opened(self.add(socket?)?);
                    if let (false, Some(listener)) = (more, &self.listener) {
                        self.uring.accept(listener.as_fd(), LISTENER)?;
                    }
                }
                Completion::Received { connection, bytes: Ok(Some(filled)), more } => {
                    self.received(connection as usize, filled, more, handler)?;
                }
                // All buffers were in use. They are free at the next wait.
                Completion::Received { connection, bytes: Err(error), .. }
                    if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) =>
                {
                    self.receive_again(connection as usize)?;
                }
                Completion::Received { connection, bytes, .. } => {
                    let connection = connection as usize;
                    handler.closed(connection, bytes.err())?;
                    if let Some(socket) = self.sockets[connection].as_mut() {
                        socket.is_open = false;
                    }
                    self.forget_if_done(connection);
                }
                Completion::Sent { connection, len, .. } => self.sent(connection as usize, len)?,
                Completion::Read { .. } | Completion::Woken => {}
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
        let answer = handler.received(connection, self.uring.bytes(&filled));
        self.uring.give_back(filled);
        if let Some(part) = answer? {
            self.send(connection, part)?;
        }
        if !more {
            self.receive_again(connection)?;
        }
        Ok(())
    }

    fn receive_again(&mut self, connection: usize) -> io::Result<()> {
        let Some(socket) = &self.sockets[connection] else { return Ok(()) };
        self.uring.receive(socket.fd.as_fd(), connection as u32)
    }

    fn sent(&mut self, connection: usize, len: io::Result<u32>) -> io::Result<()> {
        let Some(socket) = self.sockets[connection].as_mut() else { return Ok(()) };
        match (len, socket.sending.front_mut()) {
            (Ok(len), Some(first)) if (len as usize) < first.len() => first.start += len as usize,
            (Ok(_), _) => drop(socket.sending.pop_front()),
            (Err(_), _) => {
                // The shutdown ends receiving, which reports the end of the connection to the
                // handler.
                socket.sending.clear();
                let _ = shutdown(&socket.fd, Shutdown::Both);
            }
        }
        if let Some(next) = socket.sending.front() {
            return self.uring.send_part(socket.fd.as_fd(), connection as u32, next.clone());
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
