//! The folder of a chunk cache, opened once per process.

use crate::failure::{Failure, Outcome};
use crate::runtime::ProcessBound;
use nuthatch_chunks::{Chunks, Options};
use nuthatch_origins::{ObjectCache, Settings};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A folder. A child made by `fork` opens it again on first use, since a lock or fetch of its
/// parent can belong to a thread that the child does not have.
pub(crate) struct Folder {
    path: PathBuf,
    options: Options,
    // Locked only while attached to the interpreter, and so is `fork`: a child never inherits it
    // locked. No Python code runs while it is locked, since that could attach a thread that waits
    // for it.
    current: Mutex<Option<ProcessBound<Arc<Chunks>>>>,
    /// Reads remote objects through the folder. Created on first use.
    objects: Mutex<Option<ProcessBound<ObjectCache>>>,
    /// Whether the user was warned that the folder was removed and cannot be created again.
    is_warned: AtomicBool,
}

impl Folder {
    pub(crate) fn open(path: PathBuf, options: Options, limits: Limits) -> Outcome<Self> {
        // A child may change its working directory before it opens the folder again.
        let path = std::path::absolute(&path)
            .map_err(|error| Failure::io(&path, "cannot be found", &error))?;
        let chunks = Chunks::open(&path, &limits.on(options.clone()))?;
        let current = Mutex::new(Some(ProcessBound::new(Arc::new(chunks))));
        let (objects, is_warned) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self { path, options, current, objects, is_warned })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder, open in this process, for calls that store, lock or report. If it was
    /// removed meanwhile, creates it again with its previous limits and sharing, and issues a
    /// `RuntimeWarning`. If that fails, returns the removed folder, which keeps nothing.
    ///
    /// Reads use [`Folder::chunks`], which makes no system call: chunks that they find are valid,
    /// and the caller puts missing ones.
    pub(crate) fn chunks_to_change(&self, py: Python<'_>) -> PyResult<Arc<Chunks>> {
        let removed = self.chunks(py)?;
        if !removed.is_removed() {
            return Ok(removed);
        }
        let opened = py.detach(|| Chunks::open(&self.path, &removed.options_to_recreate()));
        match opened {
            Ok(chunks) => self.replace(py, removed, Arc::new(chunks)),
            Err(error) => {
                let path = self.path.display();
                let message = format!(
                    "{path}: the folder of the cache was removed and cannot be created again, so \
                     nothing is stored: {error}"
                );
                if !self.is_warned.swap(true, Ordering::Relaxed) {
                    warn(py, &message)?;
                }
                Ok(removed)
            }
        }
    }

    /// Replaces the removed folder, unless another thread has already replaced it.
    fn replace(
        &self,
        py: Python<'_>,
        removed: Arc<Chunks>,
        made: Arc<Chunks>,
    ) -> PyResult<Arc<Chunks>> {
        let mut current = lock(&self.current);
        let now = current.as_ref().and_then(ProcessBound::in_process);
        if now.is_none_or(|now| !Arc::ptr_eq(now, &removed)) {
            drop(current);
            py.detach(|| drop((removed, made)));
            return self.chunks(py);
        }
        let before = current.replace(ProcessBound::new(Arc::clone(&made)));
        drop(current);
        let objects = lock(&self.objects).take();
        py.detach(|| drop((removed, before, objects)));
        self.is_warned.store(false, Ordering::Relaxed);
        let path = self.path.display();
        let message = "the folder of the cache was removed; it is created again, empty";
        warn(py, &format!("{path}: {message}"))?;
        Ok(made)
    }

    /// Returns the folder, open in this process.
    pub(crate) fn chunks(&self, py: Python<'_>) -> PyResult<Arc<Chunks>> {
        self.chunks_here().map_err(|failure| failure.raise(py))
    }

    /// Returns the reader of remote objects through this folder, in this process.
    pub(crate) fn objects(&self, py: Python<'_>) -> PyResult<ObjectCache> {
        self.objects_here().map_err(|failure| failure.raise(py))
    }

    fn chunks_here(&self) -> Outcome<Arc<Chunks>> {
        let mut current = lock(&self.current);
        let Some(opened) = &mut *current else { return Err(Failure::closed("cache")) };
        if let Some(chunks) = opened.in_process() {
            return Ok(Arc::clone(chunks));
        }
        let chunks = Arc::new(Chunks::open(&self.path, &self.options)?);
        *opened = ProcessBound::new(Arc::clone(&chunks));
        Ok(chunks)
    }

    fn objects_here(&self) -> Outcome<ObjectCache> {
        let chunks = self.chunks_here()?;
        let mut objects = lock(&self.objects);
        if let Some(objects) = objects.as_ref().and_then(ProcessBound::in_process) {
            return Ok(objects.clone());
        }
        let made = ObjectCache::over(chunks, Settings::new())?;
        *objects = Some(ProcessBound::new(made.clone()));
        Ok(made)
    }

    /// Returns the reader of remote objects, if this process has used one and the cache is open.
    pub(crate) fn objects_if_open(&self) -> Option<ObjectCache> {
        lock(&self.objects).as_ref().and_then(ProcessBound::in_process).cloned()
    }

    pub(crate) fn close(&self, py: Python<'_>) {
        let current = lock(&self.current).take();
        let objects = lock(&self.objects).take();
        py.detach(|| drop((current, objects)));
    }
}

/// Issues a `RuntimeWarning`. The caller must hold no lock, since warnings can run user code.
pub(super) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let warnings = py.import("warnings")?;
    warnings.call_method1("warn", (message, py.get_type::<PyRuntimeWarning>(), 2))?;
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Settings that are applied for all processes when a folder is opened. A child does not apply them
/// again, which would undo later changes of other processes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) limit: Option<u64>,
    pub(crate) min_free: Option<u64>,
    pub(crate) shared: Option<bool>,
}

impl Limits {
    fn on(self, mut options: Options) -> Options {
        if let Some(bytes) = self.limit {
            options = options.limit(bytes);
        }
        if let Some(bytes) = self.min_free {
            options = options.min_free(bytes);
        }
        if let Some(shared) = self.shared {
            options = options.share_with_group(shared);
        }
        options
    }
}
