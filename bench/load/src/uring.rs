//! The `io_uring` below [`crate::ring`], with all unsafe code of this crate. It sends only from an
//! immutable outbox, and receives only into its own buffers. The kernel therefore never accesses
//! memory of a caller.

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

/// The completion of an operation, or of one step of a multishot operation.
#[derive(Debug)]
pub(crate) enum Event {
    /// The listener has accepted a connection. Without `more`, accepting has ended.
    Accepted { fd: io::Result<OwnedFd>, more: bool },
    /// The connection has received bytes, or `None` if the peer has closed it. Without `more`,
    /// receiving has ended.
    Received { connection: usize, filled: io::Result<Option<Filled>>, more: bool },
    /// The kernel has sent `len` bytes.
    Sent { connection: usize, len: io::Result<usize> },
}

/// A buffer with received bytes. Reading it returns the buffer to the kernel.
#[derive(Debug)]
pub(crate) struct Filled {
    id: u16,
    len: usize,
}

/// A ring with an outbox and receive buffers.
pub(crate) struct Uring {
    ring: IoUring,
    outbox: Arc<Vec<u8>>,
    buffers: Buffers,
}

/// The kinds of operations: the lowest bits of the user data. The other bits are the connection.
const ACCEPT: u64 = 0;
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const KIND_BITS: u32 = 2;

/// The number of the only buffer group.
const GROUP: u16 = 0;

const NEEDED: &str = "io_uring is required (Linux 6.1 or later, permitted by seccomp and sysctl)";

/// Linux's `MSG_WAITALL`: the kernel continues until all bytes are sent. rustix defines it only for
/// receiving.
const WAIT_ALL: u32 = 0x100;

impl Uring {
    /// Creates a ring for `entries` operations between two waits. `buffers` must be a power of two.
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
        // SAFETY: the queue is page-aligned and has `count` entries. It is freed only after all
        // operations have ended (see `drop`).
        unsafe { submitter.register_buf_ring_with_flags(address, count, GROUP, 0) }?;
        Ok(uring)
    }

    /// Accepts connections until an event without `more`.
    pub(crate) fn accept(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        let entry = opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).build();
        self.push(&entry.user_data(ACCEPT))
    }

    /// Receives until an event without `more`.
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

    /// Submits the queued operations, waits for an event for at most `at_most`, and appends all
    /// events.
    pub(crate) fn wait(&mut self, at_most: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = Timespec::from(at_most);
        let arguments = SubmitArgs::new().timespec(&timeout);
        ignore_transient(self.ring.submitter().submit_with_args(1, &arguments))?;
        events.extend(self.ring.completion().map(|entry| event(&entry)));
        Ok(())
    }

    /// Reads received bytes, then returns their buffer to the kernel.
    #[expect(clippy::needless_pass_by_value, reason = "a buffer is given back only once")]
    pub(crate) fn read<T>(&mut self, filled: Filled, read: impl FnOnce(&[u8]) -> T) -> T {
        let Filled { id, len } = filled;
        let start = self.buffers.start(id);
        // SAFETY: the kernel has filled these bytes, and writes to the buffer again only after it
        // is returned, which happens exactly once per completion.
        let bytes = unsafe { slice::from_raw_parts(start, len) };
        let result = read(bytes);
        self.buffers.give_back(id);
        result
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: an entry points only to the outbox, which is immutable and freed only after
            // all operations have ended (see `drop`).
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            ignore_transient(self.ring.submit())?;
        }
    }
}

fn event(entry: &cqueue::Entry) -> Event {
    // A negative result is an error number.
    let result = usize::try_from(entry.result())
        .map_err(|_| io::Error::from_raw_os_error(entry.result().wrapping_neg()));
    let connection = (entry.user_data() >> KIND_BITS) as usize;
    let more = cqueue::more(entry.flags());
    match entry.user_data() & ((1 << KIND_BITS) - 1) {
        ACCEPT => {
            // SAFETY: the kernel has just opened this descriptor and has given it to this process.
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

/// Ignores errors that are no failures: a timeout, a signal, or a full completion queue.
fn ignore_transient(result: io::Result<usize>) -> io::Result<()> {
    const TRANSIENT: [Errno; 4] = [Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN];
    match result {
        Err(error) if !TRANSIENT.iter().any(|errno| is(&error, *errno)) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether an error has this error number.
pub(crate) fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

impl Drop for Uring {
    /// Cancels all operations before their memory is freed. If this fails, the memory is leaked.
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
