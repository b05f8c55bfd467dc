//! Python class for a chunk cache.

use super::block_object::BlockObject;
use super::blocks::Blocks;
use super::folder::{Folder, warn};
use super::key::Name;
use super::options;
use super::results::{Missing, Object, Read, Stat, Stored, Verified, answer, pairs, raised};
use super::view::View;
use crate::convert::{BytesArg, expiry, write_into};
use nuthatch_chunks::{
    BLOCK_LEN, Clock, Description, Key, Lookup, Metadata, SystemClock, Unreadable,
};
use pyo3::IntoPyObjectExt;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A chunk cache in a folder. All processes that open the folder share its contents. All threads
/// can use it at the same time.
///
/// Args:
///     `path`: The folder. It is created if it does not exist.
///     `options`: Settings of `nuthatch.chunks.ChunksOptions`.
#[pyclass(frozen, weakref, module = "nuthatch.chunks")]
pub(crate) struct Chunks {
    folder: Arc<Folder>,
    /// The options it was opened with, without the settings that hold for all processes.
    options: Py<PyDict>,
}

/// The recorded response of an origin: validator, length in bytes, time of the check in seconds
/// since 1970, and `stale-if-error` in seconds.
type Recorded = (String, u64, f64, Option<u64>);

impl Chunks {
    pub(crate) fn folder(&self) -> Arc<Folder> {
        Arc::clone(&self.folder)
    }

    /// Reads an object, without the interpreter's lock. Makes no system call to detect that the
    /// folder was removed.
    fn read_on<T: Send>(
        &self,
        py: Python<'_>,
        name: &Name<'_>,
        work: impl FnOnce(&nuthatch_chunks::Chunks, &Key) -> nuthatch_chunks::Result<T> + Send,
    ) -> PyResult<T> {
        let (key, chunks) = (key(py, name)?, self.folder.chunks(py)?);
        raised(py, py.detach(|| work(&chunks, &key)))
    }

    /// Runs `work` on an object, without the interpreter's lock. Recreates a folder that was
    /// removed.
    fn run_on<T: Send>(
        &self,
        py: Python<'_>,
        name: &Name<'_>,
        work: impl FnOnce(&nuthatch_chunks::Chunks, &Key) -> nuthatch_chunks::Result<T> + Send,
    ) -> PyResult<T> {
        let key = key(py, name)?;
        self.run(py, |chunks| work(chunks, &key))
    }

