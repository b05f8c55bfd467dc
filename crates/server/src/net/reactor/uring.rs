//! A reactor on `io_uring`.
//!
//! Accept and receive operations continue until they are stopped. New operations are submitted with
//! the wait for events, in one system call.
//!
//! This file has unsafe code. It is sound because the kernel gets addresses of three things only:
//! receive buffers and their ring, which the reactor owns, and bytes that are being sent, a vector
//! or the value of an item reference. Those bytes do not move, and are dropped after their event. A
//! receive buffer loses its memory only when it is returned, and then it is not given to the kernel
//! again. Dropping a reactor first cancels all operations. If that fails, their memory is leaked.

use super::buffers::Buffers;
use super::{BUFFER_LEN, Event, Filled, Number, Socket, Waker};
use crate::output::Outgoing;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};
use std::io;
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::slice;
use std::time::Duration;

/// The kind of an operation, in the low bits of its user data. The number of the connection is
/// above.
const ACCEPT: u64 = 0;
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const WAKE: u64 = 3;
const CANCEL: u64 = 4;
const KIND_BITS: u32 = 3;

/// The only buffer group.
const GROUP: u16 = 0;

/// Maximum operations of one submission. More take several system calls.
const OPERATIONS: u32 = 1024;

/// `MSG_WAITALL` of Linux: the kernel continues until all bytes are sent.
const WAIT_ALL: u32 = 0x100;

/// A reactor on `io_uring`. It belongs to the thread that created it.
pub(crate) struct Uring {
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    /// Bytes that are being sent, by connection.
    sending: ManuallyDrop<Vec<Option<Outgoing>>>,
    waker: Waker,
    /// Whether the kernel can wait without counting the thread as waiting for I/O.
    has_no_iowait: bool,
}

/// `IORING_ENTER_GETEVENTS`, `IORING_ENTER_EXT_ARG` and `IORING_ENTER_NO_IOWAIT` of Linux.
const GET_EVENTS: u32 = 1 << 0;
const EXTENDED_ARGUMENT: u32 = 1 << 3;
const NO_IOWAIT: u32 = 1 << 7;

impl Uring {
    /// Creates a reactor with this many receive buffers, a power of two.
    pub(crate) fn new(buffers: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .setup_clamp()
            .setup_cqsize(8 * OPERATIONS)
            .build(OPERATIONS)?;
        let waker = Waker::new()?;
        let has_no_iowait = ring.params().is_feature_no_iowait();
        let mut uring = Self {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(Buffers::new(buffers)?),
            sending: ManuallyDrop::default(),
            waker,
            has_no_iowait,
        };
        let (address, count) = uring.buffers.entries();
        let submitter = uring.ring.submitter();
        // SAFETY: the entries begin at a page and are as many as is said; they are freed after all
        // operations have ended (see `drop`).
        unsafe { submitter.register_buf_ring_with_flags(address, count, GROUP, 0) }?;
        uring.expect_wake()?;
        Ok(uring)
    }

