//! A reactor on `io_uring`.
//!
//! Accept and receive operations continue until they are stopped. New operations are submitted with
//! the wait for events, in one system call.

use super::{Event, Filled, Number, Socket, Waker};
use crate::output::Outgoing;
use nuthatch_uring::{Completion, OwnedSends, ReadBuffer, RingOptions, SocketRing};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Maximum operations of one submission. More take several system calls.
const OPERATIONS: u32 = 1024;

/// A reactor on `io_uring`. It belongs to the thread that created it.
pub(crate) struct Uring {
    ring: SocketRing<OwnedSends<Outgoing>>,
    waker: Waker,
}

impl Uring {
    /// Creates a reactor with this many receive buffers, a power of two.
    pub(crate) fn new(buffers: u16) -> io::Result<Self> {
        let options = RingOptions {
            operations: OPERATIONS,
            completions: 8 * OPERATIONS,
            counts_as_iowait: false,
        };
        let mut ring = SocketRing::new(&options, buffers, OwnedSends::default())?;
        let waker = Waker::new()?;
        ring.expect_wake(&waker)?;
        Ok(Self { ring, waker })
    }

    /// Returns a waker of this reactor.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Accepts connections until an event reports that no more follow.
    pub(crate) fn accept(&mut self, socket: &Socket, listener: Number) -> io::Result<()> {
        self.ring.accept(socket.as_fd(), listener)
    }

    /// Receives until an event reports that no more follows.
    pub(crate) fn receive(&mut self, socket: &Socket, number: Number) -> io::Result<()> {
        self.ring.receive(socket.as_fd(), number)
    }

    /// Stops receiving, which an event reports.
    pub(crate) fn pause(&mut self, number: Number) -> io::Result<()> {
        self.ring.cancel_receive(number)
    }

    /// Sends all bytes. A connection has at most one send operation at a time.
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        number: Number,
        outgoing: Outgoing,
    ) -> io::Result<()> {
        self.ring.send(socket.as_fd(), number, outgoing)
    }

    /// Reads `len` bytes at an offset of a file, which stays open until an event reports the end.
    pub(crate) fn read(
        &mut self,
        file: (BorrowedFd<'_>, u64),
        number: u32,
        buffer: ReadBuffer,
        len: u32,
    ) -> io::Result<()> {
        self.ring.read(file, number, buffer, len)
    }

    /// Submits pending operations, waits for events and appends them. Without a timeout it waits
    /// indefinitely.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        self.ring.wait(timeout)?;
        let mut woken = false;
        self.ring.take_completions(|completion| match event(completion) {
            Event::Woken => woken = true,
            event => events.push(event),
        });
        if woken {
            events.push(Event::Woken);
            self.waker.clear();
            self.ring.expect_wake(&self.waker)?;
        }
        Ok(())
    }

    /// Submits pending operations without waiting.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        self.ring.submit()
    }

    /// Returns received bytes, until their buffer is returned.
    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        self.ring.bytes(filled)
    }

    /// Returns a buffer, to be filled again.
    pub(crate) fn give_back(&mut self, filled: Filled) {
        self.ring.give_back(filled);
    }

    /// Returns the bytes of memory of all buffers.
    #[inline]
    pub(crate) fn buffers_len(&self) -> usize {
        self.ring.buffers_len()
    }

    /// Limits the memory of buffers, or ends the limit.
    pub(crate) fn save_memory(&mut self, little: bool) {
        self.ring.save_memory(little);
    }
}

#[inline]
fn event(completion: Completion<Outgoing>) -> Event {
    match completion {
        Completion::Accepted { listener, socket, more } => {
            Event::Accepted { listener, socket, more }
        }
        Completion::Received { connection, bytes, more } => {
            Event::Received { connection, bytes, more }
        }
        Completion::Sent { connection, value: outgoing, len } => {
            let all = |sent: u32| {
                let whole = sent as usize == outgoing.bytes().len();
                if whole { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
            };
            let result = len.and_then(all);
            Event::Sent { connection, outgoing, result }
        }
        Completion::Read { number, buffer, len } => Event::Read { number, buffer, len },
        Completion::Woken => Event::Woken,
    }
}
