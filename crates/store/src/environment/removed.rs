//! Detects that the files of an open store were removed or replaced: data written to them is lost
//! when the last process closes them.
//!
//! A removed file has no links. Moving the folder does not matter.

use crate::error::{Error, Result};
use crate::options::Durability;
use nuthatch_filesystem::link_count;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Minimum time between two checks by commits that are not synced. A synced commit always checks:
/// it takes at least a hundred times as long as a check.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Decides which commits check that the files of a store exist.
pub(crate) struct RemovalCheck {
    opened: Instant,
    /// When a commit that is not synced checks next, in milliseconds since `opened`.
    next_ms: AtomicU64,
}

impl RemovalCheck {
    pub(crate) fn new() -> Self {
        Self { opened: Instant::now(), next_ms: AtomicU64::new(0) }
    }

    /// Returns whether a commit has to check.
    pub(crate) fn is_due(&self, durability: Durability) -> bool {
        durability != Durability::None || self.is_due_after(self.opened.elapsed())
    }

    /// Returns whether a commit that is not synced has to check, `elapsed` after the files were
    /// opened. One thread at a time commits.
    fn is_due_after(&self, elapsed: Duration) -> bool {
        let now_ms = elapsed.as_millis() as u64;
        let is_due = now_ms >= self.next_ms.load(Ordering::Relaxed);
        if is_due {
            self.next_ms.store(now_ms + MIN_CHECK_INTERVAL.as_millis() as u64, Ordering::Relaxed);
        }
        is_due
    }
}

/// Returns an error if an open file was removed.
///
/// # Errors
/// Returns `Io` with the path.
pub(crate) fn check_linked(file: &File, path: &Path) -> Result<()> {
    match link_count(file) {
        Ok(0) => Err(removed(path)),
        Ok(_) => Ok(()),
        Err(error) => Err(Error::io(path, "count its links", error)),
    }
}

#[cold]
fn removed(path: &Path) -> Error {
    let text = "the file was removed or replaced while the store was open, so writes would be \
                lost, and this one was not done. What was committed before can still be read by \
                this process: make a backup, close the store, and put the backup in its place";
    Error::io(path, "write", io::Error::new(ErrorKind::NotFound, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_is_not_synced_checks_once_in_an_interval() {
        let check = RemovalCheck::new();
        let due = |ms| check.is_due_after(Duration::from_millis(ms));
        let checks = (0..1000).filter(|ms| due(*ms)).count();
        assert_eq!(checks, 10);
        assert!(due(5000) && !due(5099) && due(5100));
    }
}
