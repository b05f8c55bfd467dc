//! Completions of the operations of sockets and files.
//!
//! This file has unsafe code, since a completion hands over what the kernel has created: a
//! descriptor or a filled buffer.

use super::sends::SendMemory;
use crate::buffers::{Filled, ProvidedBuffers};
use crate::files::{ReadBuffer, Reads};
use crate::user_data::{self, ACCEPT, READ, RECEIVE, SEND, WAKE};
use io_uring::cqueue;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The completion of an operation, or of one step of an operation that continues.
#[derive(Debug)]
pub enum Completion<T> {
    /// A connection was accepted.
    Accepted {
        /// The number of the listener.
        listener: u32,
        /// The socket of the connection.
        socket: io::Result<OwnedFd>,
        /// Whether the operation continues.
        more: bool,
    },
    /// Bytes were received; none if the peer sends no more. If no buffer was free, the error is
    /// `ENOBUFS`.
    Received {
        /// The number of the connection.
        connection: u32,
        /// A buffer with them, to be returned after reading.
        bytes: io::Result<Option<Filled>>,
        /// Whether the operation continues.
        more: bool,
    },
    /// A send ended.
    Sent {
        /// The number of the connection.
        connection: u32,
        /// The value that was sent.
        value: T,
        /// The number of bytes that were sent. Fewer than all if the connection ended meanwhile.
        len: io::Result<u32>,
    },
    /// A read of a file ended.
    Read {
        /// The number of the read.
        number: u32,
        /// The buffer.
        buffer: ReadBuffer,
        /// The number of bytes that were read. Fewer than requested if the file ends before.
        len: io::Result<u32>,
    },
    /// A [`Waker`](crate::Waker) was called.
    Woken,
}

/// Returns the completion that an entry describes; `None` for operations that report by others.
///
/// # Safety
///
/// The kernel has reported the entry for an operation of the ring with these buffers, and for each
/// entry this function is called once.
#[inline]
pub(super) unsafe fn decode<S: SendMemory>(
    entry: &cqueue::Entry,
    buffers: &ProvidedBuffers,
    (sends, reads): (&mut S, &mut Reads),
) -> Option<Completion<S::Sent>> {
    // Errors are negative.
    let result = u32::try_from(entry.result())
        .map_err(|_| io::Error::from_raw_os_error(entry.result().wrapping_neg()));
    let (kind, number) = user_data::decode(entry.user_data());
    let more = cqueue::more(entry.flags());
    Some(match kind {
        ACCEPT => {
            // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
            let socket = result.map(|_| unsafe { OwnedFd::from_raw_fd(entry.result()) });
            Completion::Accepted { listener: number, socket, more }
        }
        RECEIVE => {
            let filled = |len: u32| {
                let id = cqueue::buffer_select(entry.flags()).filter(|_| len > 0)?;
                // SAFETY: this entry is the report.
                Some(unsafe { buffers.filled(id, len) })
            };
            Completion::Received { connection: number, bytes: result.map(filled), more }
        }
        SEND => Completion::Sent { connection: number, value: sends.end(number)?, len: result },
        READ => Completion::Read { number, buffer: reads.end(number)?, len: result },
        WAKE => Completion::Woken,
        _ => return None,
    })
}
