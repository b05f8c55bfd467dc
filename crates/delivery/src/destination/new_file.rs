//! The file of an object, while it is written.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The permissions that an object can have: nothing executes it.
const MAX_MODE: u32 = 0o666;

/// A file with a temporary name. Dropping it removes it.
pub(crate) struct NewFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    folder: PathBuf,
    is_published: bool,
}

impl NewFile {
    /// Creates a file in a folder, which is created, too. The umask restricts its mode further. Its
    /// temporary name has a `#` and a random number: two publishers, also in containers with the
    /// same process numbers, can write objects of the same name.
    pub(super) fn create(folder: &Path, object: &str, mode: u32) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
        // Each hasher of the standard library has random keys.
        let random = RandomState::new().hash_one(object);
        let temporary = folder.join(format!("{object}#{random:016x}"));
        let opened =
            OpenOptions::new().write(true).create_new(true).mode(mode & MAX_MODE).open(&temporary);
        let file = opened.map_err(|e| Error::io(&temporary, "create", e))?;
        let (target, folder) = (folder.join(object), folder.to_owned());
        Ok(Self { file, temporary, target, folder, is_published: false })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.temporary, "write", e))
    }

    /// Syncs the file, renames it to the name of the object, and syncs the folder.
    pub(crate) fn publish(mut self) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io(&self.temporary, "sync", e))?;
        let renamed = std::fs::rename(&self.temporary, &self.target);
        renamed.map_err(|e| Error::io(&self.target, "rename", e))?;
        self.is_published = true;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| Error::io(&self.folder, "sync", e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_published {
            // If this fails, a later publisher removes it.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
