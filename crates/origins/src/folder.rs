//! The folder of a cache: reopened after it was removed, bypassed while it cannot be opened.

use crate::engine::lock;
use crate::error::{Error, Result};
use nuthatch_chunks::{Chunks, FolderError, Options, Reason, TaskChunks};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Minimum time between two checks whether the folder exists.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The folder of a cache.
pub(crate) struct CacheFolder {
    /// `None` for a cache that never has a folder.
    path: Option<PathBuf>,
    options: Options,
    threads: usize,
    state: Mutex<State>,
    /// Whether the folder could only be read at the last put.
    is_read_only: AtomicBool,
}

#[derive(Default)]
struct State {
    tasks: Option<TaskChunks>,
    looked: Option<Instant>,
    /// Why it cannot be opened. A warning was logged then.
    problem: Option<Error>,
}

impl CacheFolder {
    /// Opens a folder. If the system, another process or a newer version prevents that, reads
    /// bypass the cache until the folder can be opened.
    ///
    /// # Errors
    /// Fails if an option is out of range, or if threads cannot be started.
    pub(crate) fn open(path: &Path, options: &Options, threads: usize) -> Result<Self> {
        let (state, options) = (Mutex::default(), options.clone());
        // The process may change its working directory before the folder is opened again.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = Self {
            path: Some(absolute),
            options,
            threads,
            state,
            is_read_only: AtomicBool::new(false),
        };
        match Chunks::open(path, &folder.options) {
            Ok(chunks) => folder.set(tasks(Arc::new(chunks), threads)?),
            Err(error @ nuthatch_chunks::Error::Folder(FolderError::Options { .. })) => {
                return Err(error.into());
            }
            Err(error) => folder.fail(path, &error.into()),
        }
        Ok(folder)
    }

    /// Uses a folder that is open already.
    pub(crate) fn over(chunks: Arc<Chunks>, threads: usize) -> Result<Self> {
        let path = std::path::absolute(chunks.path()).unwrap_or_else(|_| chunks.path().to_owned());
        let options = chunks.options().clone();
        let state = Mutex::default();
        let folder = Self {
            path: Some(path),
            options,
            threads,
            state,
            is_read_only: AtomicBool::new(false),
        };
        folder.set(tasks(chunks, threads)?);
        Ok(folder)
    }

    /// Returns a cache folder that is never opened.
    pub(crate) fn none() -> Self {
        let (options, state) = (Options::new(), Mutex::default());
        Self { path: None, options, threads: 1, state, is_read_only: AtomicBool::new(false) }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the folder as it was last opened.
    pub(crate) fn last(&self) -> Option<TaskChunks> {
        lock(&self.state).tasks.clone()
    }

    /// Returns why the folder cannot be opened, if it cannot.
    pub(crate) fn problem(&self) -> Option<Error> {
        lock(&self.state).problem.clone()
    }

    /// Returns whether the folder has to be opened again: it was removed, or could not be opened.
    /// Looks at most once a second, and the caller that gets `true` calls [`CacheFolder::reopen`].
    pub(crate) fn needs_reopening(&self) -> bool {
        let mut state = lock(&self.state);
        if state.looked.is_some_and(|looked| looked.elapsed() < LOOK_INTERVAL) {
            return false;
        }
        state.looked = Some(Instant::now());
        self.path.is_some() && state.tasks.as_ref().is_none_or(|tasks| tasks.chunks().is_removed())
    }

    /// Opens the folder again, and makes it if it was removed. Waits for files.
    pub(crate) fn reopen(&self) {
        let Some(path) = &self.path else { return };
        let before = self.last();
        let options = before.as_ref().map(|before| before.chunks().options_to_make_again());
        let options = options.unwrap_or_else(|| self.options.clone());
        if before.is_some() {
            warn!(target: "nuthatch::chunks", folder = %path.display(),
                "the folder of the cache was removed; it is made again, and empty");
        }
        let opened = Chunks::open(path, &options).map_err(Error::from);
        match opened.and_then(|chunks| tasks(Arc::new(chunks), self.threads)) {
            Ok(tasks) => self.set(tasks),
            Err(error) => self.fail(path, &error),
        }
    }

    /// Logs a warning when the folder can only be read since the last put, and a message when it
    /// can be written again.
    pub(crate) fn note_put(&self, not_kept: Option<Reason>) {
        let read_only = not_kept == Some(Reason::ReadOnly);
        if self.is_read_only.swap(read_only, Ordering::Relaxed) == read_only {
            return;
        }
        if read_only {
            warn!(target: "nuthatch::chunks",
                "the folder of the cache can only be read now; nothing is put");
        } else {
            info!(target: "nuthatch::chunks", "the folder of the cache can be written again");
        }
    }

    fn set(&self, tasks: TaskChunks) {
        // The user was warned of a folder that could only be read when it was opened.
        self.is_read_only.store(tasks.chunks().read_only(), Ordering::Relaxed);
        let mut state = lock(&self.state);
        let before = state.tasks.replace(tasks);
        state.looked = Some(Instant::now());
        if state.problem.take().is_some() {
            info!(target: "nuthatch::chunks", "the folder of the cache can be used again");
        }
        drop(state);
        // Its threads end, and are waited for.
        drop(before);
    }

    fn fail(&self, path: &Path, error: &Error) {
        let mut state = lock(&self.state);
        let before = state.tasks.take();
        state.looked = Some(Instant::now());
        if state.problem.replace(error.clone()).is_none() {
            warn!(target: "nuthatch::chunks", folder = %path.display(), %error,
                "the folder of the cache cannot be opened; reads pass through to the origin");
        }
        drop(state);
        drop(before);
    }
}

fn tasks(chunks: Arc<Chunks>, threads: usize) -> Result<TaskChunks> {
    let failed =
        |error: std::io::Error| Error::Setup { what: "threads", reason: error.to_string() };
    TaskChunks::new(chunks, threads).map_err(failed)
}
