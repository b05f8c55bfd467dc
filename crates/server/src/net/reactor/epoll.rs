//! A reactor on `epoll`, for kernels without `io_uring` or that forbid it.
//!
//! It is level-triggered: the kernel reports again what was not completed, so each connection gets
//! one buffer in an iteration. Bytes are sent at once as far as possible. A socket is registered
//! only while an operation is in progress on it, so that a socket that was shut down does not end
//! waits again and again.

use super::{Event, Filled, Number, Socket, Waker};
use crate::output::Outgoing;
use nuthatch_uring::BufferPool;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The kind of a socket, in the low bits of its event data. Its number is above.
const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
const WAKER: u64 = 2;
const KIND_BITS: u32 = 2;

/// Maximum connections accepted from one listener in an iteration. Simultaneous ones are thereby
/// shared among threads.
const MAX_ACCEPTED: usize = 64;

/// A reactor on `epoll`. It belongs to the thread that created it.
pub(crate) struct Epoll {
    /// The `epoll` instance.
    list: OwnedFd,
    /// Listeners that accept.
    listeners: Vec<Option<Socket>>,
    /// Connections that receive or send.
    active: Vec<Option<Active>>,
    buffers: BufferPool,
    /// Events of one system call, at most as many as there are buffers.
    ready: Vec<epoll::Event>,
    /// Events of operations that completed without waiting.
    done: Vec<Event>,
    /// Whether the last call of [`wait`](Self::wait) made a system call.
    has_waited: bool,
    waker: Waker,
}

/// A connection that receives or sends.
struct Active {
    socket: Socket,
    receiving: bool,
    sending: Option<Sending>,
    /// The events that are registered.
    interest: EventFlags,
}

/// A send operation that the socket has not accepted completely.
struct Sending {
    outgoing: Outgoing,
    sent: usize,
}

impl Epoll {
    /// Creates a reactor with this many receive buffers.
    pub(crate) fn new(buffers: u16) -> io::Result<Self> {
        let list = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        epoll::add(&list, &waker, name(WAKER, 0), EventFlags::IN)?;
        Ok(Self {
            list,
            listeners: Vec::new(),
            active: Vec::new(),
            buffers: BufferPool::new(buffers)?,
            ready: Vec::with_capacity(usize::from(buffers).max(1)),
            done: Vec::new(),
            has_waited: false,
            waker,
        })
    }

    /// Returns a waker of this reactor.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Accepts connections until an event reports that no more follow.
    pub(crate) fn accept(&mut self, socket: &Socket, listener: Number) {
        // Another thread may accept the connection first.
        let added = rustix::io::ioctl_fionbio(socket, true).and_then(|()| {
            // One of the threads that listen on the same socket is woken.
            let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
            epoll::add(&self.list, socket, name(LISTENER, listener), flags)
        });
        match added {
            Ok(()) => *slot(&mut self.listeners, listener) = Some(Socket::clone(socket)),
            Err(errno) => {
                let socket = Err(errno.into());
                self.done.push(Event::Accepted { listener, socket, more: false });
            }
        }
    }

    /// Receives until an event reports that no more follows.
    pub(crate) fn receive(&mut self, socket: &Socket, number: Number) {
        self.activate(socket, number).receiving = true;
        self.update_interest(number);
    }

    /// Stops receiving, which an event reports.
    pub(crate) fn pause(&mut self, number: Number) {
        let Some(active) = slot(&mut self.active, number) else { return };
        if mem::take(&mut active.receiving) {
            let bytes = Err(Errno::CANCELED.into());
            self.done.push(Event::Received { connection: number, bytes, more: false });
            self.update_interest(number);
        }
    }

    /// Sends all bytes. A connection has at most one send operation at a time.
    pub(crate) fn send(&mut self, socket: &Socket, number: Number, outgoing: Outgoing) {
        let mut sending = Sending { outgoing, sent: 0 };
        if let Some(result) = sending.advance(socket) {
            self.done.push(sending.into_event(number, result));
            return;
        }
        let active = self.activate(socket, number);
        debug_assert!(active.sending.is_none(), "one run of bytes at a time");
        active.sending = Some(sending);
        self.update_interest(number);
    }

    /// Waits for events and appends them. Without a timeout it waits indefinitely.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        let is_done = !self.done.is_empty();
        events.append(&mut self.done);
        // Completed operations need no system call, but other sockets must be served as well.
        if is_done && mem::take(&mut self.has_waited) {
            return Ok(());
        }
        self.has_waited = true;
        let timeout = if is_done { Some(Duration::ZERO) } else { timeout };
        // A timeout that is too long for the kernel is the same as none.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        self.ready.clear();
        match epoll::wait(&self.list, spare_capacity(&mut self.ready), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        for at in 0..self.ready.len() {
            let epoll::Event { data, flags } = self.ready[at];
            let number = (data.u64() >> KIND_BITS) as Number;
            match data.u64() & ((1 << KIND_BITS) - 1) {
                LISTENER => self.accept_ready(number, events),
                CONNECTION => self.advance(number, flags, events),
                _ => {
                    self.waker.clear();
                    events.push(Event::Woken);
                }
            }
        }
        Ok(())
    }

