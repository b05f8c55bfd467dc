//! Python class for objects that are stored as blocks.

use super::block_object::BlockObject;
use super::flights::{Flight, SingleFlight, Waiter};
use super::key::Key;
use super::results::{Missing, Stored, answer, pairs, raised};
use super::view::View;
use crate::convert::{BytesArg, expiry, write_into};
use nuthatch_chunks::{Lookup, Result, merge_gaps};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::ops::Range;

/// An object that is stored as blocks in a cache. All ranges count bytes and exclude their end.
#[pyclass(frozen, module = "nuthatch.chunks")]
pub(crate) struct Blocks(BlockObject);

/// Longer ranges, in bytes, are looked up before memory for them is allocated.
const MIN_LOOKED_UP_BYTES: u64 = 256 << 10;

/// Pieces of the object that the caller already has: pairs of an offset in bytes and the bytes.
type FetchedParts = Vec<(u64, PyBackedBytes)>;

impl Blocks {
    pub(super) fn new(object: BlockObject) -> Self {
        Self(object)
    }
}

/// Fills a buffer with a range, from the caller's pieces and from the cache.
fn fill(
    blocks: &nuthatch_chunks::Blocks<'_>,
    range: Range<u64>,
    fetched: &FetchedParts,
    out: &mut [u8],
) -> Result<Lookup<()>> {
    if fetched.is_empty() {
        return blocks.get_into(range, out);
    }
    let mut missing = Vec::new();
    let mut at = range.start;
    let mut cached = |from: u64, to: u64, out: &mut [u8]| -> Result<()> {
        if from < to {
            missing.extend_from_slice(blocks.get_into(from..to, out)?.missing());
        }
        Ok(())
    };
    let place = |from: u64, to: u64| (from - range.start) as usize..(to - range.start) as usize;
    for (start, bytes) in fetched {
        let end = start.saturating_add(bytes.len() as u64).min(range.end);
        let from = (*start).max(at);
        if from >= end {
            continue;
        }
        cached(at, from, &mut out[place(at, from)])?;
        let skip = (from - start) as usize;
        let len = (end - from) as usize;
        out[place(from, end)].copy_from_slice(&bytes[skip..skip + len]);
        at = end;
    }
    cached(at, range.end, &mut out[place(at, range.end)])?;
    let missing = merge_gaps(&missing, 0, u64::MAX);
    Ok(if missing.is_empty() { Lookup::Found(()) } else { Lookup::Missing(missing) })
}

#[pymethods]
impl Blocks {
    /// Returns the key of the object.
    #[getter]
    fn key(&self) -> Key {
        Key(self.0.key.clone())
    }

    /// Returns the length of the object in bytes.
    #[getter]
    fn object_len(&self) -> u64 {
        self.0.object_len
    }

    /// Returns the length of its blocks in bytes. The last block can be shorter.
    #[getter]
    fn block_len(&self) -> u64 {
        self.0.block_len
    }

    /// Stores the blocks that `data` covers completely, beginning at an offset.
    ///
    /// Blocks that are already in the cache are not written again.
    ///
    /// Args:
    ///     `offset`: Offset of `data` in the object, in bytes.
    ///     `data`: The bytes.
    ///     `ttl`: Seconds from now until the blocks expire; by default they do not expire.
    ///     `expires_at`: Time of expiry in seconds since 1970, instead of `ttl`.
    ///
    /// Returns:
    ///     A `Stored` with the number of blocks by outcome.
    ///
    /// Raises:
    ///     `ConflictError`: The cache has a block with different bytes.
    #[pyo3(signature = (offset, data, *, ttl=None, expires_at=None))]
    fn put(
        &self,
        py: Python<'_>,
        offset: u64,
        data: BytesArg<'_>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
    ) -> PyResult<Stored> {
        let (expiry, data) = (expiry(py, ttl, expires_at)?.unwrap_or(0), &*data);
        let chunks = self.0.folder.chunks_to_change(py)?;
        let put = || self.0.of(&chunks)?.put_until(offset, data, expiry);
        raised(py, py.detach(put)).map(Stored::from)
    }

