//! Iteration over all entries, in batches.

use super::open::nuthatch_snapshot;
use super::scratch::nuthatch_snapshot_scratch;
use super::value::nuthatch_snapshot_value;
use crate::error::{Failure, Result, nuthatch_error};
use crate::memory::{export_body, unbound};
use snapshot_engine::{Entry, Iter, IterVerified};
use std::sync::Arc;

/// Maximum number of entries in a batch.
const MAX_BATCH_ENTRIES: usize = 1024;

/// A batch ends when its decompressed values have this many bytes.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// An entry of a snapshot.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_snapshot_entry {
    /// The key. The pointer refers to the file.
    pub key: *const u8,
    /// Length of the key in bytes.
    pub key_len: usize,
    /// The value.
    pub value: nuthatch_snapshot_value,
}

/// An iterator over the entries of a snapshot. One thread at a time uses it.
pub struct nuthatch_snapshot_iterator {
    /// Borrows from `snapshot`.
    entries: Entries,
    batch: Vec<nuthatch_snapshot_entry>,
    scratch: nuthatch_snapshot_scratch,
    /// The failure that ended the previous batch.
    failure: Option<Failure>,
    snapshot: Arc<nuthatch_snapshot>,
}

enum Entries {
    Unverified(Iter<'static>),
    Verified(IterVerified<'static>),
}

impl Entries {
    fn next(&mut self) -> Option<snapshot_engine::Result<Entry<'static>>> {
        match self {
            Self::Unverified(entries) => entries.next(),
            Self::Verified(entries) => entries.next(),
        }
    }
}

impl nuthatch_snapshot_iterator {
    fn new(snapshot: Arc<nuthatch_snapshot>, is_verified: bool) -> Result<Self> {
        // SAFETY: the snapshot does not move, and `self` keeps it.
        let opened = unsafe { unbound(snapshot.get()?) };
        let entries = if is_verified {
            Entries::Verified(opened.iter_verified()?)
        } else {
            Entries::Unverified(opened.iter())
        };
        let (batch, scratch) = (Vec::new(), nuthatch_snapshot_scratch::default());
        Ok(Self { entries, batch, scratch, failure: None, snapshot })
    }

    /// Replaces the batch by the next one.
    fn fill(&mut self) -> Result<()> {
        self.snapshot.get()?;
        self.batch.clear();
        self.scratch.clear();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut decompressed = 0;
        while self.batch.len() < MAX_BATCH_ENTRIES && decompressed < MAX_BATCH_BYTES {
            let Some(entry) = self.entries.next() else { break };
            match self.read(entry) {
                Ok((entry, bytes)) => {
                    decompressed += bytes;
                    self.batch.push(entry);
                }
                Err(failure) if self.batch.is_empty() => return Err(failure),
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns an entry for C, and the number of bytes of a compressed value.
    fn read(
        &mut self,
        entry: snapshot_engine::Result<Entry<'static>>,
    ) -> Result<(nuthatch_snapshot_entry, usize)> {
        let Entry { key, value } = entry?;
        let value = nuthatch_snapshot_scratch::read_also(Some(&mut self.scratch), &value)?;
        let decompressed = if value.in_place == 1 { 0 } else { value.len.saturating_mul(8) };
        let (key, key_len) = (key.as_ptr(), key.len());
        Ok((nuthatch_snapshot_entry { key, key_len, value }, decompressed))
    }
}

/// Opens an iterator over all entries, in the order of the file, which is unrelated to the order of
/// the keys and the same each time. Returns it in `iterator`. The caller closes it; until then, it
/// has a reference to the snapshot. If `verified` is 1, the checksums of each partition of the file
/// are checked before its first entry is returned: damage is then an error, not a wrong entry, and
/// the iteration ends after its first error. If `verified` is 0, the next call after an error
/// continues with the next entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_iterator_open(
    snapshot: *const nuthatch_snapshot,
    verified: u32,
    iterator: *mut *mut nuthatch_snapshot_iterator,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("iterator", iterator)?;
        let snapshot = caller.share("snapshot", snapshot)?;
        let opened = nuthatch_snapshot_iterator::new(snapshot, verified != 0)?;
        out.put(Box::into_raw(Box::new(opened)));
        Ok(())
    })
}

/// Returns the next entries: a pointer to an array in `entries`, and its length in `count`, at most
/// 1,024, and 0 after the last entry. Keys, and values with `in_place` 1, are valid until the last
/// reference to the snapshot is released. The array and all other values are valid until the next
/// call for this iterator, or until it is closed. A call that fails returns no entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_iterator_next(
    iterator: *mut nuthatch_snapshot_iterator,
    entries: *mut *const nuthatch_snapshot_entry,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let (mut entries, mut count) =
            (caller.out("entries", entries)?, caller.out("count", count)?);
        let iterator = caller.exclusive("iterator", iterator)?;
        iterator.fill()?;
        entries.put(iterator.batch.as_ptr());
        count.put(iterator.batch.len());
        Ok(())
    })
}

/// Closes an iterator, and releases its reference to the snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_iterator_close(
    iterator: *mut nuthatch_snapshot_iterator,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| caller.take("iterator", iterator).map(drop))
}
