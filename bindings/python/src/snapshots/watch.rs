//! The Python class of a watch.

use super::failure::{argument, closed, raised};
use super::held::Held;
use super::snapshot::{Snapshot, open_options};
use crate::convert::{KeywordArguments, repr_fields};
use crate::runtime::ProcessBound;
use nuthatch_snapshot::{Watch, WatchOptions, WatchReader, WatchStatus};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The status of a watch.
#[pyclass(frozen, eq, get_all, module = "nuthatch")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotWatchStatus {
    /// The path of the snapshot that `current` returns.
    path: PathBuf,
    /// Number of switches to another file.
    switched: u64,
    /// Number of files that could not be used; the same error is counted once, not at every poll.
    rejected: u64,
    /// The message of the error that prevents a switch to the file at the path; `None` if `current`
    /// returns that file.
    error: Option<String>,
}

repr_fields! {
    SnapshotWatchStatus: path switched rejected error;
}

impl From<WatchStatus> for SnapshotWatchStatus {
    fn from(status: WatchStatus) -> Self {
        let WatchStatus { path, switched, rejected, error, .. } = status;
        Self { path, switched, rejected, error }
    }
}

/// A watch of a snapshot that is replaced while it is read, by renaming another file over it. All
/// threads can use it at the same time. A child made by `fork` watches the path anew at its first
/// use.
#[pyclass(frozen, weakref, module = "nuthatch")]
pub(crate) struct SnapshotWatch {
    path: PathBuf,
    options: Py<PyDict>,
    settings: WatchOptions,
    // Locked only while attached to the interpreter, and so is `fork`. No Python code runs while it
    // is locked.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// `None` before the start and after closing. A child made by `fork` has no thread that polls,
    /// so it leaks the watch and starts another.
    running: Option<ProcessBound<Running>>,
    /// The object that `current` returned last.
    current: Option<Current>,
}

/// A watch with its thread, in one process.
struct Running {
    watch: Arc<Watch>,
    reader: WatchReader,
}

struct Current {
    held: Arc<Held>,
    object: Py<Snapshot>,
}

/// Opens a snapshot and watches its path.
#[pyfunction]
#[pyo3(signature = (path, /, **options))]
pub(crate) fn _watch_snapshot(
    py: Python<'_>,
    path: PathBuf,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<SnapshotWatch> {
    let kept = options.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
    let arguments = KeywordArguments::new("watch_snapshot", options);
    let mut settings = WatchOptions::new().verify(arguments.flag("verify")?);
    settings = settings.open_options(open_options(py, &arguments)?);
    if let Some(interval) = arguments.seconds("interval")? {
        settings = settings.interval(interval);
    }
    arguments.finish()?;
    let path = std::path::absolute(&path)?;
    let watch = SnapshotWatch { path, options: kept.unbind(), settings, state: Mutex::default() };
    watch.start(py)?;
    Ok(watch)
}

impl SnapshotWatch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the watch in this process.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let settings = self.settings.clone();
        let watch = raised(py, py.detach(|| settings.path(&self.path)))?;
        let reader = watch.reader();
        let running = Running { watch: Arc::new(watch), reader };
        let mut state = self.lock();
        let is_closed = state.is_closed;
        // Another thread may have closed the watch meanwhile: then the new one is dropped.
        let mut unused = Some(ProcessBound::new(running));
        if !is_closed {
            std::mem::swap(&mut state.running, &mut unused);
        }
        let current = state.current.take();
        drop(state);
        py.detach(|| drop(unused));
        drop(current);
        if is_closed { Err(closed(py, "watch")) } else { Ok(()) }
    }

    /// Returns the watch of this process. Starts it in a child made by `fork`.
    fn watch(&self, py: Python<'_>) -> PyResult<Arc<Watch>> {
        loop {
            let running = {
                let state = self.lock();
                let running = state.running.as_ref().ok_or_else(|| closed(py, "watch"))?;
                running.in_process().map(|running| Arc::clone(&running.watch))
            };
            match running {
                Some(watch) => return Ok(watch),
                None => self.start(py)?,
            }
        }
    }

    /// Returns the object that was returned last, if no newer file is open, or a reader of the
    /// newer one. Fails in a child made by `fork` that did not start its watch.
    fn newest(&self, py: Python<'_>) -> Result<Result<Py<Snapshot>, WatchReader>, ()> {
        let mut state = self.lock();
        let State { running, current, .. } = &mut *state;
        let running = running.as_mut().and_then(ProcessBound::in_process_mut).ok_or(())?;
        let newest = running.reader.current();
        match current {
            Some(current) if std::ptr::eq(current.held.get(), newest) => {
                Ok(Ok(current.object.clone_ref(py)))
            }
            _ => Ok(Err(running.reader.clone())),
        }
    }

    /// Returns the object that was returned last, also in a child made by `fork`.
    fn last(&self, py: Python<'_>) -> Option<Py<Snapshot>> {
        self.lock().current.as_ref().map(|current| current.object.clone_ref(py))
    }
}

#[pymethods]
impl SnapshotWatch {
    /// Returns the newest snapshot at the path that could be opened. It is the same object until
    /// the watch switches to another file, and remains usable afterwards. The old file is unmapped
    /// at the first poll after `current` has returned the new one and the program has dropped the
    /// old object and its arrays.
    ///
    /// Raises:
    ///     `ClosedError`: The watch is closed.
    #[getter]
    fn current(&self, py: Python<'_>) -> PyResult<Py<Snapshot>> {
        let reader = match self.newest(py) {
            Ok(Ok(object)) => return Ok(object),
            Ok(Err(reader)) => reader,
            Err(()) => match self.watch(py) {
                Ok(watch) => watch.reader(),
                // In a child made by `fork`, the snapshot of the parent serves until there is a
                // good one.
                Err(error) => {
                    let is_open = self.lock().running.is_some();
                    return self.last(py).filter(|_| is_open).ok_or(error);
                }
            },
        };
        let held = Held::watched(reader);
        let object = Py::new(py, Snapshot::watched(Arc::clone(&held)))?;
        let current = Current { held, object: object.clone_ref(py) };
        let mut state = self.lock();
        let before = state.running.is_some().then(|| state.current.replace(current));
        drop(state);
        drop(before);
        Ok(object)
    }

    /// Polls for a new file now. Returns whether the watch switched to one. If the file at the path
    /// cannot be used, `status` has the error. Other threads run Python code meanwhile.
    ///
    /// Raises:
    ///     `ClosedError`: The watch is closed.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let watch = self.watch(py)?;
        Ok(py.detach(|| watch.refresh()))
    }

    /// Returns the status of the watch.
    ///
    /// Raises:
    ///     `ClosedError`: The watch is closed.
    fn status(&self, py: Python<'_>) -> PyResult<SnapshotWatchStatus> {
        Ok(self.watch(py)?.status().into())
    }

    /// Returns the watched path.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Stops watching. Snapshots that `current` has returned remain usable.
    fn close(&self, py: Python<'_>) {
        let ended = State { is_closed: true, ..State::default() };
        let State { running, current, .. } = std::mem::replace(&mut *self.lock(), ended);
        py.detach(|| drop(running));
        drop(current);
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

    /// Pickles the path and the options. Unpickling watches the path anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.lock().running.is_none() {
            return Err(argument(py, "a closed watch cannot be pickled".to_owned()));
        }
        let again = py.import("nuthatch.snapshots")?.getattr("_watch_again")?;
        (again, (self.path.as_os_str(), &self.options)).into_bound_py_any(py)
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.SnapshotWatch of {}>", self.path.display())
    }
}
