//! Python class for objects that are stored as blocks.

use super::cache::{answer, raised};
use super::figures::{Missing, Stored, pairs};
use super::flights::{Flight, SingleFlight, Waiter};
use super::folder::Folder;
use super::key::Key;
use super::view::View;
use crate::buffer::write_into;
use crate::octets::Octets;
use crate::times::expiry;
use nuthatch_chunks::{Chunks, Lookup, Result, merge_gaps};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::ops::Range;
use std::sync::Arc;

/// An object that is stored as blocks in a cache. All ranges count bytes and exclude their end.
#[pyclass(frozen, module = "nuthatch.chunks")]
#[derive(Clone)]
pub(crate) struct Blocks {
    pub(crate) folder: Arc<Folder>,
    address: Arc<str>,
    validator: Arc<str>,
    object_len: u64,
    block_len: u64,
    pub(crate) key: nuthatch_chunks::Key,
}

/// Longer ranges, in bytes, are looked up before memory for them is allocated.
const LOOKED_UP: u64 = 256 << 10;

/// Pieces of the object that the caller already has: pairs of an offset in bytes and the bytes.
type AtHand = Vec<(u64, PyBackedBytes)>;

impl Blocks {
    pub(crate) fn new(
        py: Python<'_>,
        folder: Arc<Folder>,
        address: String,
        validator: String,
        object_len: u64,
        block_len: u64,
    ) -> PyResult<Self> {
        let chunks = folder.chunks(py)?;
        let blocks = raised(py, chunks.blocks(&address, &validator, object_len, block_len))?;
        let key = blocks.key().clone();
        let (address, validator) = (address.into(), validator.into());
        Ok(Self { folder, address, validator, object_len, block_len, key })
    }

    /// Returns the same object in `chunks`, the folder as this process has it open.
    pub(crate) fn of<'a>(&self, chunks: &'a Chunks) -> Result<nuthatch_chunks::Blocks<'a>> {
        chunks.blocks(&self.address, &self.validator, self.object_len, self.block_len)
    }

    /// Runs `work` on the object, without the interpreter's lock.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&nuthatch_chunks::Blocks<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let chunks = self.folder.chunks(py)?;
        raised(py, py.detach(|| work(&self.of(&chunks)?)))
    }
}

/// Fills a buffer with a range, from the caller's pieces and from the cache.
fn fill(
    blocks: &nuthatch_chunks::Blocks<'_>,
    range: Range<u64>,
    at_hand: &AtHand,
    out: &mut [u8],
) -> Result<Lookup<()>> {
    if at_hand.is_empty() {
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
    for (start, bytes) in at_hand {
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
        Key(self.key.clone())
    }

    /// Returns the length of the object in bytes.
    #[getter]
    fn object_len(&self) -> u64 {
        self.object_len
    }

    /// Returns the length of its blocks in bytes. The last block can be shorter.
    #[getter]
    fn block_len(&self) -> u64 {
        self.block_len
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
        data: Octets<'_>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
    ) -> PyResult<Stored> {
        let (expiry, data) = (expiry(py, ttl, expires_at)?.unwrap_or(0), &*data);
        let chunks = self.folder.chunks_to_change(py)?;
        let put = || self.of(&chunks)?.put_until(offset, data, expiry);
        raised(py, py.detach(put)).map(Stored::from)
    }

    /// Returns the bytes of a range, or what is missing of it.
    ///
    /// Args:
    ///     `start`: First byte of the range.
    ///     `end`: End of the range, excluded.
    ///     `at_hand`: Pairs of an offset and bytes, sorted by offset, that are used in place of the
    ///         cache.
    ///
    /// Returns:
    ///     The bytes as `bytes`; a `Missing` if some are in neither.
    #[pyo3(signature = (start, end, at_hand=AtHand::new()))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        end: u64,
        at_hand: AtHand,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A lookup before the allocation of a large buffer. For a small one a second lookup costs
        // more.
        let len = end.saturating_sub(start);
        if len == 0 || len > LOOKED_UP {
            let missing = self.run(py, |blocks| blocks.missing(start..end))?;
            if at_hand.is_empty() && !missing.is_empty() {
                return Missing::of(&missing).into_bound_py_any(py);
            }
        }
        let mut lookup = Lookup::Missing(Vec::new());
        let bytes = PyBytes::new_with(py, len as usize, |out| {
            lookup = self.run(py, |blocks| fill(blocks, start..end, &at_hand, out))?;
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
    ///     `at_hand`: Pairs of an offset and bytes, sorted by offset, that are used in place of the
    ///         cache.
    ///
    /// Returns:
    ///     The number of bytes; a `Missing` if some are in neither.
    #[pyo3(signature = (start, buffer, at_hand=AtHand::new()))]
    fn get_into<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        buffer: PyBuffer<u8>,
        at_hand: AtHand,
    ) -> PyResult<Bound<'py, PyAny>> {
        let chunks = self.folder.chunks(py)?;
        let len = buffer.len_bytes() as u64;
        let range = start..start.saturating_add(len);
        let read = |out: &mut [u8]| fill(&self.of(&chunks)?, range, &at_hand, out);
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
        let lookup = self.run(py, |blocks| blocks.view(start..end))?;
        View::answer(py, lookup)
    }

    /// Returns the ranges to fetch before a range can be read: whole blocks as pairs of a start and
    /// an end, in order.
    ///
    /// Args:
    ///     `start`: First byte of the range.
    ///     `end`: End of the range, excluded.
    fn missing(&self, py: Python<'_>, start: u64, end: u64) -> PyResult<Vec<(u64, u64)>> {
        Ok(pairs(&self.run(py, |blocks| blocks.missing(start..end))?))
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
        let chunks = self.folder.chunks_to_change(py)?;
        let fetches = py.detach(|| chunks.single_flight(&self.key, &missing));
        let flights =
            fetches.flights.into_iter().map(|flight| Flight::new(py, self.clone(), flight));
        let waiters = fetches.waiters.into_iter().map(|waiter| Waiter::new(py, waiter));
        Ok(SingleFlight {
            flights: flights.collect::<PyResult<_>>()?,
            waiters: waiters.collect::<PyResult<_>>()?,
        })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::shown::fields(slf.as_any(), &["key"])
    }
}
