//! The stores that this process has open, identified by device and inode, not by path.
//!
//! A process must open the lock file of a store only once: closing any descriptor of a file drops
//! all locks that the process has on that file, LMDB's included. Two paths lead to the same store
//! if their folders, or their lock files, have the same device and inode; this covers relative
//! paths, symbolic links and bind mounts.

use crate::error::{Error, Result};
use crate::process::Owner;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Identifies an existing file or folder, whatever path leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the identity of the file at a path.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|found| Self::of_metadata(&found))
    }

    pub(crate) fn of_metadata(found: &std::fs::Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// A store that this process has open, or is opening, closing or compacting.
pub(crate) struct Entry {
    /// The process that registered it: entries of a parent are ignored.
    owner: Owner,
    path: PathBuf,
    folder: FileId,
    locks: Option<FileId>,
    closing: Arc<Closing>,
}

/// Notifies threads that wait until a store is closed.
#[derive(Debug, Default)]
struct Closing {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

/// The locked registry.
pub(crate) type Guard = MutexGuard<'static, Vec<Entry>>;

static OPEN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Locks the registry. Held briefly; also while heed opens or closes an environment, since heed has
/// such a registry of its own, and both must be unlocked during `fork`.
pub(crate) fn lock() -> Guard {
    // The list is consistent after each statement.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right of this process to use a store, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    owner: Owner,
    closing: Arc<Closing>,
}

impl Registration {
    /// Registers the store in a folder.
    ///
    /// # Errors
    /// Returns `AlreadyOpen` if this process has it registered.
    pub(crate) fn new(path: &Path, folder: FileId, locks: Option<FileId>) -> Result<Self> {
        let mut open = lock();
        // Entries of a parent process are removed.
        open.retain(|entry| entry.owner.is_this());
        let same = |entry: &Entry| entry.is(Some(folder), locks);
        if open.iter().any(same) {
            return Err(Error::AlreadyOpen(path.to_owned()));
        }
        let closing = Arc::new(Closing::default());
        let registered = Arc::clone(&closing);
        let path = path.to_owned();
        open.push(Entry { owner: Owner::this(), path, folder, locks, closing: registered });
        Ok(Self { owner: Owner::this(), closing })
    }

    /// Adds the identity of a lock file that this process has just created.
    pub(crate) fn add_locks(&self, locks: FileId) {
        let mut open = lock();
        let entry = open.iter_mut().find(|entry| Arc::ptr_eq(&entry.closing, &self.closing));
        if let Some(entry) = entry {
            entry.locks = Some(locks);
        }
    }

    /// Returns an object that waits until the store is closed.
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter { owner: self.owner, closing: Arc::clone(&self.closing) }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.owner.is_this() {
            return;
        }
        lock().retain(|entry| !Arc::ptr_eq(&entry.closing, &self.closing));
        let mut is_closed = self.closing.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        *is_closed = true;
        self.closing.changed.notify_all();
    }
}

/// Waits until a store is closed, without keeping it open.
#[derive(Debug)]
pub(crate) struct Waiter {
    owner: Owner,
    closing: Arc<Closing>,
}

impl Waiter {
    /// Waits until the store is closed, at most for `patience`. Returns whether it is.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        // A parent's store is never open in its child.
        if !self.owner.is_this() {
            return true;
        }
        let is_closed = self.closing.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = &self.closing.changed;
        let waited = changed.wait_timeout_while(is_closed, patience, |is_closed| !*is_closed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Waits until this process has closed the store in a folder, so that it can open it again: until
/// no handle, transaction and thread of the store is left. Threads end soon after the last handle
/// is dropped. Waits at most for `patience`, and returns whether the store is closed.
pub fn wait_closed(folder: &Path, patience: Duration) -> bool {
    let id = FileId::of(folder).ok();
    let path = std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder)).ok();
    let found = {
        let open = lock();
        let same = |entry: &&Entry| entry.is(id, None) || path.as_ref() == Some(&entry.path);
        let here = |entry: &&Entry| entry.owner.is_this();
        let entry = open.iter().filter(here).find(same);
        entry.map(|entry| Waiter { owner: entry.owner, closing: Arc::clone(&entry.closing) })
    };
    found.is_none_or(|waiter| waiter.wait(patience))
}

impl Entry {
    fn is(&self, folder: Option<FileId>, locks: Option<FileId>) -> bool {
        folder == Some(self.folder) || (locks.is_some() && locks == self.locks)
    }
}