    /// Runs `work` on the folder, without the interpreter's lock. Recreates a folder that was
    /// removed.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&nuthatch_chunks::Chunks) -> nuthatch_chunks::Result<T> + Send,
    ) -> PyResult<T> {
        let chunks = self.folder.chunks_to_change(py)?;
        raised(py, py.detach(|| work(&chunks)))
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
        Ok(Self { folder: Arc::new(options::open(py, path, options)?), options: kept.unbind() })
    }

    /// Returns the path of the folder.
    #[getter]
    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns warnings about the current state of the folder: it is read-only, other users can
    /// access it, or it is on a network filesystem.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let chunks = self.folder.chunks_to_change(py)?;
        Ok(chunks.warnings().iter().map(ToString::to_string).collect())
    }

    /// Returns the maximum length of one put in bytes.
    #[getter]
    fn max_put_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.folder.chunks(py)?.max_put_len())
    }

    /// Returns the maximum length of a chunk or block in bytes.
    #[getter]
    fn max_chunk_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.folder.chunks(py)?.max_chunk_len())
    }

    /// Stores consecutive chunks of an object. Chunks that are already in the cache are not written
    /// again.
    ///
    /// Args:
    ///     `key`: Name or key of the object.
    ///     `start`: Number of the first chunk.
    ///     `end`: Number after the last chunk.
    ///     `offsets`: Offset in `data` of each chunk, and of the end of the last chunk.
    ///     `data`: The bytes of the chunks.
    ///     `ttl`: Seconds from now until the chunks expire; by default they do not expire.
    ///     `expires_at`: Time of expiry in seconds since 1970, instead of `ttl`.
    ///
    /// Returns:
    ///     A `Stored` with the number of chunks by outcome.
    ///
    /// Raises:
    ///     `ConflictError`: The cache has a chunk with different bytes.
    #[pyo3(signature = (key, start, end, offsets, data, *, ttl=None, expires_at=None))]
    #[expect(clippy::too_many_arguments, reason = "most are keyword arguments in Python")]
    fn put(
        &self,
        py: Python<'_>,
        key: Name<'_>,
        start: u64,
        end: u64,
        offsets: Vec<u64>,
        data: BytesArg<'_>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
    ) -> PyResult<Stored> {
        let (expiry, data) = (expiry(py, ttl, expires_at)?.unwrap_or(0), &*data);
        let put = |chunks: &nuthatch_chunks::Chunks, key: &Key| {
            chunks.put_until(key, start..end, &offsets, data, expiry)
        };
        self.run_on(py, &key, put).map(Stored::from)
    }

    /// Returns the chunks of a range, or which of them are missing.
    ///
    /// Args:
    ///     `key`: Name or key of the object.
    ///     `start`: Number of the first chunk.
    ///     `end`: Number after the last chunk.
    ///
    /// Returns:
    ///     A `Read` with all of them; a `Missing` if at least one is not in the cache.
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

    /// Reads the chunks of a range to the beginning of a buffer.
    ///
    /// Args:
    ///     `key`: Name or key of the object.
    ///     `start`: Number of the first chunk.
    ///     `end`: Number after the last chunk.
    ///     `buffer`: A writable buffer.
    ///
    /// Returns:
    ///     A list with the offset of each chunk in the buffer, and of the end of the last chunk; a
    ///     `Missing` if at least one is not in the cache.
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

    /// Returns a view of the chunks of a range in the memory map of the cache, without a copy.
    ///
    /// Args:
    ///     `key`: Name or key of the object.
    ///     `start`: Number of the first chunk.
    ///     `end`: Number after the last chunk.
    ///
    /// Returns:
    ///     A `View`; a `Missing` if at least one chunk is not in the cache.
    fn view<'py>(
        &self,
        py: Python<'py>,
        key: Name<'py>,
        start: u64,
        end: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        View::answer(py, self.read_on(py, &key, |chunks, key| chunks.view(key, start..end))?)
    }

    /// Returns the chunks of a range that are missing, as pairs of a start and an end, without
    /// reading any.
    ///
    /// Args:
    ///     `key`: Name or key of the object.
    ///     `start`: Number of the first chunk.
    ///     `end`: Number after the last chunk.
    fn missing(
        &self,
        py: Python<'_>,
        key: Name<'_>,
        start: u64,
        end: u64,
    ) -> PyResult<Vec<(u64, u64)>> {
        Ok(pairs(&self.read_on(py, &key, |chunks, key| chunks.missing(key, start..end))?))
    }

    /// Returns an object that is stored as blocks. A different validator, length or block length
    /// makes a different object.
    ///
    /// Args:
    ///     `address`: URL or path of the object.
    ///     `validator`: Identifies the version of the object.
    ///     `object_len`: Length of the object in bytes.
    ///     `block_len`: Length of its blocks in bytes; 1 MiB by default.
    #[pyo3(signature = (address, validator, object_len, block_len=BLOCK_LEN))]
    fn blocks(
        &self,
        py: Python<'_>,
        address: String,
        validator: String,
        object_len: u64,
        block_len: u64,
    ) -> PyResult<Blocks> {
        let folder = Arc::clone(&self.folder);
        let object = BlockObject::open(py, folder, address, validator, object_len, block_len)?;
        Ok(Blocks::new(object))
    }

    /// Returns the state of the folder, with counters of this process.
    fn stat(&self, py: Python<'_>) -> PyResult<Stat> {
        self.run(py, |chunks| Ok(chunks.stat())).map(Stat::from)
    }

    /// Returns the objects that have chunks in the cache. Issues a `RuntimeWarning` for each file
    /// that cannot be read, since chunks in it are not listed.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<Object>> {
        let (objects, unreadable) = self.run(py, |chunks| Ok(chunks.list_all()))?;
        for Unreadable { segment, reason, .. } in unreadable {
            let message = format!("{segment}: {reason}; chunks in it are not listed");
            warn(py, &message)?;
        }
        Ok(objects.into_iter().map(Object::from).collect())
    }

    /// Checks every byte in the folder and drops damaged chunks, which are missing afterwards.
    fn verify(&self, py: Python<'_>) -> PyResult<Verified> {
        self.run(py, |chunks| Ok(chunks.verify())).map(Verified::from)
    }

    /// Evicts expired chunks. With `to`, evicts the least valuable chunks after that.
    ///
    /// Args:
    ///     `to`: Maximum number of bytes in use afterwards; by default only expired chunks are
    ///         evicted.
    ///
    /// Returns:
    ///     The number of bytes in use.
    #[pyo3(signature = (to=None))]
    fn prune(&self, py: Python<'_>, to: Option<u64>) -> PyResult<u64> {
        self.run(py, |chunks| chunks.prune(to))
    }

    /// Evicts all chunks except those of pinned objects and those in segments that other processes
    /// write.
    ///
    /// Returns:
    ///     The number of bytes still in use.
    fn clear(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, nuthatch_chunks::Chunks::clear)
    }

    /// Removes the chunks of an object and its pin.
    ///
    /// Args:
    ///     `key`: Name or key of the object.
    ///
    /// Returns:
    ///     The number of chunks that were removed.
    fn remove(&self, py: Python<'_>, key: Name<'_>) -> PyResult<u64> {
        self.run_on(py, &key, nuthatch_chunks::Chunks::remove)
    }

    /// Removes the chunks of an object whose content is wrong. Keeps its pin.
    fn _discard(&self, py: Python<'_>, key: Name<'_>) -> PyResult<u64> {
        self.run_on(py, &key, |chunks, key| Ok(chunks.discard(key)))
    }

    /// Pins an object or removes its pin. Chunks of a pinned object are not evicted, even if they
    /// are put later.
    ///
    /// A pin of an object of blocks belongs to its address. When another version is recorded for
    /// the address, the pin moves to that version.
    ///
    /// Args:
    ///     `key`: Name or key of the object.
    ///     `pinned`: Whether the object is pinned afterwards.
    #[pyo3(signature = (key, pinned=true))]
    fn pin(&self, py: Python<'_>, key: Name<'_>, pinned: bool) -> PyResult<()> {
        self.run_on(py, &key, |chunks, key| chunks.pin(key, pinned))
    }

    /// Returns the recorded response of an origin about the object at an address: its validator,
    /// its length in bytes, the time of the origin's last confirmation in seconds since 1970, and
    /// the number of seconds after that for which the origin allows its use while unavailable.
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

    /// Records that the version of a key is the current one at its origin.
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

    /// Changes the limit for all processes. If more bytes are in use, evicts the excess at once.
    ///
    /// Args:
    ///     `limit`: Maximum number of bytes of all files together.
    fn set_limit(&self, py: Python<'_>, limit: u64) -> PyResult<()> {
        self.run(py, |chunks| chunks.set_limit(limit))
    }

    /// Closes the folder. Views of it remain valid.
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

    /// Pickles the path and the options. Unpickling returns the folder that the process has open,
    /// or opens it with these options.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let again = py.import("nuthatch.folders")?.getattr("open_again")?;
        (again, (self.folder.path(), &self.options)).into_bound_py_any(py)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        // The address distinguishes this object from a closed one of the same folder for callers
        // that identify objects by their `repr`.
        let (path, place) = (slf.get().folder.path().display(), slf.as_ptr());
        format!("<nuthatch.chunks.Chunks in {path} at {place:?}>")
    }
}
