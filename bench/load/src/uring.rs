//! The `io_uring` below [`crate::ring`], and all the unsafe code there is. Whatever is sent is part
//! of an outbox that never changes, whatever is received comes in buffers of its own: so no memory
//! of a caller is ever lent to the kernel.

use crate::buffers::{BUFFER_BYTES, Buffers};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;
use rustix::net::SendFlags;
use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

/// An operation that ended, or got somewhere.
#[derive(Debug)]
pub(crate) enum Event {
    /// A connection was accepted. Without `more`, no further one will be.
    Accepted { fd: io::Result<OwnedFd>, more: bool },
    /// Bytes came; nothing where the other side has closed. Without `more`, no further ones come.
    Received { connection: usize, filled: io::Result<Option<Filled>>, more: bool },
    /// So many bytes were sent.
    Sent { connection: usize, len: io::Result<usize> },
}

/// A buffer with received bytes, to be given back by reading it.
#[derive(Debug)]
pub(crate) struct Filled {
    id: u16,
    len: usize,
}

/// A ring with an outbox and buffers.
pub(crate) struct Uring {
    ring: IoUring,
    outbox: Arc<Vec<u8>>,
    buffers: Buffers,
}

/// The kinds of operations, in the low bits of what identifies one; above is the connection.
const ACCEPT: u64 = 0;
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const KIND_BITS: u32 = 2;

/// The one group of buffers.
const GROUP: u16 = 0;

const NEEDED: &str = "an io_uring of Linux 6.1 or later, which nothing forbids, is needed";

/// Linux's `MSG_WAITALL`, so that the kernel goes on until all is sent. rustix has it for receiving
/// alone.
const WAIT_ALL: u32 = 0x100;

impl Uring {
    /// Room for so many operations between two waits. The number of buffers must be a power of two.
    pub(crate) fn new(outbox: Arc<Vec<u8>>, entries: u32, buffers: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .setup_clamp()
            .setup_cqsize(4 * entries)
            .build(entries)
            .map_err(|error| io::Error::new(error.kind(), format!("{NEEDED}: {error}")))?;
        let buffers = Buffers::new(buffers)?;
        let (address, count) = buffers.shared_queue();
        let uring = Self { ring, outbox, buffers };
        let submitter = uring.ring.submitter();
        // SAFETY: the queue begins at a page, has `count` entries, and is freed only after no
        // operation is left (see `drop`).
        unsafe { submitter.register_buf_ring_with_flags(address, count, GROUP, 0) }?;
        Ok(uring)
    }

    /// Accepts connections until an event says that there is no more.
    pub(crate) fn accept(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        let entry = opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).build();
        self.push(&entry.user_data(ACCEPT))
    }

    /// Receives until an event says that there is no more.
    pub(crate) fn receive(&mut self, fd: BorrowedFd<'_>, connection: usize) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fd(fd.as_raw_fd()), GROUP).build();
        self.push(&entry.user_data((connection as u64) << KIND_BITS | RECEIVE))
    }

    /// Sends a part of the outbox.
    pub(crate) fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        connection: usize,
        part: Range<usize>,
    ) -> io::Result<()> {
        let bytes = &self.outbox[part];
        let flags = SendFlags::NOSIGNAL.bits() | WAIT_ALL;
        let entry = opcode::Send::new(Fd(fd.as_raw_fd()), bytes.as_ptr(), bytes.len() as u32)
            .flags(flags.cast_signed())
            .build();
        self.push(&entry.user_data((connection as u64) << KIND_BITS | SEND))
    }

    /// Hands operations to the kernel, waits until one has an event, or so long, and appends all
    /// events there are.
    pub(crate) fn wait(&mut self, at_most: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = Timespec::from(at_most);
        let arguments = SubmitArgs::new().timespec(&timeout);
        unless_passing(self.ring.submitter().submit_with_args(1, &arguments))?;
        events.extend(self.ring.completion().map(|entry| event(&entry)));
        Ok(())
    }

    /// Reads received bytes, then gives their buffer back to the kernel.
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is given back only once")]
    pub(crate) fn read<T>(&mut self, filled: Filled, read: impl FnOnce(&[u8]) -> T) -> T {
        let Filled { id, len } = filled;
        let start = self.buffers.start(id);
        // SAFETY: the kernel has filled these bytes of this buffer, and writes to it again only
        // after it was given back, which happens once for each time it was filled.
        let bytes = unsafe { slice::from_raw_parts(start, len) };
        let result = read(bytes);
        self.buffers.give_back(id);
        result
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: an entry points to the outbox at most, which never changes and is freed only
            // after no operation is left (see `drop`).
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            unless_passing(self.ring.submit())?;
        }
    }
}

fn event(entry: &cqueue::Entry) -> Event {
    // An error is a negative number.
    let result = usize::try_from(entry.result())
        .map_err(|_| io::Error::from_raw_os_error(entry.result().wrapping_neg()));
    let connection = (entry.user_data() >> KIND_BITS) as usize;
    let more = cqueue::more(entry.flags());
    match entry.user_data() & ((1 << KIND_BITS) - 1) {
        ACCEPT => {
            // SAFETY: the kernel has just opened this descriptor for us.
            let fd = result.map(|_| unsafe { OwnedFd::from_raw_fd(entry.result()) });
            Event::Accepted { fd, more }
        }
        RECEIVE => {
            let filled = |len: usize| {
                let id = cqueue::buffer_select(entry.flags()).filter(|_| len > 0)?;
                Some(Filled { id, len: len.min(BUFFER_BYTES) })
            };
            Event::Received { connection, filled: result.map(filled), more }
        }
        _ => Event::Sent { connection, len: result },
    }
}

/// The end of the wait, a signal, or that events must be taken first, is no failure.
fn unless_passing(result: io::Result<usize>) -> io::Result<()> {
    const PASSING: [Errno; 4] = [Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN];
    match result {
        Err(error) if !PASSING.iter().any(|errno| is(&error, *errno)) => Err(error),
        _ => Ok(()),
    }
}

/// Whether an error is this one of the kernel's.
pub(crate) fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

impl Drop for Uring {
    /// Ends all operations before the memory they use is freed; where that fails, it is not freed.
    fn drop(&mut self) {
        let second = Some(Timespec::new().sec(1));
        match self.ring.submitter().register_sync_cancel(second, CancelBuilder::any()) {
            Err(error) if !is(&error, Errno::NOENT) => {
                mem::forget(Arc::clone(&self.outbox));
                self.buffers.leak();
            }
            _ => {}
        }
    }
}
