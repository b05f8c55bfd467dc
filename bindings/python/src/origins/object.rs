//! A remote object, read by threads that wait.

use super::headers::access;
use crate::buffer::write_into;
use crate::chunks::{Chunks, Folder};
use crate::failure::{Failure, Outcome};
use crate::own::Own;
use crate::runtime;
use crate::shown::shown;
use crate::wait::wait;
use crate::work::Work;
use nuthatch_chunks::{Description, Key};
use nuthatch_origins::{Access, BlockingObject, ObjectCache, Settings, plain_address};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What was read of an object.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UrlCounts {
    /// Bytes that came out of the cache.
    from_cache: u64,
    /// Bytes that came from the origin.
    from_origin: u64,
    /// Bytes that came from the origin for somebody else.
    from_others: u64,
    /// Bytes that the origin sent, those that nobody has read yet among them.
    fetched: u64,
    /// Requests for bytes, retries among them.
    requests: u64,
    /// How often the origin was asked what the object is.
    checks: u64,
    /// Requests of both kinds that were made again.
    retries: u64,
}

shown! {
    UrlCounts: from_cache from_origin from_others fetched requests checks retries;
}

/// A remote object at a URL, in the version that it had when it was opened. It is read by one
/// thread at a time from where it stands, by any number of them with `read_at`.
#[pyclass(frozen, module = "nuthatch._native")]
pub(crate) struct UrlObject {
    /// As Python has it, so that others of this process find the folder open as long as this is.
    /// `None` if it cannot be opened: then all bytes come from the origin.
    cache: Option<Py<Chunks>>,
    url: String,
    /// What requests show, those of a child as well, and when none are made.
    asking: Asking,
    // Taken while attached to the interpreter alone, as is `fork`: so no child finds it locked.
    current: Mutex<Opened>,
}

/// How an origin is asked, if it is.
#[derive(Clone)]
struct Asking {
    access: Access,
    offline: bool,
    max_stale: Option<Duration>,
}

/// An object as it is open in one process.
#[derive(Clone)]
struct Opened {
    generation: u32,
    object: BlockingObject,
    /// The same for who reads in order, which reads ahead.
    ordered: Arc<Mutex<BlockingObject>>,
    /// Its key in the cache, and how long blocks are; `None` if nothing of it is kept.
    kept: Option<(Key, u64)>,
    /// Where it stands, and where the last read from there ended.
    position: u64,
    last_end: u64,
}

/// How much of what is missing is waited for at once where a few bytes would do.
const AWAITED_MOST: usize = 8 << 20;

fn failed(error: std::io::Error) -> Failure {
    let found = error.get_ref().and_then(|inner| inner.downcast_ref::<nuthatch_origins::Error>());
    found.map_or_else(|| Failure::new("io", error.to_string()), |found| found.clone().into())
}

impl Opened {
    fn open(py: Python<'_>, folder: Option<&Folder>, url: &str, asking: &Asking) -> PyResult<Self> {
        let cache = folder.map_or_else(|| without_folder(py), |folder| folder.objects(py))?;
        let cache = cache.offline(asking.offline).max_stale(asking.max_stale);
        let object = wait(py, cache.object_as(url, &asking.access))?;
        let object = object.map_err(|error| Failure::from(error).raise(py))?;
        let kept = object.key().and_then(|key| match key.describe() {
            Description::Blocks { block_len, .. } => Some((key.clone(), block_len)),
            _ => None,
        });
        let (object, ordered) = (object.blocking(), Arc::new(Mutex::new(object.blocking())));
        let generation = runtime::generation();
        Ok(Self { generation, object, ordered, kept, position: 0, last_end: 0 })
    }

    /// Whether bytes from an offset on are in the cache: then reading them waits for nobody.
    fn is_there(&self, py: Python<'_>, folder: Option<&Folder>, offset: u64, len: usize) -> bool {
        let end = offset.saturating_add(len as u64).min(self.object.object().len());
        if offset >= end {
            return true;
        }
        let chunks = folder.and_then(|folder| folder.chunks(py).ok());
        let (Some((key, block_len)), Some(chunks)) = (&self.kept, chunks) else { return false };
        let blocks = offset / block_len..end.div_ceil(*block_len);
        py.detach(|| chunks.missing(key, blocks)).is_ok_and(|missing| missing.is_empty())
    }

