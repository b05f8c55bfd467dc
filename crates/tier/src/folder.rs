//! The folder: its lock, its manifest, and the names of its files.

use crate::buffer::AlignedBuffer;
use crate::checksum::checksum;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::layout::{
    BLOCK, ITEMS_ENDING, ITEMS_PREFIX, LOCK_NAME, MANIFEST_NAME, MANIFEST_NEW, MAX_NUMBER,
    REMOVED_NEW, REMOVED_PREFIX, VERSION,
};
use crate::manifest::{Manifest, ManifestError};
use rustix::fs::{Access, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open folder.
pub(crate) struct Folder {
    path: PathBuf,
    file: File,
    pub(crate) disk: Arc<dyn Disk>,
}

/// The lock of a folder. The kernel releases it if the process dies.
pub(crate) struct FolderGuard {
    file: File,
}

impl Drop for FolderGuard {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread has just forked has a copy of
        // the descriptor until it executes its program, and the lock belongs to both.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// A file in the folder.
#[derive(Clone)]
pub(crate) struct FolderEntry {
    pub(crate) name: String,
    pub(crate) len: u64,
    pub(crate) is_file: bool,
}

/// Returns the file name of an item file.
pub(crate) fn items_name(number: u64) -> String {
    format!("{ITEMS_PREFIX}{number:010}{ITEMS_ENDING}")
}

/// Returns the number in the name of an item file, or `None` for other names.
pub(crate) fn items_number(name: &str) -> Option<u64> {
    number_in(name, ITEMS_PREFIX).filter(|number| items_name(*number) == name)
}

/// Returns the file name of a removal log.
pub(crate) fn removed_name(number: u64) -> String {
    format!("{REMOVED_PREFIX}{number:010}{ITEMS_ENDING}")
}

/// Returns the number in the name of a removal log, or `None` for other names.
pub(crate) fn removed_number(name: &str) -> Option<u64> {
    number_in(name, REMOVED_PREFIX).filter(|number| removed_name(*number) == name)
}

fn number_in(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(ITEMS_ENDING)?;
    digits.parse().ok().filter(|number| (1..=MAX_NUMBER).contains(number))
}

/// Returns whether this crate uses a file name.
pub(crate) fn is_own(name: &str) -> bool {
    items_number(name).is_some()
        || removed_number(name).is_some()
        || [MANIFEST_NAME, MANIFEST_NEW, LOCK_NAME, REMOVED_NEW].contains(&name)
}

/// Returns whether a folder has item files. Also if they have no items: a file is created before
/// its first record.
///
/// # Errors
///
/// Returns the error of the system if the folder exists and cannot be listed.
pub fn has_item_files(folder: &Path) -> std::io::Result<bool> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    for entry in entries {
        if items_number(&entry?.file_name().to_string_lossy()).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a random number, for salts. It comes from the seeds of hash maps in the standard
/// library, which differ between processes and calls.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns a number that stays the same until the system restarts. If the system does not report
/// one, the number is random, and the tier counts as opened before a restart.
pub(crate) fn boot() -> u64 {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id");
    id.map_or_else(|_| random(), |id| checksum(&id, 0))
}

impl Folder {
    /// Opens a folder for reading and writing, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotAFolder`], [`Error::ReadOnly`] or the error of the system.
    pub(crate) fn open(path: &Path, disk: Arc<dyn Disk>) -> Result<Self> {
        let file = match open_folder(path) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => create(path)?,
            opened => opened?,
        };
        let access = Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(&file, ".", access, AtFlags::EACCESS) {
            Err(errno) if is_denied(errno) => {
                Err(Error::ReadOnly { path: path.to_owned(), source: errno.into() })
            }
            _ => Ok(Self { path: path.to_owned(), file, disk }),
        }
    }

    /// Opens an existing folder for reading.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotAFolder`] or the error of the system.
    pub(crate) fn open_read_only(path: &Path, disk: Arc<dyn Disk>) -> Result<Self> {
        Ok(Self { path: path.to_owned(), file: open_folder(path)?, disk })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns an error of the system at a file of the folder.
    pub(crate) fn error(
        &self,
        operation: &'static str,
        name: &str,
        source: impl Into<std::io::Error>,
    ) -> Error {
        Error::io(operation, self.path.join(name), source.into())
    }

    /// Locks the folder exclusively and stores the id of this process in the lock file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InUse`], [`Error::ReadOnly`] or the error of the system.
    pub(crate) fn lock(&self) -> Result<FolderGuard> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o600);
        let opened = rustix::fs::openat(&self.file, LOCK_NAME, flags, mode);
        let mut file = File::from(opened.map_err(|errno| {
            if is_denied(errno) {
                return Error::ReadOnly { path: self.path.clone(), source: errno.into() };
            }
            self.error("open", LOCK_NAME, errno)
        })?);
        self.flock(&mut file, FlockOperation::NonBlockingLockExclusive)?;
        // The umask does not apply. Another user may own the file; then it keeps its mode.
        let _ = rustix::fs::fchmod(&file, mode);
        let text = format!("{}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(|e| self.error("write", LOCK_NAME, e))?;
        Ok(FolderGuard { file })
    }

    /// Locks the folder against writers, if it has a lock file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InUse`] or the error of the system.
    pub(crate) fn lock_shared(&self) -> Result<Option<FolderGuard>> {
        let mut file = match self.open_file(LOCK_NAME, false) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        self.flock(&mut file, FlockOperation::NonBlockingLockShared)?;
        Ok(Some(FolderGuard { file }))
    }

    fn flock(&self, file: &mut File, operation: FlockOperation) -> Result<()> {
        match rustix::fs::flock(&*file, operation) {
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                let _ = file.take(20).read_to_string(&mut text);
                Err(Error::InUse { path: self.path.clone(), pid: text.trim().parse().ok() })
            }
            result => result.map_err(|errno| self.error("lock", LOCK_NAME, errno)),
        }
    }

    /// Opens a file of the folder.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn open_file(&self, name: &str, is_writable: bool) -> Result<File> {
        let access = if is_writable { OFlags::RDWR } else { OFlags::RDONLY };
        // A named pipe does not block the process.
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = rustix::fs::openat(&self.file, name, flags, Mode::empty());
        Ok(opened.map_err(|errno| self.error("open", name, errno))?.into())
    }

    /// Creates a file, and empties an existing one.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn create_file(&self, name: &str) -> Result<File> {
        self.disk.create(&self.file, name).map_err(|e| self.error("create", name, e))
    }

    /// Renames a file and replaces the file of the new name.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, at the new name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        let renamed = self.disk.rename(&self.file, from, to);
        renamed.map_err(|e| self.error("replace", to, e))
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. A missing file is not an error.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match self.disk.remove(&self.file, name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(self.error("remove", name, error))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the names of the files are durable.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn sync(&self) -> Result<()> {
        self.disk.sync_folder(&self.file).map_err(|e| self.error("sync", "", e))
    }

    /// Returns the bytes of the folder itself.
    pub(crate) fn own_bytes(&self) -> u64 {
        rustix::fs::fstat(&self.file).map_or(0, |stat| stat.st_size.cast_unsigned())
    }

    /// Lists the files.
    ///
    /// # Errors
    ///
    /// Returns the error of the system for the folder or for one of its files.
    pub(crate) fn list(&self) -> Result<Vec<FolderEntry>> {
        let mut entries = Vec::new();
        let names = Dir::read_from(&self.file).map_err(|errno| self.error("list", "", errno))?;
        for entry in names {
            let entry = entry.map_err(|errno| self.error("list", "", errno))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            let stat = match rustix::fs::statat(
                &self.file,
                entry.file_name(),
                AtFlags::SYMLINK_NOFOLLOW,
            ) {
                Err(Errno::NOENT) => continue,
                result => result.map_err(|errno| self.error("examine", &name, errno))?,
            };
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            entries.push(FolderEntry { name, len: stat.st_size.cast_unsigned(), is_file });
        }
        Ok(entries)
    }

    /// Reads the manifest. Returns `None` if it is missing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Manifest`], [`Error::Version`] or the error of the system.
    pub(crate) fn manifest(&self) -> Result<Option<Manifest>> {
        let file = match self.open_file(MANIFEST_NAME, false) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        let mut bytes = Vec::new();
        let read = file.take(BLOCK as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|e| self.error("read", MANIFEST_NAME, e))?;
        let path = || self.path.join(MANIFEST_NAME);
        match Manifest::decode(&bytes) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(ManifestError::Damaged(found)) => Err(Error::Manifest { path: path(), found }),
            Err(ManifestError::Version(found)) => {
                Err(Error::Version { path: path(), expected: VERSION, found })
            }
        }
    }

    /// Replaces the manifest durably: the old one or the new one is there at all times.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn replace_manifest(&self, manifest: Manifest) -> Result<()> {
        let mut block = AlignedBuffer::new(BLOCK);
        block.as_mut_slice().copy_from_slice(&manifest.encode());
        let file = self.create_file(MANIFEST_NEW)?;
        let written = self.disk.write(&file, MANIFEST_NEW, block.as_slice(), 0);
        written.map_err(|e| self.error("write", MANIFEST_NEW, e))?;
        let synced = self.disk.sync(&file, MANIFEST_NEW);
        synced.map_err(|e| self.error("sync", MANIFEST_NEW, e))?;
        self.rename(MANIFEST_NEW, MANIFEST_NAME)?;
        self.sync()
    }
}

