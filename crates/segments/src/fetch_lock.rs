//! Fetch locks: cross-process single-flight by byte-range locks. One process fetches, the others
//! wait for it.

use crate::error::Error;
use crate::layout::FETCH_LOCKS_NAME;
use crate::lock::{LockMode, lock_bytes};
use crate::segments::Segments;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// A lock on a range of numbers. Dropping it releases the lock; the kernel releases the locks of a
/// process that dies.
#[derive(Debug)]
pub struct FetchLock {
    /// `None` in a folder that can only be read.
    file: Option<Arc<File>>,
    /// The process that took the lock. A forked process has a copy and must not release it.
    process_id: u32,
    numbers: Range<u64>,
}

impl Segments {
    /// Takes a lock on numbers below 2^63 without waiting. `None` if another process, or another
    /// handle on the folder, has some of them, or if the range is empty. Two locks of one handle
    /// may overlap. In a folder that can only be read, every lock succeeds: no process could store
    /// what it fetches for the others.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn try_fetch_lock(&self, numbers: Range<u64>) -> io::Result<Option<FetchLock>> {
        let len = numbers.end.saturating_sub(numbers.start);
        // For the system, a length of zero means all bytes.
        if len == 0 {
            return Ok(None);
        }
        let process_id = std::process::id();
        let unlocked = |numbers| Ok(Some(FetchLock { file: None, process_id, numbers }));
        if self.is_denied.load(Ordering::Relaxed) {
            return unlocked(numbers);
        }
        let file = match self.fetch_locks_file() {
            Err(error) if Error::is_denial(&error) => return unlocked(numbers),
            opened => opened?,
        };
        let is_locked = lock_bytes(&file, numbers.start, len, LockMode::Exclusive)?;
        Ok(is_locked.then(|| FetchLock { file: Some(file), process_id, numbers }))
    }

    /// Opens the file whose bytes are locked. It stays empty.
    fn fetch_locks_file(&self) -> io::Result<Arc<File>> {
        let process_id = std::process::id();
        let mut open_file = self.fetch_locks.lock().unwrap_or_else(PoisonError::into_inner);
        // A forked process that used the open file of its parent would share the locks of the
        // parent.
        if let Some((_, file)) = open_file.as_ref().filter(|(owner, _)| *owner == process_id) {
            return Ok(file.clone());
        }
        let file = match self.folder.open_file(FETCH_LOCKS_NAME, OFlags::RDWR) {
            Err(Errno::NOENT) => {
                self.folder.open_file(FETCH_LOCKS_NAME, OFlags::RDWR | OFlags::CREATE)?
            }
            opened => opened?,
        };
        let file = Arc::new(file);
        *open_file = Some((process_id, file.clone()));
        Ok(file)
    }
}

impl Drop for FetchLock {
    fn drop(&mut self) {
        if self.process_id != std::process::id() {
            return;
        }
        // Closing the file is not enough: a forked child has a copy of the descriptor.
        let len = self.numbers.end - self.numbers.start;
        if let Some(file) = &self.file {
            let _ = lock_bytes(file, self.numbers.start, len, LockMode::Unlock);
        }
    }
}
