//! Python class for a remote object, with blocking calls.

use super::headers::access;
use crate::chunks::{Chunks, Folder};
use crate::convert::{repr_fields, write_into};
use crate::failure::{Failure, Outcome};
use crate::runtime;
use crate::runtime::{ProcessBound, Work, wait};
use nuthatch_chunks::{Description, Key};
use nuthatch_origins::{Access, BlockingObject, ObjectCache, Settings, plain_address};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Counters of reads of an object in this process.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UrlCounts {
    /// Bytes read from the cache.
    from_cache: u64,
    /// Bytes read from the origin.
    from_origin: u64,
    /// Bytes read from the origin through a fetch of another reader.
    coalesced: u64,
    /// Bytes that the origin sent, including those that were not read yet.
    fetched: u64,
    /// Requests for bytes, including retries.
    requests: u64,
    /// Requests for the version of the object.
    checks: u64,
    /// Retries of requests of both kinds.
    retries: u64,
}

repr_fields! {
    UrlCounts: from_cache from_origin coalesced fetched requests checks retries;
}

/// A remote object at a URL, in the version that it had when it was opened.
///
/// One thread at a time can read it from the current position. Any number of threads can call
/// `read_at`.
#[pyclass(frozen, module = "nuthatch._native")]
pub(crate) struct UrlObject {
    /// The Python object of the cache, so that other readers in this process find the folder open
    /// while this object exists. `None` if the folder cannot be opened: all bytes come from the
    /// origin then.
    cache: Option<Py<Chunks>>,
    url: String,
    /// Headers and settings of requests, which a child made by `fork` uses, too.
    settings: RequestSettings,
    // Locked only while attached to the interpreter, and so is `fork`: a child never inherits it
    // locked.
    current: Mutex<Opened>,
}

/// How requests to the origin are made.
#[derive(Clone)]
struct RequestSettings {
    access: Access,
    offline: bool,
    max_stale: Option<Duration>,
}

/// The state of an object in one process.
#[derive(Clone)]
struct Opened {
    generation: u32,
    object: BlockingObject,
    /// The same object for sequential reads, with read-ahead.
    ordered: Arc<Mutex<BlockingObject>>,
    /// Key in the cache and length of blocks in bytes; `None` if the cache does not keep the
    /// object.
    kept: Option<(Key, u64)>,
    /// The current position, and the end of the last read from it, in bytes.
    position: u64,
    last_end: u64,
}

/// Maximum number of bytes that one `readinto` waits for.
const MAX_AWAITED_BYTES: usize = 8 << 20;

fn failed(error: std::io::Error) -> Failure {
    let found = error.get_ref().and_then(|inner| inner.downcast_ref::<nuthatch_origins::Error>());
    found.map_or_else(|| Failure::new("io", error.to_string()), |found| found.clone().into())
}

impl Opened {
    fn open(
        py: Python<'_>,
        folder: Option<&Folder>,
        url: &str,
        settings: &RequestSettings,
    ) -> PyResult<Self> {
        let cache = folder.map_or_else(|| without_folder(py), |folder| folder.objects(py))?;
        let cache = cache.offline(settings.offline).max_stale(settings.max_stale);
        let object = wait(py, cache.object_as(url, &settings.access))?;
        let object = object.map_err(|error| Failure::from(error).raise(py))?;
        let kept = object.key().and_then(|key| match key.describe() {
            Description::Blocks { block_len, .. } => Some((key.clone(), block_len)),
            _ => None,
        });
        let (object, ordered) = (object.blocking(), Arc::new(Mutex::new(object.blocking())));
        let generation = runtime::generation();
        Ok(Self { generation, object, ordered, kept, position: 0, last_end: 0 })
    }

    /// Returns whether `len` bytes from an offset on are in the cache, so that a read makes no
    /// request.
    fn is_cached(&self, py: Python<'_>, folder: Option<&Folder>, offset: u64, len: usize) -> bool {
        let end = offset.saturating_add(len as u64).min(self.object.object().len());
        if offset >= end {
            return true;
        }
        let chunks = folder.and_then(|folder| folder.chunks(py).ok());
        let (Some((key, block_len)), Some(chunks)) = (&self.kept, chunks) else { return false };
        let blocks = offset / block_len..end.div_ceil(*block_len);
        py.detach(|| chunks.missing(key, blocks)).is_ok_and(|missing| missing.is_empty())
    }

