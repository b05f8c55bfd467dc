//! What chunk caches answer: plain objects with fields.

use super::key::Key;
use crate::shown::shown;
use nuthatch_chunks::NotKeptReason;
use pyo3::prelude::*;
use std::ops::Range;

/// What of a range is not there. It is false, where what was found is true.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The parts that are missing as pairs of a start and an end, in order.
    pub(crate) ranges: Vec<(u64, u64)>,
}

impl Missing {
    pub(crate) fn of(ranges: &[Range<u64>]) -> Self {
        Self { ranges: pairs(ranges) }
    }
}

#[pymethods]
impl Missing {
    #[expect(clippy::unused_self, reason = "Python asks an object")]
    fn __bool__(&self) -> bool {
        false
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::shown::fields(slf.as_any(), &["ranges"])
    }
}

/// Ranges as Python has them.
pub(crate) fn pairs(ranges: &[Range<u64>]) -> Vec<(u64, u64)> {
    ranges.iter().map(|range| (range.start, range.end)).collect()
}

/// Bytes of chunks that follow each other.
#[pyclass(frozen, get_all, module = "nuthatch.chunks")]
#[derive(Debug)]
pub(crate) struct Read {
    /// The bytes.
    pub(crate) data: Py<pyo3::types::PyBytes>,
    /// Where in them each chunk begins, and where the last one ends.
    pub(crate) offsets: Vec<u64>,
}

/// What became of the chunks of a put.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names of the library")]
pub(crate) struct Stored {
    /// Chunks that are there now and were not before.
    stored: u64,
    /// Chunks that were there already.
    present: u64,
    /// Chunks of any object that gave way to them, since the index could grow no further.
    displaced: u64,
    /// Why the others were not kept: `no-room`, `disk`, `busy`, `files`, `read-only`, `folder`;
    /// `None` if all are there.
    not_kept: Option<&'static str>,
}

impl From<nuthatch_chunks::Stored> for Stored {
    fn from(stored: nuthatch_chunks::Stored) -> Self {
        let nuthatch_chunks::Stored { stored, present, displaced, not_kept, .. } = stored;
        Self { stored, present, displaced, not_kept: not_kept.map(NotKeptReason::code) }
    }
}

/// An object of which chunks are there.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    /// Its key.
    key: Key,
    /// How many of its chunks are there.
    chunks: u64,
    /// Their bytes.
    bytes: u64,
    /// When the first of them expires, as `time.time()` counts; `None` if none does.
    expires_at: Option<f64>,
    /// Whether it is pinned.
    pinned: bool,
}

impl From<nuthatch_chunks::Object> for Object {
    fn from(object: nuthatch_chunks::Object) -> Self {
        let nuthatch_chunks::Object { key, chunks, bytes, expiry, pinned, .. } = object;
        let expires_at = crate::times::unix_seconds((expiry != 0).then_some(expiry));
        Self { key: Key(key), chunks, bytes, expires_at, pinned }
    }
}

/// What a look at every byte found.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Chunks that are as they were written.
    good: u64,
    /// Their bytes.
    good_bytes: u64,
    /// Chunks that are not; they are missing now.
    damaged: u64,
    /// Segments with bytes that are no record: damage, or a write that did not end.
    torn: u64,
    /// Segments that the system would not open. Nothing is known of their chunks, which stay.
    unreadable: u64,
}

impl From<nuthatch_chunks::Verified> for Verified {
    fn from(verified: nuthatch_chunks::Verified) -> Self {
        let nuthatch_chunks::Verified { good, good_bytes, damaged, torn, unreadable, .. } =
            verified;
        Self { good, good_bytes, damaged, torn, unreadable }
    }
}

/// How a folder stands.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// How many bytes all files may have together.
    limit: u64,
    /// How many bytes of the file system stay free.
    min_free: u64,
    /// How many bytes are in use or reserved, over all processes.
    used: u64,
    /// Of these, in segments.
    segment_bytes: u64,
    /// Segments: files of records.
    segments: u64,
    /// Of these, those that some process appends to.
    writing: u64,
    /// About how many chunks are there.
    parts: u64,
    /// For how many the index has room.
    max_parts: u64,
    /// Segments that were evicted since the index was made.
    evicted: u64,
    /// Bytes that were saved from eviction since the index was made.
    moved_bytes: u64,
    /// Chunks that gave way to others in the index, which could grow no further.
    displaced: u64,
    /// Whether this process can only read the folder.
    read_only: bool,
    /// Chunks, heads and files that this process found damaged.
    damaged: u64,
    /// Puts that this process could not keep.
    not_kept: u64,
    /// Bytes that this process has written.
    written_bytes: u64,
    /// Indexes that this process has made from segments.
    rebuilt: u64,
}

impl From<nuthatch_chunks::Stat> for Stat {
    fn from(stat: nuthatch_chunks::Stat) -> Self {
        Self {
            limit: stat.limit,
            min_free: stat.min_free,
            used: stat.used,
            segment_bytes: stat.segment_bytes,
            segments: stat.segments,
            writing: stat.writing,
            parts: stat.parts,
            max_parts: stat.max_parts,
            evicted: stat.evicted,
            moved_bytes: stat.moved_bytes,
            displaced: stat.displaced,
            read_only: stat.read_only,
            damaged: stat.damaged,
            not_kept: stat.not_kept,
            written_bytes: stat.written_bytes,
            rebuilt: stat.rebuilt,
        }
    }
}

shown! {
    Read: data offsets;
    Stored: stored present displaced not_kept;
    Object: key chunks bytes expires_at pinned;
    Verified: good good_bytes damaged torn unreadable;
    Stat: limit min_free used segment_bytes segments writing parts max_parts evicted moved_bytes
        displaced read_only damaged not_kept written_bytes rebuilt;
}
