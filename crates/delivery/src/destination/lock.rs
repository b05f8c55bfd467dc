//! The lock of a folder, which publishers hold while they replace its manifest.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::path::Path;

/// The name of the lock file. It stays, since removing it could give the lock to two publishers.
const NAME: &str = ".lock";

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
    pub(super) fn acquire(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
        let path = folder.join(NAME);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(|e| Error::io(&path, "open", e))?;
        file.lock().map_err(|e| Error::io(&path, "lock", e))?;
        Ok(Self(file))
    }
}
