//! Python classes for results of the chunk cache: plain objects with fields.

use super::key::Key;
use crate::convert::repr_fields;
use crate::failure::Failure;
use nuthatch_chunks::{Lookup, NotKeptReason};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::ops::Range;

/// The missing parts of a range. It is false, while results of successful lookups are true.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The missing parts as pairs of a start and an end, in order.
    pub(crate) ranges: Vec<(u64, u64)>,
}

impl Missing {
    pub(crate) fn of(ranges: &[Range<u64>]) -> Self {
        Self { ranges: pairs(ranges) }
    }
}

#[pymethods]
impl Missing {
    #[expect(clippy::unused_self, reason = "a method of a Python object")]
    fn __bool__(&self) -> bool {
        false
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::convert::format_fields(slf.as_any(), &["ranges"])
    }
}

/// Converts ranges into pairs of a start and an end.
pub(crate) fn pairs(ranges: &[Range<u64>]) -> Vec<(u64, u64)> {
    ranges.iter().map(|range| (range.start, range.end)).collect()
}

/// The bytes of consecutive chunks.
#[pyclass(frozen, get_all, module = "nuthatch.chunks")]
#[derive(Debug)]
pub(crate) struct Read {
    /// The bytes.
    pub(crate) data: Py<pyo3::types::PyBytes>,
    /// Offset in `data` of each chunk, and of the end of the last chunk.
    pub(crate) offsets: Vec<u64>,
}

/// The outcome of a put: the number of chunks by what happened to them.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the names of the Rust crate")]
pub(crate) struct Stored {
    /// Chunks that were stored.
    stored: u64,
    /// Chunks that were already in the cache.
    present: u64,
    /// Chunks of any object that were dropped from the index, because it was full and could not
    /// grow.
    displaced: u64,
    /// Why the remaining chunks were not kept: `no-room`, `disk`, `busy`, `files`, `read-only` or
    /// `folder`. `None` if all chunks are in the cache.
    not_kept: Option<&'static str>,
}

impl From<nuthatch_chunks::Stored> for Stored {
    fn from(stored: nuthatch_chunks::Stored) -> Self {
        let nuthatch_chunks::Stored { stored, present, displaced, not_kept, .. } = stored;
        Self { stored, present, displaced, not_kept: not_kept.map(NotKeptReason::code) }
    }
}

/// An object that has chunks in the cache.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    /// The key of the object.
    key: Key,
    /// Number of its chunks in the cache.
    chunks: u64,
    /// Length of these chunks in bytes.
    bytes: u64,
    /// Time when its first chunk expires, in seconds since 1970; `None` if no chunk expires.
    expires_at: Option<f64>,
    /// Whether the object is pinned.
    pinned: bool,
}

impl From<nuthatch_chunks::Object> for Object {
    fn from(object: nuthatch_chunks::Object) -> Self {
        let nuthatch_chunks::Object { key, chunks, bytes, expiry, pinned, .. } = object;
        let expires_at = crate::convert::unix_seconds((expiry != 0).then_some(expiry));
        Self { key: Key(key), chunks, bytes, expires_at, pinned }
    }
}

/// The result of a verification.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    /// Number of intact chunks.
    good: u64,
    /// Length of the intact chunks in bytes.
    good_bytes: u64,
    /// Number of damaged chunks. They were removed from the index, unless this process can only
    /// read the folder.
    damaged: u64,
    /// Segments with bytes that do not form a record, because of damage or an incomplete write.
    torn: u64,
    /// Segments that could not be opened or not be read completely. Their chunks were not all
    /// checked and stay in the cache.
    unreadable: u64,
}

impl From<nuthatch_chunks::Verified> for Verified {
    fn from(verified: nuthatch_chunks::Verified) -> Self {
        let nuthatch_chunks::Verified { good, good_bytes, damaged, torn, unreadable, .. } =
            verified;
        Self { good, good_bytes, damaged, torn, unreadable }
    }
}

/// The state of a folder, with counters of this process.
#[pyclass(frozen, eq, get_all, module = "nuthatch.chunks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Maximum length of all files together in bytes.
    limit: u64,
    /// Bytes of the filesystem that stay free.
    min_free: u64,
    /// Bytes in use or reserved by all processes.
    used: u64,
    /// Bytes in use or reserved for segments. They are part of `used`.
    segment_bytes: u64,
    /// Number of segments.
    segments: u64,
    /// Number of segments that a process appends to.
    writing: u64,
    /// Approximate number of chunks in the cache.
    parts: u64,
    /// Number of chunks that the index has room for.
    max_parts: u64,
    /// Segments evicted since the index was created.
    evicted: u64,
    /// Bytes moved to other segments instead of being evicted, since the index was created.
    moved_bytes: u64,
    /// Chunks dropped from the index because it was full and could not grow.
    displaced: u64,
    /// Whether this process can only read the folder.
    read_only: bool,
    /// Damaged chunks, record heads and files that this process found.
    damaged: u64,
    /// Puts of this process that the cache did not keep.
    not_kept: u64,
    /// Bytes that this process has written.
    written_bytes: u64,
    /// Indexes that this process has rebuilt from segments.
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

repr_fields! {
    Read: data offsets;
    Stored: stored present displaced not_kept;
    Object: key chunks bytes expires_at pinned;
    Verified: good good_bytes damaged torn unreadable;
    Stat: limit min_free used segment_bytes segments writing parts max_parts evicted moved_bytes
        displaced read_only damaged not_kept written_bytes rebuilt;
}

/// Converts an error of the chunk cache into an exception.
pub(crate) fn raised<T>(py: Python<'_>, outcome: nuthatch_chunks::Result<T>) -> PyResult<T> {
    outcome.map_err(|error| Failure::from(error).raise(py))
}

/// Converts the result of a lookup into a Python object: the value that was found, or a
/// [`Missing`].
pub(crate) fn answer<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    lookup: Lookup<T>,
) -> PyResult<Bound<'py, PyAny>> {
    match lookup {
        Lookup::Found(found) => found.into_bound_py_any(py),
        Lookup::Missing(ranges) => Missing::of(&ranges).into_bound_py_any(py),
    }
}
