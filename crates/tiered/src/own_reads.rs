//! Reads that the caller performs, for example on its own `io_uring`.

use crate::promote::{Promoted, finish_read};
use crate::tiered::TieredCache;
use crate::waiting::Waiter;
use nuthatch_cache::{OnDisk, Session};
use nuthatch_tier::{Place, ReadError, ReadPlan};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// How often a promotion frees memory before those that wait for the item wait for room.
const MAX_RENEWALS: usize = 2;

/// A read that the caller performs: see [`TieredCache::begin_read`]. The file stays open as long as
/// this exists.
#[derive(Debug)]
pub struct OwnRead {
    on_disk: OnDisk,
    plan: ReadPlan,
    /// Bytes that were read before, as the record turned out to be longer than them.
    bytes_before: usize,
}

impl OwnRead {
    /// Returns the file to read from.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.plan.as_fd()
    }

    /// Returns the offset to read from, a multiple of 4 KiB.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.plan.offset()
    }

    /// Returns the number of bytes to read, a multiple of 4 KiB. The memory must begin at a
    /// multiple of 4 KiB.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.plan.len()
    }
}

impl TieredCache {
    /// Requests an item from disk as [`read`](Self::read) does, but lets the caller perform the
    /// read: it must pass the result to [`end_read`](Self::end_read). Returns `None` if the item is
    /// being read already, or if a reader thread takes over; `waiter` is called as well then.
    pub fn begin_read(
        &self,
        on_disk: OnDisk,
        waiter: &Arc<dyn Waiter>,
        token: u64,
    ) -> Option<OwnRead> {
        if !self.reads.claim(on_disk, waiter, token) {
            return None;
        }
        let plan = self.shared.reader.read_plan(Place::unpack(on_disk.place(), 0));
        if plan.is_none() {
            self.reads.queue(on_disk);
        }
        plan.map(|plan| OwnRead { on_disk, plan, bytes_before: 0 })
    }

    /// Ends a read: promotes its item to memory, and calls all that wait for it. `bytes` are those
    /// that were read. Returns another read if the record is longer.
    pub fn end_read(
        &self,
        session: &mut Session<'_>,
        read: OwnRead,
        bytes: io::Result<&[u8]>,
    ) -> Option<OwnRead> {
        let OwnRead { on_disk, plan, bytes_before } = read;
        let parsed = match bytes {
            Ok(bytes) if bytes.len() == plan.len() => plan.parse_any(bytes),
            Ok(bytes) => {
                Err(plan.failure(&format!("expected {} bytes, found {}", plan.len(), bytes.len())))
            }
            Err(error) => Err(plan.failure(&format!("cannot be read: {error}"))),
        };
        let bytes_read = bytes_before + plan.len();
        if let Err(ReadError::Short { needed }) = parsed {
            let plan = plan.extended(needed);
            return Some(OwnRead { on_disk, plan, bytes_before: bytes_read });
        }
        let found = parsed.map(|record| (record, plan.id(), bytes_read));
        match finish_read(&self.shared, session, on_disk, found, MAX_RENEWALS) {
            Promoted::Done => self.reads.finish(on_disk),
            // The operation is repeated once memory was freed, and requests the read again.
            Promoted::NoMemory => self.room_waiters.add_item(bytes_read, self.reads.take(on_disk)),
        }
        None
    }
}