    /// Reads bytes from the current position.
    fn read(&self, out: &mut [u8]) -> Outcome<usize> {
        // Only sequential reads use read-ahead. A read after a seek reads cached bytes on this
        // thread.
        if self.position == self.last_end {
            return read_on(&self.ordered, self.position, out);
        }
        self.object.read_at(self.position, out).map_err(Failure::from)
    }
}

impl UrlObject {
    fn folder(&self) -> Option<Arc<Folder>> {
        self.cache.as_ref().map(|cache| cache.get().folder())
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the object, open in this process. A child made by `fork` opens it again and fails if
    /// its version changed.
    fn opened(&self, py: Python<'_>) -> PyResult<Opened> {
        let before = self.lock().clone();
        if before.generation == runtime::generation() {
            return Ok(before);
        }
        let folder = self.folder();
        let mut again = Opened::open(py, folder.as_deref(), &self.url, &self.settings)?;
        let (was, is) = (before.object.object(), again.object.object());
        if (was.validator(), was.len()) != (is.validator(), is.len()) {
            let message = format!("{}: changed since it was opened", was.address());
            return Err(Failure::new("changed", message).raise(py));
        }
        again.position = before.position;
        // Dropping the state of the parent would wait for threads that this process does not have.
        std::mem::forget(std::mem::replace(&mut *self.lock(), again.clone()));
        std::mem::forget(before);
        Ok(again)
    }
}

impl Drop for UrlObject {
    fn drop(&mut self) {
        let opened = self.current.get_mut().unwrap_or_else(PoisonError::into_inner);
        if opened.generation != runtime::generation() {
            // Dropping the state of the parent would wait for threads that this process does not
            // have.
            std::mem::forget(opened.clone());
        }
    }
}

/// Returns the object cache of this process that has no folder.
fn without_folder(py: Python<'_>) -> PyResult<ObjectCache> {
    static CACHE: Mutex<Option<ProcessBound<ObjectCache>>> = Mutex::new(None);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cache) = cache.as_ref().and_then(ProcessBound::in_process) {
        return Ok(cache.clone());
    }
    let made = ObjectCache::without_folder(Settings::new());
    let made = made.map_err(|error| Failure::from(error).raise(py))?;
    *cache = Some(ProcessBound::new(made.clone()));
    Ok(made)
}

/// Converts a maximum age in seconds into a duration.
fn age(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("max_stale: expected seconds from 0 on, found {seconds}");
        Failure::argument(message).raise(py)
    })
}

/// Reads bytes from an offset on and starts the read-ahead of those after them.
fn read_on(object: &Mutex<BlockingObject>, from: u64, out: &mut [u8]) -> Outcome<usize> {
    let mut object = object.lock().unwrap_or_else(PoisonError::into_inner);
    let stands = object.stream_position();
    let moved =
        stands.and_then(|at| if at == from { Ok(at) } else { object.seek(SeekFrom::Start(from)) });
    moved.and_then(|_| object.read(out)).map_err(failed)
}

#[pymethods]
impl UrlObject {
    #[new]
    #[pyo3(signature = (cache, url, *, headers=None, offline=false, max_stale=None))]
    fn new(
        py: Python<'_>,
        cache: Option<Bound<'_, Chunks>>,
        url: String,
        headers: Option<Bound<'_, PyMapping>>,
        offline: bool,
        max_stale: Option<f64>,
    ) -> PyResult<Self> {
        let access = headers.as_ref().map(access).transpose()?.unwrap_or_default();
        let max_stale = max_stale.map(|seconds| age(py, seconds)).transpose()?;
        let settings = RequestSettings { access, offline, max_stale };
        let folder = cache.as_ref().map(|cache| cache.get().folder());
        let opened = Opened::open(py, folder.as_deref(), &url, &settings)?;
        let (cache, current) = (cache.map(Bound::unbind), Mutex::new(opened));
        Ok(Self { cache, url, settings, current })
    }

    /// Returns the address of the object, without secrets.
    #[getter]
    fn address(&self) -> String {
        self.lock().object.object().address().to_owned()
    }