    /// Returns the bytes of a range, or what is missing of it.
    ///
    /// Args:
    ///     `start`: First byte of the range.
    ///     `end`: End of the range, excluded.
    ///     `fetched`: Pairs of an offset and bytes, sorted by offset, that are used in place of the
    ///         cache.
    ///
    /// Returns:
    ///     The bytes as `bytes`; a `Missing` if some are in neither.
    #[pyo3(signature = (start, end, fetched=FetchedParts::new()))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        end: u64,
        fetched: FetchedParts,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A lookup before the allocation of a large buffer. For a small one a second lookup costs
        // more.
        let len = end.saturating_sub(start);
        if len == 0 || len > MIN_LOOKED_UP_BYTES {
            let missing = self.0.run(py, |blocks| blocks.missing(start..end))?;
            if fetched.is_empty() && !missing.is_empty() {
                return Missing::of(&missing).into_bound_py_any(py);
            }
        }
        let mut lookup = Lookup::Missing(Vec::new());
        let bytes = PyBytes::new_with(py, len as usize, |out| {
            lookup = self.0.run(py, |blocks| fill(blocks, start..end, &fetched, out))?;
            Ok(())
        })?;
        match lookup {
            Lookup::Found(()) => Ok(bytes.into_any()),
            Lookup::Missing(ranges) => Missing::of(&ranges).into_bound_py_any(py),
        }
    }

    /// Reads bytes from an offset on into a buffer, without a copy in between.
    ///
    /// Args:
    ///     `start`: First byte to read.
    ///     `buffer`: A writable buffer; it must not reach beyond the end of the object.
    ///     `fetched`: Pairs of an offset and bytes, sorted by offset, that are used in place of the
    ///         cache.
    ///
    /// Returns:
    ///     The number of bytes; a `Missing` if some are in neither.
    #[pyo3(signature = (start, buffer, fetched=FetchedParts::new()))]
    fn get_into<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        buffer: PyBuffer<u8>,
        fetched: FetchedParts,
    ) -> PyResult<Bound<'py, PyAny>> {
        let chunks = self.0.folder.chunks(py)?;
        let len = buffer.len_bytes() as u64;
        let range = start..start.saturating_add(len);
        let read = |out: &mut [u8]| fill(&self.0.of(&chunks)?, range, &fetched, out);
        match raised(py, write_into(py, &buffer, read)?)? {
            Lookup::Found(()) => len.into_bound_py_any(py),
            missing @ Lookup::Missing(_) => answer(py, missing),
        }
    }

    /// Returns a view of a range in the memory map of the cache, without a copy.
    ///
    /// Args:
    ///     `start`: First byte of the range.
    ///     `end`: End of the range, excluded.
    ///
    /// Returns:
    ///     A `View`; a `Missing` if some bytes are not in the cache.
    fn view<'py>(&self, py: Python<'py>, start: u64, end: u64) -> PyResult<Bound<'py, PyAny>> {
        let lookup = self.0.run(py, |blocks| blocks.view(start..end))?;
        View::answer(py, lookup)
    }

    /// Returns the ranges to fetch before a range can be read: whole blocks as pairs of a start and
    /// an end, in order.
    ///
    /// Args:
    ///     `start`: First byte of the range.
    ///     `end`: End of the range, excluded.
    fn missing(&self, py: Python<'_>, start: u64, end: u64) -> PyResult<Vec<(u64, u64)>> {
        Ok(pairs(&self.0.run(py, |blocks| blocks.missing(start..end))?))
    }

    /// Divides missing ranges into those that the caller must fetch and those that another thread
    /// or task of this process is fetching, so that each is fetched once.
    ///
    /// Args:
    ///     `missing`: Ranges that a lookup reported as missing, merged or not.
    ///
    /// Returns:
    ///     A `SingleFlight`.
    fn single_flight(&self, py: Python<'_>, missing: Vec<(u64, u64)>) -> PyResult<SingleFlight> {
        let missing: Vec<_> = missing.into_iter().map(|(start, end)| start..end).collect();
        let chunks = self.0.folder.chunks_to_change(py)?;
        let fetches = py.detach(|| chunks.single_flight(&self.0.key, &missing));
        let flights =
            fetches.flights.into_iter().map(|flight| Flight::new(py, self.0.clone(), flight));
        let waiters = fetches.waiters.into_iter().map(|waiter| Waiter::new(py, waiter));
        Ok(SingleFlight {
            flights: flights.collect::<PyResult<_>>()?,
            waiters: waiters.collect::<PyResult<_>>()?,
        })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::convert::format_fields(slf.as_any(), &["key"])
    }
}
