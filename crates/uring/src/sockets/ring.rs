//! A ring of sockets and files.
//!
//! Accept and receive operations continue until they are stopped or fail. A socket may be closed
//! while operations on it are pending: the kernel keeps what it needs.
//!
//! This file has unsafe code. The kernel gets addresses of four things only: receive buffers, the
//! ring of these buffers, bytes that are being sent, and buffers for reads of files. All are memory
//! of the queue.

use super::completion::{Completion, decode};
use super::sends::{Outbox, OwnedSends, SendMemory, StableBytes};
use crate::buffers::{Filled, ProvidedBuffers};
use crate::files::{ReadBuffer, Reads};
use crate::options::RingOptions;
use crate::queue::Queue;
use crate::user_data::{ACCEPT, CANCEL, READ, RECEIVE, SEND, WAKE, encode};
use crate::waker::Waker;
use io_uring::opcode;
use io_uring::squeue;
use io_uring::types::Fd;
use rustix::event::PollFlags;
use rustix::net::{SendFlags, SocketFlags};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// The only buffer group.
const GROUP: u16 = 0;

/// `MSG_WAITALL` of Linux: the kernel continues until all bytes are sent. rustix defines it only
/// for receiving.
const WAIT_ALL: u32 = 0x100;

/// A ring of sockets and files, with receive buffers, the bytes that are being sent, and the
/// buffers of reads. It belongs to the thread that created it.
///
/// Operations are submitted by [`wait`](Self::wait) or [`submit`](Self::submit), or when the
/// submission queue is full.
pub struct SocketRing<S> {
    queue: Queue<Memory<S>>,
}

/// The memory that operations use.
struct Memory<S> {
    buffers: ProvidedBuffers,
    sends: S,
    reads: Reads,
}

impl<S: SendMemory> SocketRing<S> {
    /// Creates a ring with this many receive buffers, a power of two.
    ///
    /// # Errors
    ///
    /// Fails if the number of buffers is not a power of two, if memory is missing, and if the
    /// kernel does not support the ring or forbids it.
    pub fn new(options: &RingOptions, buffers: u16, sends: S) -> io::Result<Self> {
        let buffers = ProvidedBuffers::new(buffers)?;
        let entries = buffers.entries();
        let queue = Queue::new(options, Memory { buffers, sends, reads: Reads::default() })?;
        // SAFETY: `entries` is the address and the number of the entries. They begin at a page and
        // are on the heap, as part of the queue's memory, and the buffers have mappings.
        unsafe { queue.register_buffer_ring(entries, GROUP) }?;
        Ok(Self { queue })
    }