    /// Returns received bytes, until their buffer is returned.
    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        self.buffers.bytes(filled)
    }

    /// Returns a buffer, to be filled again.
    pub(crate) fn give_back(&mut self, filled: Filled) {
        self.buffers.give_back(filled);
    }

    /// Returns the bytes of memory of all buffers.
    #[inline]
    pub(crate) fn buffers_len(&self) -> usize {
        self.buffers.memory_len()
    }

    /// Limits the memory of buffers, or ends the limit.
    pub(crate) fn save_memory(&mut self, little: bool) {
        self.buffers.save_memory(little);
    }

    /// Accepts connections that wait at a listener.
    fn accept_ready(&mut self, listener: Number, events: &mut Vec<Event>) {
        let place = slot(&mut self.listeners, listener);
        for _ in 0..MAX_ACCEPTED {
            let Some(socket) = place else { return };
            match accept_with(&**socket, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    let socket = Ok(socket);
                    events.push(Event::Accepted { listener, socket, more: true });
                }
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(errno) => {
                    // The listener is removed in any case.
                    let _ = epoll::delete(&self.list, &**socket);
                    *place = None;
                    let socket = Err(errno.into());
                    events.push(Event::Accepted { listener, socket, more: false });
                }
            }
        }
    }

    /// Continues the operations of a connection that is ready or broken. The operations report
    /// errors.
    fn advance(&mut self, number: Number, flags: EventFlags, events: &mut Vec<Event>) {
        let Some(active) = slot(&mut self.active, number) else { return };
        let broken = EventFlags::ERR | EventFlags::HUP;
        if active.receiving && flags.intersects(EventFlags::IN | broken) {
            let socket = &active.socket;
            let filled = self.buffers.fill(|room| {
                recv(&**socket, room, RecvFlags::DONTWAIT).map(|(_, received)| received)
            });
            let bytes = match filled.unwrap_or(Err(Errno::NOBUFS)) {
                Err(Errno::AGAIN | Errno::INTR) => None,
                bytes => Some(bytes.map_err(io::Error::from)),
            };
            if let Some(bytes) = bytes {
                active.receiving = matches!(bytes, Ok(Some(_)));
                let more = active.receiving;
                events.push(Event::Received { connection: number, bytes, more });
            }
        }
        if flags.intersects(EventFlags::OUT | broken)
            && let Some(mut sending) = active.sending.take()
        {
            match sending.advance(&active.socket) {
                Some(result) => events.push(sending.into_event(number, result)),
                None => active.sending = Some(sending),
            }
        }
        self.update_interest(number);
    }

    fn activate(&mut self, socket: &Socket, number: Number) -> &mut Active {
        slot(&mut self.active, number).get_or_insert_with(|| Active {
            socket: Socket::clone(socket),
            receiving: false,
            sending: None,
            interest: EventFlags::empty(),
        })
    }

    /// Registers the events of interest, and removes a connection without any.
    fn update_interest(&mut self, number: Number) {
        let place = slot(&mut self.active, number);
        let Some(active) = place else { return };
        let (before, wanted) = (active.interest, active.wanted());
        let changed = if before == wanted {
            Ok(())
        } else if wanted.is_empty() {
            epoll::delete(&self.list, &*active.socket)
        } else if before.is_empty() {
            epoll::add(&self.list, &*active.socket, name(CONNECTION, number), wanted)
        } else {
            epoll::modify(&self.list, &*active.socket, name(CONNECTION, number), wanted)
        };
        active.interest = wanted;
        if let Err(errno) = changed {
            if active.receiving {
                let bytes = Err(errno.into());
                self.done.push(Event::Received { connection: number, bytes, more: false });
            }
            if let Some(sending) = active.sending.take() {
                self.done.push(sending.into_event(number, Err(errno)));
            }
            // If it is registered, the kernel must not report it any more.
            let _ = epoll::delete(&self.list, &*active.socket);
            *place = None;
        } else if wanted.is_empty() {
            *place = None;
        }
    }
}

impl Active {
    fn wanted(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, self.receiving);
        wanted.set(EventFlags::OUT, self.sending.is_some());
        wanted
    }
}

impl Sending {
    /// Sends what the socket accepts. Returns the result if the operation ended.
    fn advance(&mut self, socket: &Socket) -> Option<Result<(), Errno>> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match send(&**socket, &self.outgoing.bytes()[self.sent..], flags) {
            Ok(sent) => {
                self.sent += sent;
                (self.sent >= self.outgoing.bytes().len()).then_some(Ok(()))
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(errno) => Some(Err(errno)),
        }
    }

    fn into_event(self, connection: Number, result: Result<(), Errno>) -> Event {
        let result = result.map_err(io::Error::from);
        Event::Sent { connection, outgoing: self.outgoing, result }
    }
}

fn name(kind: u64, number: Number) -> EventData {
    EventData::new_u64(u64::from(number) << KIND_BITS | kind)
}

/// Returns the slot of a number, and adds slots as needed.
fn slot<T>(all: &mut Vec<Option<T>>, number: Number) -> &mut Option<T> {
    let at = number as usize;
    if all.len() <= at {
        all.resize_with(at + 1, || None);
    }
    &mut all[at]
}
