//! One version of an object: that which was current when the object was opened.

use crate::counts::{Count, Tally};
use crate::engine::{Engine, ObjectRequest};
use crate::error::Error;
use crate::lock::lock;
use crate::not_kept::NotKept;
use crate::origin::{Head, OpenedVersion, Origin};
use bytes::Bytes;
use nuthatch_chunks::{Blocks, Chunks, Key, TaskChunks};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tracing::warn;

/// One version of an object.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) engine: Arc<Engine>,
    pub(crate) origin: Origin,
    pub(crate) opened: OpenedVersion,
    pub(crate) head: Head,
    pub(crate) source: ByteSource,
    /// For a stale version, the time when the origin last confirmed it.
    confirmed_at: Option<SystemTime>,
    tally: Tally,
    request: ObjectRequest,
    /// Blocks that were fetched for this object and not read yet.
    unread: Mutex<HashSet<u64>>,
}

/// An object that is being opened: what its version needs besides the response of the origin.
pub(crate) struct Opening {
    pub(crate) engine: Arc<Engine>,
    pub(crate) origin: Origin,
    /// The address without secrets.
    pub(crate) address: String,
    pub(crate) request: ObjectRequest,
    /// The folder of the cache, if it can be used.
    pub(crate) tasks: Option<TaskChunks>,
    pub(crate) tally: Tally,
}

impl Opening {
    pub(crate) fn count(&self, count: Count, number: u64) {
        self.tally.add(count, number);
        self.engine.count(count, number);
    }
}

/// The response of the origin, with all bytes if it did not report their number.
pub(crate) type HeadResponse = (Head, Option<Bytes>);

impl std::fmt::Debug for ObjectRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObjectRequest")
    }
}

/// Where the bytes of the object come from.
#[derive(Debug)]
pub(crate) enum ByteSource {
    /// Through the cache.
    Cached(Arc<CachedVersion>),
    /// From the origin each time, and why; `None` for a cache without a folder.
    Passthrough(Option<NotKept>),
    /// From memory: the whole object was read when it was opened.
    InMemory(Bytes),
}

/// The identity of a version in the cache.
pub(crate) struct CachedVersion {
    pub(crate) key: Key,
    validator: String,
    pub(crate) block_len: u64,
    /// The folder that was open when the object was opened.
    pub(crate) tasks: TaskChunks,
}