    /// Accepts connections until a completion reports that no more follow.
    ///
    /// # Errors
    ///
    /// Fails if the submission queue is full and submitting it fails.
    #[inline]
    pub fn accept(&mut self, listener: BorrowedFd<'_>, number: u32) -> io::Result<()> {
        let flags = SocketFlags::CLOEXEC.bits().cast_signed();
        let entry = opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).flags(flags).build();
        // SAFETY: the entry has no address.
        unsafe { self.queue.push(&entry.user_data(encode(ACCEPT, number))) }
    }

    /// Receives until a completion reports that no more follows.
    ///
    /// # Errors
    ///
    /// Fails if the submission queue is full and submitting it fails.
    #[inline]
    pub fn receive(&mut self, socket: BorrowedFd<'_>, connection: u32) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build();
        // SAFETY: the entry has no address. The kernel takes buffers of the group.
        unsafe { self.queue.push(&entry.user_data(encode(RECEIVE, connection))) }
    }

    /// Stops receiving, which a completion with the error `ECANCELED` reports. Other completions
    /// may come before it.
    ///
    /// # Errors
    ///
    /// Fails if the submission queue is full and submitting it fails.
    #[inline]
    pub fn cancel_receive(&mut self, connection: u32) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(encode(RECEIVE, connection)).build();
        // SAFETY: the entry has no address.
        unsafe { self.queue.push(&entry.user_data(encode(CANCEL, connection))) }
    }

    /// Reads `len` bytes at an offset of a file, which stays open until the completion reports the
    /// end of the read. `number` names the read.
    ///
    /// # Errors
    ///
    /// Fails if a read has this number, if the buffer is shorter than `len`, or if the submission
    /// queue is full and submitting it fails.
    pub fn read(
        &mut self,
        (file, offset): (BorrowedFd<'_>, u64),
        number: u32,
        buffer: ReadBuffer,
        len: u32,
    ) -> io::Result<()> {
        let reads = &mut self.queue.memory_mut().reads;
        let bytes = reads.begin(number, buffer, len as usize)?;
        let entry = opcode::Read::new(Fd(file.as_raw_fd()), bytes.as_mut_ptr(), len);
        let entry = entry.offset(offset).build().user_data(encode(READ, number));
        // SAFETY: the bytes stay in their place. Their buffer can be reached only after the
        // completion, or below if the operation was not added.
        let added = unsafe { self.queue.push(&entry) };
        if added.is_err() {
            self.queue.memory_mut().reads.end(number);
        }
        added
    }

    /// Reports the next call of a waker, once, as [`Completion::Woken`]. Then
    /// [`clear`](Waker::clear) resets the waker.
    ///
    /// # Errors
    ///
    /// Fails if the submission queue is full and submitting it fails.
    pub fn expect_wake(&mut self, waker: &Waker) -> io::Result<()> {
        let poll = u32::from(PollFlags::IN.bits());
        let entry = opcode::PollAdd::new(Fd(waker.as_fd().as_raw_fd()), poll).build();
        // SAFETY: the entry has no address.
        unsafe { self.queue.push(&entry.user_data(encode(WAKE, 0))) }
    }

    /// Submits pending operations without waiting.
    ///
    /// # Errors
    ///
    /// Fails if the system call fails.
    pub fn submit(&mut self) -> io::Result<()> {
        self.queue.submit()
    }

    /// Submits pending operations, gives returned buffers to the kernel and waits for a completion.
    /// Without a timeout it waits indefinitely. It may return without a completion.
    ///
    /// # Errors
    ///
    /// Fails if the system call fails. A timeout and a signal are not errors.
    #[inline]
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.queue.memory_mut().buffers.publish();
        self.queue.wait(timeout)
    }

    /// Passes all completions that have arrived to `each`.
    #[inline]
    pub fn take_completions(&mut self, mut each: impl FnMut(Completion<S::Sent>)) {
        self.queue.take_completions(|Memory { buffers, sends, reads }, entry| {
            // SAFETY: the kernel has just reported the entry, and only this ring has operations.
            if let Some(completion) = unsafe { decode(entry, buffers, (sends, reads)) } {
                each(completion);
            }
        });
    }

    /// Returns received bytes, until their buffer is returned. Those of a buffer of another ring
    /// are empty.
    #[inline]
    pub fn bytes(&self, filled: &Filled) -> &[u8] {
        self.queue.memory().buffers.bytes(filled)
    }

    /// Returns a buffer to the ring that has filled it. The kernel gets it at the next
    /// [`wait`](Self::wait).
    #[inline]
    pub fn give_back(&mut self, filled: Filled) {
        self.queue.memory_mut().buffers.put(filled);
    }

    /// Returns the bytes of memory of all receive buffers.
    #[inline]
    pub fn buffers_len(&self) -> usize {
        self.queue.memory().buffers.memory_len()
    }

    /// Limits the memory of receive buffers, or ends the limit. A buffer in use keeps its memory
    /// until it is returned.
    pub fn save_memory(&mut self, is_scarce: bool) {
        self.queue.memory_mut().buffers.save_memory(is_scarce);
    }

    /// Returns whether a thread that waits for completions counts as waiting for I/O.
    pub fn counts_as_iowait(&self) -> bool {
        self.queue.counts_as_iowait()
    }
}

impl<B: StableBytes> SocketRing<OwnedSends<B>> {
    /// Sends all bytes of a value. A connection has at most one send at a time.
    ///
    /// # Errors
    ///
    /// Fails if the connection has a send, or if the submission queue is full and submitting it
    /// fails.
    #[inline]
    pub fn send(&mut self, socket: BorrowedFd<'_>, connection: u32, value: B) -> io::Result<()> {
        let bytes = self.queue.memory_mut().sends.begin(connection, value)?;
        let entry = send_all(socket, bytes, connection);
        // SAFETY: the bytes stay in their place, and their value is removed by the completion, or
        // below if the operation was not added.
        let added = unsafe { self.queue.push(&entry) };
        if added.is_err() {
            self.queue.memory_mut().sends.end(connection);
        }
        added
    }
}

impl SocketRing<Outbox> {
    /// Sends a part of the outbox. Parts that are sent at the same time can be interleaved.
    ///
    /// # Errors
    ///
    /// Fails if the submission queue is full and submitting it fails.
    ///
    /// # Panics
    ///
    /// Panics if the part is not in the outbox.
    #[inline]
    pub fn send_part(
        &mut self,
        socket: BorrowedFd<'_>,
        connection: u32,
        part: Range<usize>,
    ) -> io::Result<()> {
        let entry = send_all(socket, self.queue.memory().sends.part(part), connection);
        // SAFETY: the outbox is never modified, and belongs to the memory of the queue.
        unsafe { self.queue.push(&entry) }
    }
}

/// Returns the operation that sends these bytes, at most 4 GiB.
#[inline]
fn send_all(socket: BorrowedFd<'_>, bytes: &[u8], connection: u32) -> squeue::Entry {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let flags = SendFlags::NOSIGNAL.bits() | WAIT_ALL;
    let send = opcode::Send::new(Fd(socket.as_raw_fd()), bytes.as_ptr(), len);
    send.flags(flags.cast_signed()).build().user_data(encode(SEND, connection))
}
