//! Storing several items atomically: all of them or none.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::item::{Header, Metadata};
use crate::memory::large::page_rounded;
use crate::memory::meta::Queue;
use crate::session::append::check_item;
use crate::session::pending::LargeAllocation;
use crate::session::state::{Expect, Guard, WriteState};
use crate::write::Write;

/// An item that was written.
struct WrittenItem<'k> {
    key: &'k [u8],
    hash: KeyHash,
    queue: Queue,
    address: u64,
    len: usize,
    /// Where a large item was written; `None` for an item in an open segment.
    allocation: Option<LargeAllocation>,
    is_published: bool,
}

/// Returns the bytes of the budget that an item of this length is charged for.
fn charged_len(cache: &Cache, bytes: usize) -> usize {
    if cache.segments.is_ordinary(bytes) { bytes } else { page_rounded(bytes) as usize }
}

impl Guard<'_> {
    /// Stores several pairs of key and value, in this order: all of them or none. If a key occurs
    /// twice, its last value counts. The condition of `write` is ignored, and the expiry
    /// [`Keep`](crate::Expiry::Keep) means none.
    ///
    /// Other sessions may see some of the new values before the others, unless this guard is
    /// exclusive: see [`begin_exclusive`](Self::begin_exclusive).
    ///
    /// # Errors
    ///
    /// - [`TooLong`](crate::Error::TooLong) if a key or a value exceeds its maximum.
    /// - [`Full`](crate::Error::Full) if there is not enough memory for all of them under this
    ///   guard. Nothing has changed then. [`renew`](Self::renew) frees enough for all, if it can.
    pub fn set_all<'k>(
        &self,
        items: impl Iterator<Item = (&'k [u8], &'k [u8])> + Clone,
        write: &Write<'_>,
    ) -> Result<()> {
        let is_compressed = write.is_compressed;
        self.set_all_encoded(items.map(|(key, value)| (key, value, is_compressed)), write)
    }

    /// Stores several values as [`set_all`](Self::set_all) does. The third part of each item is
    /// whether its value is marked as [compressed](Write::compressed); that of `write` is ignored.
    ///
    /// # Errors
    ///
    /// As [`set_all`](Self::set_all).
    pub fn set_all_encoded<'k>(
        &self,
        items: impl Iterator<Item = (&'k [u8], &'k [u8], bool)> + Clone,
        write: &Write<'_>,
    ) -> Result<()> {
        if self.session.needs_disk.get() {
            return Err(Error::OnDisk);
        }
        let mut bytes = 0;
        for (key, value, _) in items.clone() {
            check_item(self.cache(), key, value)?;
            bytes += charged_len(self.cache(), key.len() + value.len() + Header::MAX_LEN);
        }
        let metadata = write.metadata(self.now_ms(), None);
        let mut state = self.session.state.borrow_mut();
        let state = &mut *state;
        self.reclaim_for_write(state, bytes);
        // A sealed segment may be reclaimed, with items that are not published yet.
        state.deferred_seals = Some(Vec::new());
        let mut all = Vec::with_capacity(items.size_hint().0);
        let mut written = Ok(());
        for (key, value, is_compressed) in items {
            let metadata = Metadata { is_compressed, ..metadata };
            match self.write_one(state, (key, value), metadata) {
                Ok(item) => all.push(item),
                Err(error) => written = Err(error),
            }
            if written.is_err() {
                break;
            }
        }
        let result = written.and_then(|()| self.publish_all(&mut all));
        for item in all {
            self.finish_one(item);
        }
        let Cache { segments, epochs, .. } = self.cache();
        self.log_before_seal();
        for (segment, tail, queue) in state.deferred_seals.take().unwrap_or_default() {
            segments.seal(epochs, segment, &tail, queue);
        }
        let segment_len = segments.len() as usize;
        if matches!(result, Err(Error::Full)) && bytes > segment_len {
            // The last segments of short items are not filled.
            self.request_memory(bytes + 2 * segment_len);
        }
        result
    }

    /// Writes an item without publishing it.
    fn write_one<'k>(
        &self,
        state: &mut WriteState,
        (key, value): (&'k [u8], &[u8]),
        metadata: Metadata,
    ) -> Result<WrittenItem<'k>> {
        let cache = self.cache();
        let hash = cache.hash(key);
        let queue = if cache.ghost.should_promote(hash) { Queue::Main } else { Queue::Small };
        let (address, len, allocation) = if cache.segments.is_ordinary(key.len() + value.len()) {
            let item = self.append_item(
                state,
                queue,
                (key, value),
                (metadata, cache.reserved_for_moves()),
            );
            let (address, len) = item.ok_or(Error::Full)?;
            (address, len, None)
        } else {
            let (address, len, allocation) = self.write_large(key, value, metadata)?;
            (address, len, Some(allocation))
        };
        Ok(WrittenItem { key, hash, queue, address, len, allocation, is_published: false })
    }

    /// Points the index to all items, or to none. Keys that are not in the index come first: there
    /// may be no room in the index for one of them, and they can be removed again.
    fn publish_all(&self, all: &mut [WrittenItem<'_>]) -> Result<()> {
        for at in 0..all.len() {
            let WrittenItem { key, hash, address, .. } = all[at];
            match self.publish((key, hash), address, Expect::Address(None)) {
                Ok(is_published) => all[at].is_published = is_published,
                Err(error) => {
                    for item in all.iter_mut().filter(|item| item.is_published) {
                        self.remove_at(item.hash, item.address, self.item(item.address, 0));
                        // Its bytes are not live any more, so `finish_one` must not count them as
                        // removed again.
                        (item.len, item.is_published) = (0, false);
                    }
                    return Err(error);
                }
            }
        }
        for item in all.iter_mut().filter(|item| !item.is_published) {
            self.publish((item.key, item.hash), item.address, Expect::Anything)?;
            item.is_published = true;
        }
        Ok(())
    }

    /// Leaves a published item in its segment, and removes one that was not published.
    fn finish_one(&self, item: WrittenItem<'_>) {
        match item.allocation {
            Some(allocation) => {
                let address = (item.address, item.len);
                self.finish_large(address, (allocation, item.queue), item.is_published);
            }
            None if item.is_published => {}
            None => self.record_removed(item.address, item.len),
        }
    }
}
