//! A folder as Python has it: open once for each process.

use crate::failure::{Failure, Outcome};
use crate::runtime;
use nuthatch_chunks::{Chunks, Options};
use nuthatch_origins::{ObjectCache, Settings};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A folder. A child made by `fork` opens it again when it first needs it: a lock of its parent's,
/// or a fetch, might be one of a thread that the child does not have.
pub(crate) struct Folder {
    path: PathBuf,
    options: Options,
    // Taken while attached to the interpreter alone, as is `fork`, so no child finds it locked; and
    // nothing of Python's runs meanwhile, which might attach a thread that waits for it.
    current: Mutex<Option<(u32, Arc<Chunks>)>>,
    /// What reads through it, once anybody does.
    objects: Mutex<Option<(u32, ObjectCache)>>,
}

impl Folder {
    pub(crate) fn open(path: PathBuf, options: Options, limits: Limits) -> Outcome<Self> {
        let chunks = Chunks::open(&path, &limits.on(options.clone()))?;
        let current = Mutex::new(Some((runtime::generation(), Arc::new(chunks))));
        Ok(Self { path, options, current, objects: Mutex::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder, open in this process.
    pub(crate) fn chunks(&self, py: Python<'_>) -> PyResult<Arc<Chunks>> {
        self.chunks_here().map_err(|failure| failure.raise(py))
    }

    /// What reads remote objects through it, in this process.
    pub(crate) fn objects(&self, py: Python<'_>) -> PyResult<ObjectCache> {
        self.objects_here().map_err(|failure| failure.raise(py))
    }

    fn chunks_here(&self) -> Outcome<Arc<Chunks>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((generation, chunks)) = &*current else {
            return Err(Failure::closed("cache"));
        };
        if *generation == runtime::generation() {
            return Ok(Arc::clone(chunks));
        }
        let opened = Arc::new(Chunks::open(&self.path, &self.options)?);
        // What the parent opened is forgotten, not closed: its locks may be held by threads that
        // are not here.
        std::mem::forget(current.replace((runtime::generation(), Arc::clone(&opened))));
        Ok(opened)
    }

    fn objects_here(&self) -> Outcome<ObjectCache> {
        let chunks = self.chunks_here()?;
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((generation, objects)) = &*objects
            && *generation == runtime::generation()
        {
            return Ok(objects.clone());
        }
        let made = ObjectCache::over(chunks, Settings::new())?;
        std::mem::forget(objects.replace((runtime::generation(), made.clone())));
        Ok(made)
    }

    pub(crate) fn close(&self, py: Python<'_>) {
        let closed = self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
        end(py, closed);
        let closed = self.objects.lock().unwrap_or_else(PoisonError::into_inner).take();
        end(py, closed);
    }
}

/// Drops what this process opened, and forgets what its parent did.
fn end<T: Send>(py: Python<'_>, closed: Option<(u32, T)>) {
    match closed {
        Some((generation, closed)) if generation == runtime::generation() => {
            py.detach(|| drop(closed));
        }
        closed => std::mem::forget(closed),
    }
}

/// Limits that are set when a folder is opened, for all processes: not again in a child, which
/// would undo what somebody changed meanwhile.
#[derive(Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) limit: Option<u64>,
    pub(crate) least_free: Option<u64>,
}

impl Limits {
    fn on(self, mut options: Options) -> Options {
        if let Some(bytes) = self.limit {
            options = options.limit(bytes);
        }
        if let Some(bytes) = self.least_free {
            options = options.least_free(bytes);
        }
        options
    }
}