    /// Returns the validator that identifies the version; `None` if the origin sends none. The
    /// cache does not keep an object without a validator.
    #[getter]
    fn validator(&self) -> Option<String> {
        self.lock().object.object().validator().map(str::to_owned)
    }

    /// Returns the media type that the origin sent; `None` if it sent none.
    #[getter]
    fn content_type(&self) -> Option<String> {
        self.lock().object.object().content_type().map(str::to_owned)
    }

    /// Returns the number of seconds since the origin confirmed the version; `None` if it did so
    /// when the object was opened.
    #[getter]
    fn stale_age(&self) -> Option<f64> {
        self.lock().object.object().stale_age().map(|age| age.as_secs_f64())
    }

    /// Returns the counters of reads of this object in this process.
    #[getter]
    fn counts(&self, py: Python<'_>) -> PyResult<UrlCounts> {
        let counts = self.opened(py)?.object.object().counts();
        Ok(UrlCounts {
            from_cache: counts.from_cache,
            from_origin: counts.from_origin,
            coalesced: counts.coalesced,
            fetched: counts.fetched,
            requests: counts.requests,
            checks: counts.checks,
            retries: counts.retries,
        })
    }

    /// Reads bytes from an offset on. Does not change the current position.
    ///
    /// Args:
    ///     `offset`: First byte to read.
    ///     `length`: Maximum number of bytes.
    ///
    /// Returns:
    ///     The bytes; fewer than `length` only at the end of the object.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let opened = self.opened(py)?;
        let object = opened.object.object();
        let length = length.min(object.len().saturating_sub(offset));
        let is_cached = opened.is_cached(py, self.folder().as_deref(), offset, length as usize);
        PyBytes::new_with(py, length as usize, |out| {
            let read = if is_cached {
                py.detach(|| opened.object.read_at(offset, out))
            } else {
                wait(py, object.read_at(offset, out))?
            };
            read.map(|_| ()).map_err(|error| Failure::from(error).raise(py))
        })
    }

    /// Reads bytes from the current position into a buffer, and advances the position.
    ///
    /// Returns:
    ///     The number of bytes; 0 at the end of the object.
    fn readinto(&self, py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<usize> {
        let opened = self.opened(py)?;
        let (position, len) = (opened.position, buffer.len_bytes());
        let read = if opened.is_cached(py, self.folder().as_deref(), position, len) {
            write_into(py, &buffer, |out| opened.read(out))?
        } else {
            // The read runs on another thread, which continues if this thread is interrupted. So it
            // must not write to a buffer that Python owns.
            let job = move || {
                let mut bytes = vec![0; len.min(MAX_AWAITED_BYTES)];
                opened.read(&mut bytes).map(|count| (bytes, count))
            };
            let (bytes, count) = Work::awaited(Work::blocking(job).outcome()).wait(py)?;
            write_into(py, &buffer, |out| out[..count].copy_from_slice(&bytes[..count]))?;
            Ok(count)
        };
        let count = read.map_err(|failure| failure.raise(py))?;
        let mut current = self.lock();
        current.position = position + count as u64;
        current.last_end = current.position;
        Ok(count)
    }

    /// Waits until what this process has read so far is in the folder of the cache, as far as it
    /// can be stored.
    fn wait_for_puts(&self, py: Python<'_>) -> PyResult<()> {
        match self.folder().and_then(|folder| folder.objects_if_open()) {
            Some(cache) => {
                let job = move || {
                    cache.wait_for_puts();
                    Ok(())
                };
                Work::awaited(Work::blocking(job).outcome()).wait(py)
            }
            None => Ok(()),
        }
    }

    /// Sets the current position to an offset in bytes, and returns it.
    fn seek(&self, offset: u64) -> u64 {
        self.lock().position = offset;
        offset
    }

    /// Returns the current position in bytes.
    fn tell(&self) -> u64 {
        self.lock().position
    }

    fn __len__(&self) -> usize {
        self.lock().object.object().len() as usize
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.UrlObject at {}>", self.address())
    }
}

/// Returns the address of a URL as the cache stores it: without user, password and signatures.
#[pyfunction]
#[pyo3(signature = (url, /))]
pub(crate) fn _plain_address(py: Python<'_>, url: &str) -> PyResult<String> {
    plain_address(url).map_err(|error| Failure::from(error).raise(py))
}
