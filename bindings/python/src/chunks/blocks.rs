//! Objects of blocks in Python.

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

/// An object of blocks in a cache. All ranges are of bytes, and do not include their end.
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

/// Ranges that are longer are looked up before they are read.
const LOOKED_UP: u64 = 256 << 10;

/// Bytes from an offset on that the caller has.
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

    /// The same object in the folder as it is open in this process.
    pub(crate) fn of<'a>(&self, chunks: &'a Chunks) -> Result<nuthatch_chunks::Blocks<'a>> {
        chunks.blocks(&self.address, &self.validator, self.object_len, self.block_len)
    }

    /// Reads the object, without the interpreter's lock.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&nuthatch_chunks::Blocks<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        let chunks = self.folder.chunks(py)?;
        raised(py, py.detach(|| work(&self.of(&chunks)?)))
    }
}

/// Fills a buffer with a range, from what is at hand and from the cache.
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
    /// The key of the object.
    #[getter]
    fn key(&self) -> Key {
        Key(self.key.clone())
    }

    /// How many bytes the object has.
    #[getter]
    fn object_len(&self) -> u64 {
        self.object_len
    }

    /// How many bytes its blocks have, but for the last one.
    #[getter]
    fn block_len(&self) -> u64 {
        self.block_len
    }

    /// Puts bytes from an offset on. Blocks that are not covered whole are not stored. Stores what
    /// is not there; a block that is there with other bytes is an error.
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

    /// Reads bytes: all of them, or what is missing. What is `at_hand`, as pairs of an offset and
    /// bytes in the order of their offsets, is taken from there.
    #[pyo3(signature = (start, end, at_hand=AtHand::new()))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        end: u64,
        at_hand: AtHand,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Before much memory is asked for; of little, looking twice would cost more.
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

    /// Reads bytes from an offset on until a buffer is full, which must not reach beyond the
    /// object. Answers how many there are, or what is missing.
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

    /// Lends bytes from where they lie; or says what is missing.
    fn view<'py>(&self, py: Python<'py>, start: u64, end: u64) -> PyResult<Bound<'py, PyAny>> {
        let lookup = self.run(py, |blocks| blocks.view(start..end))?;
        View::answer(py, lookup)
    }

    /// Which bytes have to be fetched before a range can be read, as pairs of a start and an end:
    /// whole blocks, in order.
    fn missing(&self, py: Python<'_>, start: u64, end: u64) -> PyResult<Vec<(u64, u64)>> {
        Ok(pairs(&self.run(py, |blocks| blocks.missing(start..end))?))
    }

    /// Divides missing ranges into those that the caller must fetch and those that other callers
    /// are fetching. The ranges are those that a lookup returned, or merged ones.
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