impl std::fmt::Debug for CachedVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedVersion").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Version {
    /// Returns a version. `confirmed_at` is set for a stale version: when its origin last confirmed
    /// it.
    pub(crate) fn new(
        opening: Opening,
        (head, whole): HeadResponse,
        confirmed_at: Option<SystemTime>,
    ) -> Self {
        let Opening { engine, origin, address, request, tasks, tally } = opening;
        let len = whole.as_ref().map_or(head.len.unwrap_or_default(), |bytes| bytes.len() as u64);
        let opened = OpenedVersion { address, len, stamp: head.stamp.clone() };
        let source = match (whole, tasks) {
            (Some(bytes), _) => ByteSource::InMemory(bytes),
            (None, None) => ByteSource::Passthrough(engine.folder.path().map(|_| NotKept::Folder)),
            (None, Some(tasks)) => match cached_version(&engine, tasks, &opened, &head) {
                Ok(cached) => ByteSource::Cached(Arc::new(cached)),
                Err(cause) => ByteSource::Passthrough(Some(cause)),
            },
        };
        let unread = Mutex::default();
        let version =
            Self { engine, origin, opened, head, source, confirmed_at, tally, request, unread };
        if let ByteSource::InMemory(bytes) = &version.source
            && version.engine.folder.path().is_some()
        {
            let blocks = (bytes.len() as u64).div_ceil(version.engine.settings.block_len);
            version.count_not_kept(NotKept::NoLength, blocks);
            version.log_not_kept(NotKept::NoLength);
        }
        version
    }

    /// Records the response of the origin in the folder, if the object can be cached.
    pub(crate) fn record(&self) {
        if let Some(cached) = self.cached() {
            let folder = (&cached.key, &cached.tasks);
            self.engine.recorded.record(&self.opened.address, folder, &self.head);
        }
    }

    /// Returns when the origin last confirmed the version, if it could not do so when the object
    /// was opened.
    pub(crate) fn stale_since(&self) -> Option<SystemTime> {
        self.confirmed_at
    }

    pub(crate) fn len(&self) -> u64 {
        self.opened.len
    }

    /// Returns the range of `len` bytes from an offset, cut off at the end of the object.
    pub(crate) fn within(&self, offset: u64, len: usize) -> Range<u64> {
        let start = offset.min(self.len());
        start..start.saturating_add(len as u64).min(self.len())
    }

    pub(crate) fn cached(&self) -> Option<&Arc<CachedVersion>> {
        match &self.source {
            ByteSource::Cached(cached) => Some(cached),
            ByteSource::Passthrough(_) | ByteSource::InMemory(_) => None,
        }
    }

    /// Returns the blocks in the cache, or `None` if their key is not valid.
    pub(crate) fn blocks<'a>(
        &self,
        chunks: &'a Chunks,
        cached: &CachedVersion,
    ) -> Option<Blocks<'a>> {
        let OpenedVersion { address, len, .. } = &self.opened;
        chunks.blocks(address, &cached.validator, *len, cached.block_len).ok()
    }

    /// Adds to the counts of the object and of the cache.
    pub(crate) fn count(&self, count: Count, number: u64) {
        self.tally.add(count, number);
        self.engine.count(count, number);
    }

    /// Adds to the counts of blocks that are not kept, of the object and of the cache.
    pub(crate) fn count_not_kept(&self, cause: NotKept, blocks: u64) {
        self.tally.add_not_kept(cause, blocks);
        self.engine.tally.add_not_kept(cause, blocks);
    }

    /// Logs why blocks of this object are not kept, if the cause is the object.
    pub(crate) fn log_not_kept(&self, cause: NotKept) {
        if let Some(unlogged) = self.engine.log_limit.admit(cause.code(), Instant::now()) {
            let address = &self.opened.address;
            warn!(target: "nuthatch::chunks", %address, cause = cause.code(), reason = %cause,
                unlogged, "blocks of this object are not kept");
        }
    }

    /// Logs and counts that another process holds the fetch lock of blocks and does not fetch them.
    pub(crate) fn log_fetch_lock_timeout(&self, cached: &CachedVersion, wait: Duration) {
        self.engine.note_fetch_lock_timeout(&cached.key);
        self.count(Count::FetchLockTimeouts, 1);
        if let Some(unlogged) = self.engine.log_limit.admit("fetch_lock", Instant::now()) {
            let address = &self.opened.address;
            warn!(target: "nuthatch::chunks", %address, waited_ms = wait.as_millis(), unlogged,
                "another process holds the fetch lock of blocks of this object and does not fetch \
                 them; this process fetches them (is a process stopped that uses the folder?)");
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Handles a failed request: forgets the recent response of the origin if the object has
    /// changed.
    pub(crate) fn failed(&self, error: &Error) {
        if matches!(error, Error::Changed { .. }) {
            self.engine.forget_head(&self.request);
        }
    }

    /// Notes that a block was fetched before a reader needed it.
    pub(crate) fn note_prefetched(&self, block: u64) {
        lock(&self.unread).insert(block);
    }

    /// Returns where bytes came from. `apparent` is the source that was read; bytes that were
    /// prefetched for this object count as from the origin.
    pub(crate) fn source_of(
        &self,
        cached: &CachedVersion,
        range: &Range<u64>,
        apparent: Count,
    ) -> Count {
        let mut unread = lock(&self.unread);
        let first = !unread.is_empty() && unread.remove(&(range.start / cached.block_len));
        if first { Count::FromOrigin } else { apparent }
    }
}

/// Returns the identity of a version in the cache, or why it cannot be stored.
fn cached_version(
    engine: &Engine,
    tasks: TaskChunks,
    opened: &OpenedVersion,
    head: &Head,
) -> Result<CachedVersion, NotKept> {
    let validator = head.validator.clone().ok_or(NotKept::NoVersion)?;
    let chunks = tasks.chunks();
    // A small cache only accepts small blocks.
    let max_len = chunks.max_chunk_len() & !4095;
    let block_len = engine.settings.block_len.min(max_len.max(4096));
    let blocks = chunks.blocks(&opened.address, &validator, opened.len, block_len);
    let key = blocks.map_err(|_| NotKept::Address)?.key().clone();
    Ok(CachedVersion { key, validator, block_len, tasks })
}