    /// Returns a waker of this reactor.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Accepts connections until an event reports that no more follow.
    pub(crate) fn accept(&mut self, socket: &Socket, listener: Number) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC.bits().cast_signed();
        let entry = opcode::AcceptMulti::new(Fd(socket.as_raw_fd())).flags(flags).build();
        self.push(&entry.user_data(name(ACCEPT, listener)))
    }

    /// Receives until an event reports that no more follows.
    pub(crate) fn receive(&mut self, socket: &Socket, number: Number) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        self.push(&entry.user_data(name(RECEIVE, number)))
    }

    /// Stops receiving, which an event reports.
    pub(crate) fn pause(&mut self, number: Number) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(name(RECEIVE, number)).build();
        self.push(&entry.user_data(name(CANCEL, number)))
    }

    /// Sends all bytes. A connection has at most one send operation at a time.
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        number: Number,
        outgoing: Outgoing,
    ) -> io::Result<()> {
        let at = number as usize;
        if self.sending.len() <= at {
            self.sending.resize_with(at + 1, || None);
        }
        let bytes = outgoing.bytes();
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let flags = SendFlags::NOSIGNAL.bits() | WAIT_ALL;
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), bytes.as_ptr(), len)
            .flags(flags.cast_signed())
            .build();
        debug_assert!(self.sending[at].is_none(), "one run of bytes at a time");
        self.sending[at] = Some(outgoing);
        self.push(&entry.user_data(name(SEND, number)))
    }

    /// Submits pending operations, waits for events and appends them. Without a timeout it waits
    /// indefinitely.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        self.buffers.publish();
        let submitted = match timeout {
            _ if self.has_no_iowait => self.wait_without_iowait(timeout),
            None => self.ring.submitter().submit_and_wait(1),
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
            }
        };
        unless_passing(submitted)?;
        let mut woken = false;
        let Self { ring, sending, .. } = self;
        for entry in ring.completion() {
            match event(&entry, sending) {
                Some(Event::Woken) => woken = true,
                event => events.extend(event),
            }
        }
        if woken {
            events.push(Event::Woken);
            self.waker.clear();
            self.expect_wake()?;
        }
        Ok(())
    }

    /// Waits like [`wait`](Self::wait), on Linux 6.15 and later, where an idle thread does not
    /// count as waiting for I/O.
    fn wait_without_iowait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map(Timespec::from);
        let arguments = timeout.as_ref().map(|timeout| SubmitArgs::new().timespec(timeout));
        let extended = if arguments.is_some() { EXTENDED_ARGUMENT } else { 0 };
        let len = self.ring.submission().len() as u32;
        let flags = GET_EVENTS | NO_IOWAIT | extended;
        // SAFETY: what the entries point to outlives their operations, see `push`; the argument is
        // of the type that the flag for it announces, or there is none.
        unsafe { self.ring.submitter().enter(len, 1, flags, arguments.as_ref()) }
    }

    /// Submits pending operations without waiting.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        unless_passing(self.ring.submit())
    }

    /// Returns received bytes, until their buffer is returned.
    #[inline]
    pub(crate) fn bytes(&self, filled: &Filled) -> &[u8] {
        let Some(start) = self.buffers.start(filled.id) else { return &[] };
        // SAFETY: the kernel has filled these bytes. It writes there again, and their memory goes,
        // only after the buffer was given back, which takes the one `Filled` there is of it.
        unsafe { slice::from_raw_parts(start, filled.len()) }
    }

    /// Returns a buffer, to be filled again.
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is given back only once")]
    pub(crate) fn give_back(&mut self, filled: Filled) {
        self.buffers.put(filled.id);
    }

    /// Returns the bytes of memory of all buffers.
    #[inline]
    pub(crate) fn buffers_len(&self) -> usize {
        self.buffers.len()
    }

    /// Limits the memory of buffers, or ends the limit.
    pub(crate) fn save_memory(&mut self, little: bool) {
        self.buffers.save_memory(little);
    }

    fn expect_wake(&mut self) -> io::Result<()> {
        let poll = u32::from(PollFlags::IN.bits());
        let entry = opcode::PollAdd::new(Fd(self.waker.as_fd().as_raw_fd()), poll).build();
        self.push(&entry.user_data(name(WAKE, 0)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: what an entry points to is the reactor's and outlives the operation: what is
            // in `sending` leaves with their event, and see `drop`.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            unless_passing(self.ring.submit())?;
        }
    }
}

fn name(kind: u64, number: Number) -> u64 {
    u64::from(number) << KIND_BITS | kind
}

fn event(entry: &cqueue::Entry, sending: &mut [Option<Outgoing>]) -> Option<Event> {
    // Errors are negative.
    let result = u32::try_from(entry.result())
        .map_err(|_| io::Error::from_raw_os_error(entry.result().wrapping_neg()));
    let number = (entry.user_data() >> KIND_BITS) as Number;
    let more = cqueue::more(entry.flags());
    Some(match entry.user_data() & ((1 << KIND_BITS) - 1) {
        ACCEPT => {
            // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
            let socket = result.map(|_| unsafe { OwnedFd::from_raw_fd(entry.result()) });
            Event::Accepted { listener: number, socket, more }
        }
        RECEIVE => {
            let filled = |len: u32| {
                let id = cqueue::buffer_select(entry.flags()).filter(|_| len > 0)?;
                Some(Filled { id, len: len.min(BUFFER_LEN as u32) })
            };
            Event::Received { connection: number, bytes: result.map(filled), more }
        }
        SEND => {
            let outgoing = sending.get_mut(number as usize)?.take()?;
            let all = |sent: u32| {
                let whole = sent as usize == outgoing.bytes().len();
                if whole { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
            };
            let result = result.and_then(all);
            Event::Sent { connection: number, outgoing, result }
        }
        WAKE => Event::Woken,
        _ => return None,
    })
}

/// Ignores a timeout, a signal, and that events must be read first.
fn unless_passing(result: io::Result<usize>) -> io::Result<()> {
    const PASSING: [Errno; 4] = [Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN];
    match result {
        Err(error) if !PASSING.iter().any(|errno| is(&error, *errno)) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether an error has this number.
pub(crate) fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

impl Drop for Uring {
    fn drop(&mut self) {
        let second = Some(Timespec::new().sec(1));
        let cancelled = self.ring.submitter().register_sync_cancel(second, CancelBuilder::any());
        if cancelled.as_ref().is_err_and(|error| !is(error, Errno::NOENT)) {
            return;
        }
        // SAFETY: no operation is left that could use them, and nothing uses them after this.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.buffers) };
        mem::take(&mut *self.sending);
    }
}