    /// Reads some bytes from where it stands.
    fn read(&self, out: &mut [u8]) -> Outcome<usize> {
        // Who jumps is not read ahead of, and reads what is in the cache on his own thread.
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

    /// The object, open in this process: a child made by `fork` opens it again, the same version.
    fn opened(&self, py: Python<'_>) -> PyResult<Opened> {
        let before = self.lock().clone();
        if before.generation == runtime::generation() {
            return Ok(before);
        }
        let folder = self.folder();
        let mut again = Opened::open(py, folder.as_deref(), &self.url, &self.asking)?;
        let (was, is) = (before.object.object(), again.object.object());
        if (was.validator(), was.len()) != (is.validator(), is.len()) {
            let message = format!("{}: changed since it was opened", was.address());
            return Err(Failure::new("changed", message).raise(py));
        }
        again.position = before.position;
        // What the parent opened has threads that are not here to end.
        std::mem::forget(std::mem::replace(&mut *self.lock(), again.clone()));
        std::mem::forget(before);
        Ok(again)
    }
}

impl Drop for UrlObject {
    fn drop(&mut self) {
        let opened = self.current.get_mut().unwrap_or_else(PoisonError::into_inner);
        if opened.generation != runtime::generation() {
            // What its parent opened has threads that are not here to end.
            std::mem::forget(opened.clone());
        }
    }
}

/// Returns the cache of this process for reads that no folder can be opened for.
fn without_folder(py: Python<'_>) -> PyResult<ObjectCache> {
    static CACHE: Mutex<Option<Own<ObjectCache>>> = Mutex::new(None);
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cache) = cache.as_ref().and_then(Own::here) {
        return Ok(cache.clone());
    }
    let made = ObjectCache::without_folder(Settings::new());
    let made = made.map_err(|error| Failure::from(error).raise(py))?;
    *cache = Some(Own::new(made.clone()));
    Ok(made)
}

/// Returns a maximum age in seconds as a duration.
fn age(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("max_stale: expected seconds from 0 on, found {seconds}");
        Failure::argument(message).raise(py)
    })
}

/// Reads some bytes, and has those that follow fetched.
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
        let asking = Asking { access, offline, max_stale };
        let folder = cache.as_ref().map(|cache| cache.get().folder());
        let opened = Opened::open(py, folder.as_deref(), &url, &asking)?;
        let (cache, current) = (cache.map(Bound::unbind), Mutex::new(opened));
        Ok(Self { cache, url, asking, current })
    }

    /// Where it is, without secrets.
    #[getter]
    fn address(&self) -> String {
        self.lock().object.object().address().to_owned()
    }

    /// What tells this version from others; `None` if the origin says nothing of that kind, and
    /// then nothing is kept.
    #[getter]
    fn validator(&self) -> Option<String> {
        self.lock().object.object().validator().map(str::to_owned)
    }

    /// What kind of data the origin says it is.
    #[getter]
    fn content_type(&self) -> Option<String> {
        self.lock().object.object().content_type().map(str::to_owned)
    }

    /// How many seconds ago its origin confirmed the version; `None` if it did so when the object
    /// was opened.
    #[getter]
    fn stale_age(&self) -> Option<f64> {
        self.lock().object.object().stale_age().map(|age| age.as_secs_f64())
    }

    /// What was read of it in this process.
    #[getter]
    fn counts(&self, py: Python<'_>) -> PyResult<UrlCounts> {
        let counts = self.opened(py)?.object.object().counts();
        Ok(UrlCounts {
            from_cache: counts.from_cache,
            from_origin: counts.from_origin,
            from_others: counts.from_others,
            fetched: counts.fetched,
            requests: counts.requests,
            checks: counts.checks,
            retries: counts.retries,
        })
    }

    /// Reads up to so many bytes from an offset on, wherever the object stands.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let opened = self.opened(py)?;
        let object = opened.object.object();
        let length = length.min(object.len().saturating_sub(offset));
        let is_there = opened.is_there(py, self.folder().as_deref(), offset, length as usize);
        PyBytes::new_with(py, length as usize, |out| {
            let read = if is_there {
                py.detach(|| opened.object.read_at(offset, out))
            } else {
                wait(py, object.read_at(offset, out))?
            };
            read.map(|_| ()).map_err(|error| Failure::from(error).raise(py))
        })
    }

    /// Reads some bytes from where the object stands. Answers how many; none at its end.
    fn readinto(&self, py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<usize> {
        let opened = self.opened(py)?;
        let (position, len) = (opened.position, buffer.len_bytes());
        let read = if opened.is_there(py, self.folder().as_deref(), position, len) {
            write_into(py, &buffer, |out| opened.read(out))?
        } else {
            // On another thread, which goes on without this one if that is interrupted; so not into
            // a buffer of Python's.
            let job = move || {
                let mut bytes = vec![0; len.min(AWAITED_MOST)];
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

    /// Goes to an offset.
    fn seek(&self, offset: u64) -> u64 {
        self.lock().position = offset;
        offset
    }

    /// Where it stands.
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

/// The address of a URL without user, password and signatures, as the cache has it.
#[pyfunction]
#[pyo3(signature = (url, /))]
pub(crate) fn _plain_address(py: Python<'_>, url: &str) -> PyResult<String> {
    plain_address(url).map_err(|error| Failure::from(error).raise(py))
}
