//! Writing large items: those that exceed half of an ordinary segment.
//!
//! Each large item has a segment of its own, which is as long as the item in whole pages. Its
//! addresses are after those of the ordinary segments. The segment is queued, reclaimed and retired
//! like others, but a large item is never copied: instead of moving it, reclamation puts its
//! segment at the end of a queue.
//!
//! All items share one budget. Pages of large items reduce the limit of ordinary segments until the
//! pages were returned to the system. That takes long for a large item, so it happens in slices:
//! one for each guard, and more if a write finds too little memory. Conversely, pages of free
//! ordinary segments are returned before a large item is written.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Header, Metadata};
use crate::memory::meta::Queue;
use crate::session::pending::LargeAllocation;
use crate::session::state::{Expect, Guard};

impl Guard<'_> {
    /// Writes a large item and points the index to it, if the index holds what is expected. Returns
    /// whether it did.
    pub(crate) fn put_large(
        &self,
        (key, hash): (&[u8], KeyHash),
        value: &[u8],
        (metadata, queue): (Metadata, Queue),
        expect: Expect,
    ) -> Result<bool> {
        let (address, len, allocation) = match self.write_large(key, value, metadata) {
            Err(Error::Full) => {
                self.request_memory(Header::new(key.len(), value.len(), metadata, 0).len());
                return Err(Error::Full);
            }
            written => written?,
        };
        let stored = self.publish((key, hash), address, expect);
        self.finish_large((address, len), (allocation, queue), matches!(stored, Ok(true)));
        stored
    }

    /// Writes a large item, or adds header and key to a pending value. Returns its address, its
    /// length and where it is allocated. The index does not point to it yet.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there is no room for it under this guard.
    pub(crate) fn write_large(
        &self,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(u64, usize, LargeAllocation)> {
        // Large items have no short expiries, as their segments have no time base.
        let header = Header::new(key.len(), value.len(), metadata, 0);
        if let Some((address, allocation)) = self.convert_value(key, value, &header) {
            return Ok((address, header.len(), allocation));
        }
        let Cache { arena, segments, .. } = self.cache();
        let opened = self.cache().open_large(header.len(), self.cache().reserved_for_moves());
        let (segment, mut tail) = opened.ok_or(Error::Full)?;
        let address = tail.address();
        header.write(arena.allocate(&mut tail, header.len()), key, 0).copy_from_slice(value);
        segments.add_live(segment.number, header.len(), metadata.expires_ms);
        Ok((address, header.len(), LargeAllocation::Segment(segment, tail)))
    }

    /// Completes [`write_large`](Self::write_large): seals the segment of an item that the index
    /// points to, and frees that of another.
    pub(crate) fn finish_large(
        &self,
        (address, len): (u64, usize),
        (allocation, queue): (LargeAllocation, Queue),
        is_published: bool,
    ) {
        let Cache { segments, epochs, .. } = self.cache();
        self.log_before_seal();
        match allocation {
            LargeAllocation::Segment(segment, tail) => {
                if !is_published {
                    self.record_removed(address, len);
                }
                segments.seal(epochs, segment, &tail, queue);
            }
            LargeAllocation::Pending(segment, value) => {
                self.finish_value((address, len), (segment, value), is_published.then_some(queue));
            }
        }
    }
}