fn is_denied(errno: Errno) -> bool {
    [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(&errno)
}

fn open_folder(path: &Path) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOTDIR) => Err(Error::NotAFolder { path: path.to_owned() }),
        opened => Ok(opened.map_err(|e| Error::io("open the folder", path, e.into()))?.into()),
    }
}

/// Creates a folder of mode 0700, and its parents.
fn create(path: &Path) -> Result<File> {
    let fail = |e| Error::io("create the folder", path, e);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            let folder = open_folder(path)?;
            // The umask does not apply.
            rustix::fs::fchmod(&folder, Mode::RWXU).map_err(|errno| fail(errno.into()))?;
            Ok(folder)
        }
        // Another process created it first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => open_folder(path),
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SystemDisk;

    /// Regression test: a folder stayed locked for a moment if another thread forked a child while
    /// the folder was closed.
    #[test]
    fn a_folder_is_unlocked_even_if_a_forked_child_has_its_descriptor() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(place.path(), Arc::new(SystemDisk)).expect("a folder");
        let guard = folder.lock().expect("a lock");
        let of_child = guard.file.try_clone().expect("a copy");
        assert!(matches!(folder.lock(), Err(Error::InUse { .. })));
        drop(guard);
        drop(folder.lock().expect("a lock"));
        drop(folder.lock_shared().expect("a lock"));
        drop(of_child);
    }

    #[test]
    fn names_of_item_files_have_ten_digits() {
        assert_eq!(items_name(7), "items-0000000007.log");
        for number in [1, 7, 123_456, MAX_NUMBER] {
            assert_eq!(items_number(&items_name(number)), Some(number));
        }
        for name in ["items-7.log", "items-0000000000.log", "items-00000000+7.log", "tier", "x"] {
            assert_eq!(items_number(name), None, "{name}");
        }
        assert!(is_own("tier.new") && is_own("lock") && !is_own("lost+found"));
        assert_eq!(removed_name(7), "removed-0000000007.log");
        assert_eq!(removed_number(&removed_name(7)), Some(7));
        assert_eq!((removed_number(&items_name(7)), items_number(&removed_name(7))), (None, None));
        assert!(is_own("removed.new") && is_own(&removed_name(1)) && !is_own("removed-1.log"));
    }
}
