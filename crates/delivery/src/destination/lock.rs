//! The lock of a folder, which publishers hold while they replace its manifest.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// The name of the lock file. It stays, since removing it could give the lock to two publishers.
pub(super) const NAME: &str = ".lock";

/// Maximum time until the lock is free. Publishers hold it for less than a second.
const PATIENCE: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The lock of a folder. The system releases it when the process ends, also after a crash.
pub(super) struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A child process that was just forked has the file open, too, until it runs its program.
        let _ = self.0.unlock();
    }
}

impl FolderLock {
    /// Waits until no other publisher has the lock, and takes it.
    pub(super) async fn acquire(folder: &Path) -> Result<Self> {
        Self::acquire_within(folder, PATIENCE).await
    }

    async fn acquire_within(folder: &Path, patience: Duration) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
        let path = folder.join(NAME);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(|e| Error::io(&path, "open", e))?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::Error(error)) => return Err(Error::io(&path, "lock", error)),
                Err(TryLockError::WouldBlock) if waited >= patience => {
                    let message = format!(
                        "another program has had the lock for {} s; if none publishes here, end \
                         the one that has the file open (fuser {})",
                        patience.as_secs(),
                        path.display()
                    );
                    let source = std::io::Error::new(ErrorKind::WouldBlock, message);
                    return Err(Error::io(&path, "lock", source));
                }
                Err(TryLockError::WouldBlock) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    waited += RETRY_INTERVAL;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_that_another_program_keeps_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = FolderLock::acquire(folder.path()).await.expect("a free lock");
        let waiting = FolderLock::acquire_within(folder.path(), Duration::ZERO).await;
        let error = waiting.err().expect("a lock that is not free").to_string();
        assert!(error.contains(".lock: lock: another program has had the lock"), "{error}");
        drop(kept);
        assert!(FolderLock::acquire_within(folder.path(), Duration::ZERO).await.is_ok());
    }
}
