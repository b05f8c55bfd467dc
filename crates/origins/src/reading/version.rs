//! One version of one object, as it was when it was opened.

use crate::counts::{Count, Tally};
use crate::engine::{Asked, Engine};
use crate::error::Error;
use crate::lock::lock;
use crate::not_kept::NotKept;
use crate::origin::{Head, Opened, Origin};
use bytes::Bytes;
use nuthatch_chunks::{Blocks, Chunks, Key, TaskChunks};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tracing::warn;

/// One version of one object.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) engine: Arc<Engine>,
    pub(crate) origin: Origin,
    pub(crate) opened: Opened,
    pub(crate) head: Head,
    pub(crate) kind: Kind,
    /// When the origin confirmed a version that it could not confirm now.
    checked: Option<SystemTime>,
    tally: Tally,
    asked: Asked,
    /// Blocks that this object had fetched, and nobody has read yet.
    unread: Mutex<HashSet<u64>>,
}

/// An object that is being opened.
pub(crate) struct Opening {
    pub(crate) engine: Arc<Engine>,
    pub(crate) origin: Origin,
    /// Without secrets.
    pub(crate) address: String,
    pub(crate) asked: Asked,
    /// The folder, if there is one that can be used.
    pub(crate) tasks: Option<TaskChunks>,
    pub(crate) tally: Tally,
}

impl Opening {
    pub(crate) fn count(&self, count: Count, number: u64) {
        self.tally.add(count, number);
        self.engine.count(count, number);
    }
}

/// What the origin said, and all bytes, if it does not tell how many there are.
pub(crate) type Answer = (Head, Option<Bytes>);

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asked")
    }
}

/// Where bytes of the object come from.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Through the cache.
    Kept(Arc<Kept>),
    /// From the origin each time, and why; `None` for a cache that has no folder by choice.
    PassedOn(Option<NotKept>),
    /// All of it was read when it was opened.
    Whole(Bytes),
}

/// What an object is in the cache.
pub(crate) struct Kept {
    pub(crate) key: Key,
    validator: String,
    pub(crate) block_len: u64,
    /// The folder as it was when the object was opened.
    pub(crate) tasks: TaskChunks,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Version {
    /// A version as its origin answered, or as the cache last recorded it: then with the time when
    /// the origin confirmed it.
    pub(crate) fn new(
        opening: Opening,
        (head, whole): Answer,
        checked: Option<SystemTime>,
    ) -> Self {
        let Opening { engine, origin, address, asked, tasks, tally } = opening;
        let len = whole.as_ref().map_or(head.len.unwrap_or_default(), |bytes| bytes.len() as u64);
        let opened = Opened { address, len, stamp: head.stamp.clone() };
        let kind = match (whole, tasks) {
            (Some(bytes), _) => Kind::Whole(bytes),
            (None, None) => Kind::PassedOn(engine.folder.path().map(|_| NotKept::Folder)),
            (None, Some(tasks)) => match kept(&engine, tasks, &opened, &head) {
                Ok(kept) => Kind::Kept(Arc::new(kept)),
                Err(cause) => Kind::PassedOn(Some(cause)),
            },
        };
        let unread = Mutex::default();
        let version = Self { engine, origin, opened, head, kind, checked, tally, asked, unread };
        if let Kind::Whole(bytes) = &version.kind
            && version.engine.folder.path().is_some()
        {
            let blocks = (bytes.len() as u64).div_ceil(version.engine.settings.block_len);
            version.count_not_kept(NotKept::NoLength, blocks);
            version.log_not_kept(NotKept::NoLength);
        }
        version
    }

    /// Records what the origin said in the folder, if anything of the object is kept there.
    pub(crate) fn record(&self) {
        if let Some(kept) = self.kept() {
            let folder = (&kept.key, &kept.tasks);
            self.engine.recorded.record(&self.opened.address, folder, &self.head);
        }
    }

    /// Returns when the origin last confirmed the version, if it could not do so when the object
    /// was opened.
    pub(crate) fn stale_since(&self) -> Option<SystemTime> {
        self.checked
    }

    pub(crate) fn len(&self) -> u64 {
        self.opened.len
    }

    /// So many bytes from an offset on, or as many as there are.
    pub(crate) fn within(&self, offset: u64, len: usize) -> Range<u64> {
        let start = offset.min(self.len());
        start..start.saturating_add(len as u64).min(self.len())
    }

    pub(crate) fn kept(&self) -> Option<&Arc<Kept>> {
        match &self.kind {
            Kind::Kept(kept) => Some(kept),
            Kind::PassedOn(_) | Kind::Whole(_) => None,
        }
    }

    /// Its blocks in the cache. `None` if the cache does not take them.
    pub(crate) fn blocks<'a>(&self, chunks: &'a Chunks, kept: &Kept) -> Option<Blocks<'a>> {
        let Opened { address, len, .. } = &self.opened;
        chunks.blocks(address, &kept.validator, *len, kept.block_len).ok()
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

    /// Records that another process has claimed blocks of this object and does not fetch them.
    pub(crate) fn claim_timed_out(&self, kept: &Kept, wait: Duration) {
        self.engine.note_unfetched(&kept.key);
        self.count(Count::ClaimTimeouts, 1);
        if let Some(unlogged) = self.engine.log_limit.admit("claim", Instant::now()) {
            let address = &self.opened.address;
            warn!(target: "nuthatch::chunks", %address, waited_ms = wait.as_millis(), unlogged,
                "another process has claimed blocks of this object and does not fetch them; this \
                 process fetches them (is a process stopped that uses the folder?)");
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A request failed: what the origin said is not believed any more if it is another one by now.
    pub(crate) fn failed(&self, error: &Error) {
        if matches!(error, Error::Changed { .. }) {
            self.engine.forget_head(&self.asked);
        }
    }

    /// A block was fetched before anybody wanted it.
    pub(crate) fn fetched_ahead(&self, block: u64) {
        lock(&self.unread).insert(block);
    }

    /// Where bytes came from that look as if they came from the cache or from others: this object
    /// may have had them fetched, without anybody waiting.
    pub(crate) fn source(&self, kept: &Kept, range: &Range<u64>, looks: Count) -> Count {
        let mut unread = lock(&self.unread);
        let first = !unread.is_empty() && unread.remove(&(range.start / kept.block_len));
        if first { Count::FromOrigin } else { looks }
    }
}

/// Returns what an object is in the cache, or why it cannot be kept there.
fn kept(engine: &Engine, tasks: TaskChunks, opened: &Opened, head: &Head) -> Result<Kept, NotKept> {
    let validator = head.validator.clone().ok_or(NotKept::NoVersion)?;
    let chunks = tasks.chunks();
    // A small cache takes small blocks alone.
    let most = chunks.max_chunk_len() & !4095;
    let block_len = engine.settings.block_len.min(most.max(4096));
    let blocks = chunks.blocks(&opened.address, &validator, opened.len, block_len);
    let key = blocks.map_err(|_| NotKept::Address)?.key().clone();
    Ok(Kept { key, validator, block_len, tasks })
}
