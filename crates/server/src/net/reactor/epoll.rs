//! A reactor on `epoll`, for kernels that have no `io_uring` or forbid it.
//!
//! It is level-triggered: the kernel tells again what was not done to its end, so that each
//! connection gets one buffer a turn. What can be sent at once is sent at once. A socket is known
//! to the kernel, and held here, only while something is asked for on it: so one that was shut
//! down and is waited for by nobody does not end the wait again and again.

use super::pool::Pool;
use super::{Event, Filled, Number, Socket, Waker};
use crate::output::Outgoing;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// What a socket is, in the low bits of what identifies it; its number is above.
const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
const WAKER: u64 = 2;
const KIND_BITS: u32 = 2;

/// Connections accepted in a turn from one listener: those that come together with others are
/// shared out among threads.
const MAX_ACCEPTED: usize = 64;

/// A reactor on `epoll`. It belongs to the thread that made it.
pub(crate) struct Epoll {
    /// The kernel's list of what it is asked to tell.
    list: OwnedFd,
    /// Those that accept.
    listeners: Vec<Option<Socket>>,
    /// Those that receive or send.
    active: Vec<Option<Active>>,
    buffers: Pool,
    /// What the kernel tells in one call, at most as much as there are buffers.
    ready: Vec<epoll::Event>,
    /// What happened without a wait.
    done: Vec<Event>,
    /// Whether the last wait was the kernel's.
    has_waited: bool,
    waker: Waker,
}

/// A connection that receives or sends.
struct Active {
    socket: Socket,
    receiving: bool,
    sending: Option<Sending>,
    /// What the kernel was asked to tell.
    interest: EventFlags,
}

/// What the socket had no room for.
struct Sending {
    outgoing: Outgoing,
    sent: usize,
}

impl Epoll {
    /// A reactor with so many buffers to receive into.
    pub(crate) fn new(buffers: u16) -> io::Result<Self> {
        let list = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = Waker::new()?;
        epoll::add(&list, &waker, name(WAKER, 0), EventFlags::IN)?;
        Ok(Self {
            list,
            listeners: Vec::new(),
            active: Vec::new(),
            buffers: Pool::new(buffers)?,
            ready: Vec::with_capacity(usize::from(buffers).max(1)),
            done: Vec::new(),
            has_waited: false,
            waker,
        })
    }

    /// What wakes this reactor.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Accepts connections from now on, until an event says that there will be no more.
    pub(crate) fn accept(&mut self, socket: &Socket, listener: Number) {
        // Another thread may be faster, and then there is nothing to accept.
        let added = rustix::io::ioctl_fionbio(socket, true).and_then(|()| {
            // Of threads that listen to the same socket, one is woken.
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

    /// Receives what comes, until an event says that there will be no more.
    pub(crate) fn receive(&mut self, socket: &Socket, number: Number) {
        self.activate(socket, number).receiving = true;
        self.update_interest(number);
    }

    /// Receives no more: an event will say so.
    pub(crate) fn pause(&mut self, number: Number) {
        let Some(active) = slot(&mut self.active, number) else { return };
        if mem::take(&mut active.receiving) {
            let bytes = Err(Errno::CANCELED.into());
            self.done.push(Event::Received { connection: number, bytes, more: false });
            self.update_interest(number);
        }
    }

    /// Sends bytes to their end. A connection does so with one run of them at a time.
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

    /// Waits for events and appends them. Without a timeout, for as long as it takes.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        let is_done = !self.done.is_empty();
        events.append(&mut self.done);
        // What happened already needs no call, but others must get their turn.
        if is_done && mem::take(&mut self.has_waited) {
            return Ok(());
        }
        self.has_waited = true;
        let timeout = if is_done { Some(Duration::ZERO) } else { timeout };
        // One that is too long to be told is as good as none.
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

    /// Received bytes, until their buffer is given back.
    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        self.buffers.bytes(filled)
    }

    /// Gives a buffer back, to be filled again.
    pub(crate) fn give_back(&mut self, filled: Filled) {
        self.buffers.put(filled);
    }

    /// Bytes of memory of all buffers.
    #[inline]
    pub(crate) fn buffers_len(&self) -> usize {
        self.buffers.len()
    }

    /// Does with little memory for buffers, or with all again.
    pub(crate) fn save_memory(&mut self, little: bool) {
        self.buffers.spare(little);
    }

    /// Connections wait at a listener.
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
                    // The reactor goes on working without it, and knows it no more.
                    let _ = epoll::delete(&self.list, &**socket);
                    *place = None;
                    let socket = Err(errno.into());
                    events.push(Event::Accepted { listener, socket, more: false });
                }
            }
        }
    }

    /// Something can be done on a connection, or it is broken, which whatever is done will tell.
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

    /// Asks the kernel to tell what is of interest now, and forgets a connection of which nothing
    /// is.
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
            // If the kernel knows it, it must not tell of it any more.
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
    /// Sends what there is room for. Answers how it ended, if it did.
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

/// The place of a number, which is made if there is none.
fn slot<T>(all: &mut Vec<Option<T>>, number: Number) -> &mut Option<T> {
    let at = number as usize;
    if all.len() <= at {
        all.resize_with(at + 1, || None);
    }
    &mut all[at]
}
