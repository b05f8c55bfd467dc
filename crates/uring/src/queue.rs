//! The two queues of an `io_uring`, and the memory that its operations use.
//!
//! New operations are submitted with the wait for completions, in one system call. The queue knows
//! no kind of operation.
//!
//! This file has unsafe code. The kernel uses the memory of an operation until the operation has
//! completed, also after the program has lost interest in it. So a queue owns the memory of all its
//! operations. Dropping a queue first cancels them. If that fails, their memory is leaked.

use crate::options::RingOptions;
use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};
use rustix::io::Errno;
use std::io;
use std::mem::ManuallyDrop;
use std::time::Duration;

/// `IORING_ENTER_GETEVENTS`, `IORING_ENTER_EXT_ARG` and `IORING_ENTER_NO_IOWAIT` of Linux.
const GET_EVENTS: u32 = 1 << 0;
const EXTENDED_ARGUMENT: u32 = 1 << 3;
const NO_IOWAIT: u32 = 1 << 7;

/// The queues of an `io_uring`. They belong to the thread that created them.
pub(crate) struct Queue<M> {
    ring: ManuallyDrop<IoUring>,
    /// The memory that operations read and write.
    memory: ManuallyDrop<M>,
    /// Whether the kernel waits without counting the thread as waiting for I/O.
    has_no_iowait: bool,
}

impl<M> Queue<M> {
    /// Creates the queues for operations that use `memory`.
    pub(crate) fn new(options: &RingOptions, memory: M) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_defer_taskrun()
            .setup_clamp()
            .setup_cqsize(options.completions)
            .build(options.operations)?;
        let has_no_iowait = !options.counts_as_iowait && ring.params().is_feature_no_iowait();
        let (ring, memory) = (ManuallyDrop::new(ring), ManuallyDrop::new(memory));
        Ok(Self { ring, memory, has_no_iowait })
    }

    /// Returns the memory of the operations.
    #[inline]
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns the memory of the operations. What the kernel uses must stay there.
    #[inline]
    pub(crate) fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Returns whether a thread that waits counts as waiting for I/O.
    pub(crate) fn counts_as_iowait(&self) -> bool {
        !self.has_no_iowait
    }

    /// Registers a ring of buffers: the address of its entries, and how many there are.
    ///
    /// # Safety
    ///
    /// The address is that of a page, and has this many entries. They and the buffers to which they
    /// point are part of `memory`, and stay where they are when it is moved.
    pub(crate) unsafe fn register_buffer_ring(
        &self,
        (address, count): (u64, u16),
        group: u16,
    ) -> io::Result<()> {
        let submitter = self.ring.submitter();
        // SAFETY: the caller guarantees it. The memory outlives the operations, see `drop`.
        unsafe { submitter.register_buf_ring_with_flags(address, count, group, 0) }
    }

    /// Adds an operation. If the submission queue is full, submits its operations first.
    ///
    /// # Safety
    ///
    /// All memory to which the entry points is part of `memory`, and stays where it is when that is
    /// moved. Until the operation has completed, it is not freed, and only the kernel writes to it;
    /// if the kernel writes to it, the program does not read it either.
    #[inline]
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the caller guarantees it until the operation has completed, and `drop` after
            // that.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.submit()?;
        }
    }

    /// Submits pending operations without waiting.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        ignore_transient(self.ring.submit())
    }

    /// Submits pending operations and waits for a completion. Without a timeout it waits
    /// indefinitely.
    #[inline]
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let submitted = match timeout {
            _ if self.has_no_iowait => self.wait_without_iowait(timeout),
            None => self.ring.submitter().submit_and_wait(1),
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
            }
        };
        ignore_transient(submitted)
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

    /// Removes all completions from their queue and passes them to `each`, with the memory.
    #[inline]
    pub(crate) fn take_completions(&mut self, mut each: impl FnMut(&mut M, &cqueue::Entry)) {
        let Self { ring, memory, .. } = self;
        for entry in ring.completion() {
            each(memory, &entry);
        }
    }
}

/// Ignores errors that are not failures: a timeout, a signal, and completions that must be taken
/// first.
#[inline]
fn ignore_transient(result: io::Result<usize>) -> io::Result<()> {
    const TRANSIENT: [Errno; 4] = [Errno::TIME, Errno::INTR, Errno::BUSY, Errno::AGAIN];
    match result {
        Err(error) if !TRANSIENT.iter().any(|errno| is(&error, *errno)) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether an error has this number.
fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

impl<M> Drop for Queue<M> {
    fn drop(&mut self) {
        let second = Some(Timespec::new().sec(1));
        let cancelled = self.ring.submitter().register_sync_cancel(second, CancelBuilder::any());
        if cancelled.as_ref().is_err_and(|error| !is(error, Errno::NOENT)) {
            return;
        }
        // SAFETY: no operation is left, and nothing uses the ring after this.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
        // SAFETY: no operation is left that could use it, and nothing uses it after this.
        unsafe { ManuallyDrop::drop(&mut self.memory) };
    }
}
