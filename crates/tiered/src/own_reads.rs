//! Reads that the caller performs, for example on its own `io_uring`.

use crate::planned_read::{Parsed, PlannedRead};
use crate::promote::{LONG_READ, Promoted, count_read, finish_read};
use crate::tiered::TieredCache;
use crate::waiting::Waiter;
use nuthatch_cache::{OnDisk, Session};
use std::io;
use std::sync::Arc;

/// How often a promotion frees memory before the item counts as one that found no memory.
const MAX_RENEWALS: usize = 2;

impl TieredCache {
    /// Requests an item from disk as [`read`](Self::read) does, but lets the caller perform the
    /// read: it must pass the result to [`end_read`](Self::end_read). Returns `None` if the item is
    /// being read already, or if its file was removed; `waiter` is called as well then.
    pub fn begin_read(
        &self,
        on_disk: OnDisk,
        waiter: &Arc<dyn Waiter>,
        token: u64,
    ) -> Option<PlannedRead> {
        if !self.reads.join(on_disk, waiter, token) {
            return None;
        }
        let read = PlannedRead::new(&self.shared.reader, on_disk);
        if read.is_none() {
            // A reader thread removes the item from the index.
            self.reads.queue(on_disk);
        }
        read
    }

    /// Ends a read: promotes its item to memory, and calls all that wait for it. `bytes` are those
    /// that were read. Returns another read if the record is longer.
    pub fn end_read(
        &self,
        session: &mut Session<'_>,
        read: PlannedRead,
        bytes: io::Result<&[u8]>,
    ) -> Option<PlannedRead> {
        let (on_disk, len) = (read.on_disk, read.len());
        let bytes = match bytes {
            Ok(bytes) if bytes.len() == len => Ok(bytes),
            Ok(bytes) => {
                Err(read.plan.failure(&format!("expected {len} bytes, found {}", bytes.len())))
            }
            Err(error) => Err(read.plan.failure(&format!("cannot be read: {error}"))),
        };
        let record = match read.parse(bytes) {
            Parsed::Begin(longer) => return Some(longer),
            Parsed::Ended(record) => record,
        };
        let record = count_read(&self.shared, record, || session.guard().points_to(on_disk));
        match finish_read(&self.shared, session, on_disk, record.as_ref(), MAX_RENEWALS) {
            Promoted::Done => self.reads.finish(on_disk),
            // A reader thread reads the item again, and waits for memory.
            Promoted::NoMemory if len <= LONG_READ => self.reads.queue(on_disk),
            // The operation is repeated when memory was freed, and requests the read again.
            Promoted::NoMemory => self.room_waiters.add_long_item(self.reads.take(on_disk)),
        }
        None
    }
}
