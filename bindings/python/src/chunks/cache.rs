//! A cache of chunks in Python.

use super::blocks::Blocks;
use super::figures::{Missing, Object, Read, Stat, Stored, Verified, pairs};
use super::folder::{Folder, warn};
use super::key::Name;
use super::opening;
use super::view::View;
use crate::buffer::write_into;
use crate::failure::Failure;
use crate::octets::Octets;
use crate::times::expiry;
use nuthatch_chunks::{
    BLOCK_LEN, Clock, Description, Key, Lookup, Metadata, SystemClock, Unreadable,
};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A cache of chunks in a folder, which is made where there is none. All processes share it that
/// open the same folder; all threads may use it at once.
#[pyclass(frozen, weakref, module = "nuthatch.chunks")]
pub(crate) struct Chunks {
    folder: Arc<Folder>,
    /// How it was opened, without what holds for all processes.
    options: Py<PyDict>,
}

/// The answer of an origin that is recorded for an address.
type Recorded = (String, u64, f64, Option<u64>);

impl Chunks {
    pub(crate) fn folder(&self) -> Arc<Folder> {
        Arc::clone(&self.folder)
    }

    /// Reads an object, without the interpreter's lock. It makes no call to the system to find out
    /// whether the folder was removed.
    fn read_on<T: Send>(
        &self,
        py: Python<'_>,
        name: &Name<'_>,
        work: impl FnOnce(&nuthatch_chunks::Chunks, &Key) -> nuthatch_chunks::Result<T> + Send,
    ) -> PyResult<T> {
        let (key, chunks) = (key(py, name)?, self.folder.chunks(py)?);
        raised(py, py.detach(|| work(&chunks, &key)))
    }

    /// Does some work on an object, without the interpreter's lock.
    fn run_on<T: Send>(
        &self,
        py: Python<'_>,
        name: &Name<'_>,
        work: impl FnOnce(&nuthatch_chunks::Chunks, &Key) -> nuthatch_chunks::Result<T> + Send,
    ) -> PyResult<T> {
        let key = key(py, name)?;
        self.run(py, |chunks| work(chunks, &key))
    }

    /// Does some work on the folder, without the interpreter's lock.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&nuthatch_chunks::Chunks) -> nuthatch_chunks::Result<T> + Send,
    ) -> PyResult<T> {
        let chunks = self.folder.chunks_to_change(py)?;
        raised(py, py.detach(|| work(&chunks)))
    }
}

/// An outcome, or the exception for it.
pub(crate) fn raised<T>(py: Python<'_>, outcome: nuthatch_chunks::Result<T>) -> PyResult<T> {
    outcome.map_err(|error| Failure::from(error).raise(py))
}

/// What a lookup answers Python.
pub(crate) fn answer<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    lookup: Lookup<T>,
) -> PyResult<Bound<'py, PyAny>> {
    match lookup {
        Lookup::Found(found) => found.into_bound_py_any(py),
        Lookup::Missing(ranges) => Missing::of(&ranges).into_bound_py_any(py),
    }
}

fn key(py: Python<'_>, name: &Name<'_>) -> PyResult<Key> {
    name.key().map_err(|failure| failure.raise(py))
}

#[pymethods]
impl Chunks {
    #[new]
    #[pyo3(signature = (path, **options))]
    fn new(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let kept = options.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
        for setting in ["limit", "min_free", "share_with_group"] {
            kept.call_method1("pop", (setting, py.None()))?;
        }
        Ok(Self { folder: Arc::new(opening::open(py, path, options)?), options: kept.unbind() })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What is not as it should be with the folder now: it can only be read, other users may use
    /// it, or it lies on a network filesystem.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let chunks = self.folder.chunks_to_change(py)?;
        Ok(chunks.warnings().iter().map(ToString::to_string).collect())
    }

