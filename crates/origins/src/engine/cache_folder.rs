//! The folder of a cache: reopened after it was removed, bypassed while it cannot be opened.

use crate::error::{Error, Result};
use crate::lock::lock;
use crate::log_limit::LogLimit;
use crate::not_kept::NotKept;
use nuthatch_chunks::{Chunks, FolderError, Options, TaskChunks};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Minimum time between two checks whether the folder exists.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The folder of a cache.
pub(crate) struct CacheFolder {
    /// The path, or `None` for a cache without a folder.
    path: Option<PathBuf>,
    options: Options,
    threads: usize,
    state: Mutex<State>,
    /// Why the folder did not store the last block; `None` if it did.
    refusal: Mutex<Option<NotKept>>,
    /// The limit of the folder at the last check.
    limit: AtomicU64,
}

#[derive(Default)]
struct State {
    tasks: Option<TaskChunks>,
    looked: Option<Instant>,
    /// Why the folder cannot be opened. A warning was logged.
    problem: Option<Error>,
}

impl CacheFolder {
    /// Opens a folder. If the system, another process or a newer version prevents that, reads
    /// bypass the cache until the folder can be opened.
    ///
    /// # Errors
    /// Fails if an option is out of range or would change a setting of a folder that can only be
    /// read, or if threads cannot be started.
    pub(crate) fn open(path: &Path, options: &Options, threads: usize) -> Result<Self> {
        // The process may change its working directory before the folder is opened again.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = Self::new(Some(absolute), options.clone(), threads);
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
        let folder = Self::new(Some(path), chunks.options().clone(), threads);
        folder.set(tasks(chunks, threads)?);
        Ok(folder)
    }

    /// Returns a cache folder that is never opened.
    pub(crate) fn none() -> Self {
        Self::new(None, Options::new(), 1)
    }

    fn new(path: Option<PathBuf>, options: Options, threads: usize) -> Self {
        let (state, refusal, limit) = (Mutex::default(), Mutex::default(), AtomicU64::new(0));
        Self { path, options, threads, state, refusal, limit }
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
        if let Some(tasks) = &state.tasks {
            self.note_limit(tasks);
        }
        self.path.is_some() && state.tasks.as_ref().is_none_or(|tasks| tasks.chunks().is_removed())
    }

    /// Opens the folder again, and creates it if it was removed. Reads files.
    pub(crate) fn reopen(&self) {
        let Some(path) = &self.path else { return };
        let before = self.last();
        let options = before.as_ref().map(|before| before.chunks().options_to_recreate());
        let options = options.unwrap_or_else(|| self.options.clone());
        if before.is_some() {
            warn!(target: "nuthatch::chunks", folder = %path.display(),
                "the folder of the cache was removed; it is created again, empty");
        }
        let opened = Chunks::open(path, &options).map_err(Error::from);
        match opened.and_then(|chunks| tasks(Arc::new(chunks), self.threads)) {
            Ok(tasks) => self.set(tasks),
            Err(error) => self.fail(path, &error),
        }
    }

    /// Logs a warning when the folder stops storing blocks, with the cause, and a message when it
    /// stores them again.
    pub(crate) fn note_put(&self, refusal: Option<NotKept>, limit: &LogLimit) {
        let before = std::mem::replace(&mut *lock(&self.refusal), refusal);
        if before == refusal {
            return;
        }
        let kind = refusal.map_or("kept-again", NotKept::code);
        let Some(unlogged) = limit.admit(kind, Instant::now()) else { return };
        match (refusal, before) {
            (Some(NotKept::ReadOnly), _) => warn!(target: "nuthatch::chunks", unlogged,
                "this process can only read the folder of the cache now; nothing is stored"),
            (Some(cause), _) => warn!(target: "nuthatch::chunks", cause = cause.code(),
                reason = %cause, unlogged, "blocks are not kept in the cache"),
            (None, Some(NotKept::ReadOnly)) => info!(target: "nuthatch::chunks", unlogged,
                "this process can write to the folder of the cache again"),
            (None, _) => info!(target: "nuthatch::chunks", unlogged,
                "blocks are kept in the cache again"),
        }
    }

    /// Logs a warning if the limit of the folder was changed, by this process or another one.
    fn note_limit(&self, tasks: &TaskChunks) {
        let Some(limit) = tasks.chunks().limit() else { return };
        let before = self.limit.swap(limit, Ordering::Relaxed);
        if before != 0 && before != limit {
            warn!(target: "nuthatch::chunks", limit, before,
                "the limit of the cache was changed, for all processes");
        }
    }

    fn set(&self, tasks: TaskChunks) {
        // The user was warned of a folder that could only be read when it was opened.
        let is_read_only = tasks.chunks().is_read_only();
        *lock(&self.refusal) = is_read_only.then_some(NotKept::ReadOnly);
        self.limit.store(tasks.chunks().limit().unwrap_or(0), Ordering::Relaxed);
        let mut state = lock(&self.state);
        let before = state.tasks.replace(tasks);
        state.looked = Some(Instant::now());
        if state.problem.take().is_some() {
            info!(target: "nuthatch::chunks", "the folder of the cache can be used again");
        }
        drop(state);
        // Waits until its threads have ended.
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
    TaskChunks::new(chunks, threads).map_err(|error| Error::setup("threads", error))
}