    /// How many bytes one put may have.
    #[getter]
    fn max_put_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.folder.chunks(py)?.max_put_len())
    }

    /// How many bytes one chunk or block may have.
    #[getter]
    fn max_chunk_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.folder.chunks(py)?.max_chunk_len())
    }

    /// Puts chunks that follow each other. `offsets` has where each of them begins in `data`, and
    /// where the last one ends. Stores what is not there; a chunk that is there with other bytes is
    /// an error.
    #[pyo3(signature = (key, start, end, offsets, data, *, ttl=None, expires_at=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn put(
        &self,
        py: Python<'_>,
        key: Name<'_>,
        start: u64,
        end: u64,
        offsets: Vec<u64>,
        data: Octets<'_>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
    ) -> PyResult<Stored> {
        let (expiry, data) = (expiry(py, ttl, expires_at)?.unwrap_or(0), &*data);
        let put = |chunks: &nuthatch_chunks::Chunks, key: &Key| {
            chunks.put_until(key, start..end, &offsets, data, expiry)
        };
        self.run_on(py, &key, put).map(Stored::from)
    }

    /// Reads chunks: all of them, or what is missing.
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Name<'py>,
        start: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.read_on(py, &key, |chunks, key| chunks.get(key, start..end))? {
            Lookup::Found(read) => {
                let data = PyBytes::new(py, &read.data).unbind();
                Read { data, offsets: read.offsets }.into_bound_py_any(py)
            }
            Lookup::Missing(ranges) => Missing::of(&ranges).into_bound_py_any(py),
        }
    }

    /// Reads chunks into the beginning of a buffer. Answers where each of them begins there, and
    /// where the last one ends; or what is missing.
    fn get_into<'py>(
        &self,
        py: Python<'py>,
        key: Name<'py>,
        start: u64,
        end: u64,
        buffer: PyBuffer<u8>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (key, chunks) = (self::key(py, &key)?, self.folder.chunks(py)?);
        let read = |out: &mut [u8]| chunks.get_into(&key, start..end, out);
        let lookup = raised(py, write_into(py, &buffer, read)?)?;
        answer(py, lookup)
    }

    /// Lends chunks from where they lie; or says what is missing.
    fn view<'py>(
        &self,
        py: Python<'py>,
        key: Name<'py>,
        start: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        View::answer(py, self.read_on(py, &key, |chunks, key| chunks.view(key, start..end))?)
    }

    /// Which chunks of a range are missing, as pairs of a start and an end, without reading any.
    fn missing(
        &self,
        py: Python<'_>,
        key: Name<'_>,
        start: u64,
        end: u64,
    ) -> PyResult<Vec<(u64, u64)>> {
        Ok(pairs(&self.read_on(py, &key, |chunks, key| chunks.missing(key, start..end))?))
    }

    /// The object of so many bytes at an address, in blocks. Another validator, length or block
    /// length is another object.
    #[pyo3(signature = (address, validator, object_len, block_len=BLOCK_LEN))]
    fn blocks(
        &self,
        py: Python<'_>,
        address: String,
        validator: String,
        object_len: u64,
        block_len: u64,
    ) -> PyResult<Blocks> {
        Blocks::new(py, Arc::clone(&self.folder), address, validator, object_len, block_len)
    }

    /// How things stand.
    fn stat(&self, py: Python<'_>) -> PyResult<Stat> {
        self.run(py, |chunks| Ok(chunks.stat())).map(Stat::from)
    }

    /// Returns the objects of which chunks are there. Warns of each file that cannot be read: there
    /// may be more chunks in it.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<Object>> {
        let (objects, unreadable) = self.run(py, |chunks| Ok(chunks.list_all()))?;
        for Unreadable { segment, reason, .. } in unreadable {
            let message = format!("{segment}: {reason}; chunks in it are not listed");
            warn(py, &message)?;
        }
        Ok(objects.into_iter().map(Object::from).collect())
    }

    /// Looks at every byte. What is damaged is missing afterwards.
    fn verify(&self, py: Python<'_>) -> PyResult<Verified> {
        self.run(py, |chunks| Ok(chunks.verify())).map(Verified::from)
    }

    /// Evicts what has expired, then what is worth least until no more than so many bytes are used.
    /// Answers how many are.
    #[pyo3(signature = (to=None))]
    fn prune(&self, py: Python<'_>, to: Option<u64>) -> PyResult<u64> {
        self.run(py, |chunks| chunks.prune(to))
    }

    /// Evicts everything but what is pinned and what other processes are writing to. Answers how
    /// many bytes are still used.
    fn clear(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, nuthatch_chunks::Chunks::clear)
    }

    /// Removes the chunks of an object, and ends its pin. Returns how many chunks there were.
    fn remove(&self, py: Python<'_>, key: Name<'_>) -> PyResult<u64> {
        self.run_on(py, &key, nuthatch_chunks::Chunks::remove)
    }

    /// Removes the chunks of an object that turned out to be wrong. A pin of it stays.
    fn _discard(&self, py: Python<'_>, key: Name<'_>) -> PyResult<u64> {
        self.run_on(py, &key, |chunks, key| Ok(chunks.discard(key)))
    }

    /// Pins an object or unpins it. The chunks of a pinned object are not evicted, those that are
    /// put later included. The pin of an object of blocks belongs to its address: when another
    /// version is recorded there, that version is pinned and the one before is not any more.
    #[pyo3(signature = (key, pinned=true))]
    fn pin(&self, py: Python<'_>, key: Name<'_>, pinned: bool) -> PyResult<()> {
        self.run_on(py, &key, |chunks, key| chunks.pin(key, pinned))
    }

    /// Returns the recorded answer of an origin about the object at an address: its validator, its
    /// length in bytes, when the origin last confirmed them in seconds since 1970, and for how many
    /// seconds after that the origin allows their use while it is unavailable.
    fn _metadata(&self, py: Python<'_>, address: &str) -> PyResult<Option<Recorded>> {
        let found = self.run(py, |chunks| Ok(chunks.metadata(address)))?;
        Ok(found.and_then(|found| match found.key.describe() {
            Description::Blocks { validator, object_len, .. } => {
                let checked = found.checked_ms as f64 / 1e3;
                Some((validator, object_len, checked, found.stale_if_error))
            }
            _ => None,
        }))
    }

    /// Records that an origin has the version of a key now.
    #[pyo3(signature = (key, etag=None, last_modified=None, stale_if_error=None))]
    fn _record(
        &self,
        py: Python<'_>,
        key: Name<'_>,
        etag: Option<String>,
        last_modified: Option<String>,
        stale_if_error: Option<u64>,
    ) -> PyResult<()> {
        self.run_on(py, &key, |chunks, key| {
            let now = SystemClock.now_ms();
            chunks.put_metadata(&Metadata {
                etag,
                last_modified,
                stale_if_error,
                ..Metadata::new(key.clone(), now)
            })
        })?;
        Ok(())
    }

    /// Changes the limit for all processes, in bytes. Evicts at once what is beyond a lower limit.
    fn set_limit(&self, py: Python<'_>, limit: u64) -> PyResult<()> {
        self.run(py, |chunks| chunks.set_limit(limit))
    }

    /// Lets go of the folder. Views stay.
    fn close(&self, py: Python<'_>) {
        self.folder.close(py);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }

    /// Unpickled, it is the folder as that process has it open, or opened in the same way.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let again = py.import("nuthatch.folders")?.getattr("open_again")?;
        (again, (self.folder.path(), &self.options)).into_bound_py_any(py)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        // With its place: who tells objects by this takes none for one that is closed.
        let (path, place) = (slf.get().folder.path().display(), slf.as_ptr());
        format!("<nuthatch.chunks.Chunks in {path} at {place:?}>")
    }
}
