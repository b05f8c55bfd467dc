//! The folder and its files. All files are opened relative to the open folder, so a folder that is
//! renamed stays usable.

pub(crate) mod contents;
pub(crate) mod names;
pub(crate) mod pins;
pub(crate) mod settings;

use crate::error::{Error, Result, is_denied};
use nuthatch_filesystem::link_count;
use rustix::fs::{Access, AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    file: File,
    /// The user and the group that own the folder.
    owner: (u32, u32),
    /// Whether the group may use the files.
    shared: AtomicBool,
}

/// Returns the mode of the folder: for its owner only, or for its group, which new files inherit.
pub(crate) fn folder_mode(shared: bool) -> u32 {
    if shared { 0o2770 } else { 0o700 }
}

/// Returns the mode of files.
fn file_mode(shared: bool) -> u32 {
    if shared { 0o660 } else { 0o600 }
}

/// A directory entry.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) len: u64,
    /// Bytes allocated on the disk.
    pub(crate) disk_bytes: u64,
    pub(crate) is_file: bool,
}

impl Folder {
    /// Opens a folder and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn open(path: &Path, shared: bool) -> Result<Self> {
        let file = match open_folder(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Self::create(path, shared)?,
            opened => opened.map_err(|e| Error::io("open the folder", path, e))?,
        };
        let metadata =
            file.metadata().map_err(|e| Error::io("read the metadata of the folder", path, e))?;
        let owner = (metadata.uid(), metadata.gid());
        Ok(Self { path: path.to_owned(), file, owner, shared: AtomicBool::new(shared) })
    }

    /// Creates the folder with its mode, and its parents.
    fn create(path: &Path, shared: bool) -> Result<File> {
        let fail = |e| Error::io("create the folder", path, e);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(fail)?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {
                let file = open_folder(path).map_err(fail)?;
                // The umask does not apply.
                let mode = Mode::from_raw_mode(folder_mode(shared));
                rustix::fs::fchmod(&file, mode).map_err(|errno| fail(errno.into()))?;
                Ok(file)
            }
            // Another process created it first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                open_folder(path).map_err(|e| Error::io("open the folder", path, e))
            }
            Err(error) => Err(fail(error)),
        }
    }

    /// Returns why this process may not create files in the folder, or `None` if it may.
    pub(crate) fn write_denial(&self) -> Option<Errno> {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        let found = rustix::fs::accessat(self.file.as_fd(), ".", access, AtFlags::EACCESS);
        found.err().filter(|errno| is_denied(*errno))
    }

    /// Returns the permissions of the folder.
    pub(crate) fn mode(&self) -> Option<u32> {
        Some(self.file.metadata().ok()?.mode() & 0o7777)
    }

    /// Sets whether the group may use files that are created from now on.
    pub(crate) fn set_shared(&self, shared: bool) {
        self.shared.store(shared, Ordering::Relaxed);
    }

    /// Sets the modes of the folder and of the files whose names `is_own` accepts. Files of other
    /// users keep their mode.
    ///
    /// # Errors
    ///
    /// Returns the error of the system for the folder or its list.
    pub(crate) fn change_modes(&self, is_own: impl Fn(&str) -> bool) -> Result<()> {
        let shared = self.shared.load(Ordering::Relaxed);
        let changed = rustix::fs::fchmod(&self.file, Mode::from_raw_mode(folder_mode(shared)));
        changed.map_err(|errno| self.error("change the mode of", "", errno))?;
        for entry in self.list()?.iter().filter(|entry| entry.is_file && is_own(&entry.name)) {
            if let Ok(file) = self.open_file(&entry.name, OFlags::RDONLY) {
                let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(file_mode(shared)));
            }
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether the folder was removed since it was opened.
    pub(crate) fn is_removed(&self) -> bool {
        match link_count(&self.file) {
            Ok(links) => links == 0,
            Err(error) => Errno::from_io_error(&error) == Some(Errno::STALE),
        }
    }

    /// Opens the folder once more, for a lock of its own.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn open_again(&self) -> std::io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(self.file.as_fd(), ".", flags, Mode::empty())?.into())
    }

    /// Returns an error of the system for one of its files.
    pub(crate) fn error(&self, operation: &'static str, name: &str, errno: Errno) -> Error {
        let source = std::io::Error::from(errno);
        let source = match errno {
            Errno::ISDIR => {
                let what = "expected a file, found a directory; remove it";
                std::io::Error::new(source.kind(), what)
            }
            _ => source,
        };
        Error::io(operation, self.path.join(name), source)
    }

    /// Opens a file. A file that is created gets the permissions of the folder's files, whatever
    /// the umask is.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn open_file(&self, name: &str, flags: OFlags) -> rustix::io::Result<File> {
        // Opening must not wait for a named pipe, nor follow a link.
        let all = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o600);
        let file = File::from(rustix::fs::openat(self.file.as_fd(), name, all, mode)?);
        if flags.contains(OFlags::CREATE) {
            self.set_permissions(&file);
        }
        Ok(file)
    }

    /// Sets the permissions of a new file. A file that root creates in the folder of another user
    /// gets the owner of the folder, who could not open it otherwise.
    fn set_permissions(&self, file: &File) {
        let Ok(metadata) = file.metadata() else { return };
        let mode = file_mode(self.shared.load(Ordering::Relaxed));
        if metadata.mode() & 0o777 != mode {
            let _ = rustix::fs::fchmod(file, Mode::from_raw_mode(mode));
        }
        if metadata.uid() == 0 && self.owner.0 != 0 {
            let (user, group) = (Uid::from_raw(self.owner.0), Gid::from_raw(self.owner.1));
            let _ = rustix::fs::fchown(file, Some(user), Some(group));
        }
    }

    /// Removes a file. A missing file is not an error.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn remove(&self, name: &str) -> rustix::io::Result<()> {
        match rustix::fs::unlinkat(self.file.as_fd(), name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        rustix::fs::renameat(self.file.as_fd(), from, self.file.as_fd(), to)
    }

    /// Replaces a small file durably: writes the bytes to the file `new`, syncs it, renames it to
    /// `name`, and syncs the folder.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. If only the sync of the folder failed, the new file is
    /// visible.
    pub(crate) fn replace(&self, new: &str, name: &str, bytes: &[u8]) -> Result<()> {
        self.replace_with(new, name, bytes, File::sync_all)
    }

    /// Does the same as [`Folder::replace`] with another function to sync files and folders.
    fn replace_with(
        &self,
        new: &str,
        name: &str,
        bytes: &[u8],
        sync: fn(&File) -> std::io::Result<()>,
    ) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file =
            self.open_file(new, flags).map_err(|errno| self.error("write", new, errno))?;
        let written = file.write_all(bytes).and_then(|()| sync(&file));
        written.map_err(|e| Error::io("write", self.path.join(new), e))?;
        self.rename(new, name).map_err(|errno| {
            let target = self.path.join(name);
            let error = std::io::Error::from(errno);
            let source =
                std::io::Error::new(error.kind(), format!("to {}: {error}", target.display()));
            Error::io("rename", self.path.join(new), source)
        })?;
        sync(self.file()).map_err(|e| {
            let state = "published, but may not survive a power failure";
            let source = std::io::Error::new(e.kind(), format!("{state}: sync the folder: {e}"));
            Error::io("publish", self.path.join(name), source)
        })
    }

    /// Renames a file unless the new name exists.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, `EEXIST` if the new name exists.
    pub(crate) fn rename_new(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        let folder = self.file.as_fd();
        rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE)
    }

    pub(crate) fn stat(&self, name: &str) -> rustix::io::Result<Stat> {
        rustix::fs::statat(self.file.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Returns the bytes that the folder itself takes.
    pub(crate) fn folder_bytes(&self) -> u64 {
        rustix::fs::fstat(self.file.as_fd())
            .map_or(4096, |stat| stat.st_size.max(4096).cast_unsigned())
    }

    /// Lists all entries.
    ///
    /// # Errors
    ///
    /// Returns the error of the system for the folder, or for an entry whose metadata cannot be
    /// read.
    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        let fail = |errno| self.error("list", "", errno);
        let mut entries = Vec::new();
        for entry in Dir::read_from(self.file.as_fd()).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            let stat = match self.stat(&name) {
                Ok(stat) => stat,
                // Another process removed it meanwhile.
                Err(Errno::NOENT) => continue,
                // If the entry were skipped, the caller would take the file for absent.
                Err(errno) => return Err(self.error("read the metadata of", &name, errno)),
            };
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let disk_bytes = stat.st_blocks.cast_unsigned() * 512;
            entries.push(Entry { name, len: stat.st_size.cast_unsigned(), disk_bytes, is_file });
        }
        Ok(entries)
    }
}

fn open_folder(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const EIO: i32 = 5;

    fn is_folder(file: &File) -> bool {
        file.metadata().expect("its kind").is_dir()
    }

    #[test]
    fn a_file_is_synced_before_it_replaces_another_and_the_folder_afterwards() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(place.path(), false).expect("a folder");
        folder.replace("new", "name", b"first").expect("a file");
        let fail_file: fn(&File) -> _ = |file| {
            if is_folder(file) { Ok(()) } else { Err(std::io::Error::from_raw_os_error(EIO)) }
        };
        let error = folder.replace_with("new", "name", b"second", fail_file);
        error.expect_err("a failed sync of the file");
        assert_eq!(fs::read(place.path().join("name")).expect("the file"), b"first");

        let fail_folder: fn(&File) -> _ = |file| {
            if is_folder(file) { Err(std::io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
        };
        let error = folder.replace_with("new", "name", b"third", fail_folder);
        let text = error.expect_err("a failed sync of the folder").to_string();
        assert!(text.contains("published, but may not survive a power failure"), "{text}");
        assert_eq!(fs::read(place.path().join("name")).expect("the file"), b"third");
    }

    #[test]
    fn a_failed_rename_names_both_files() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(place.path(), false).expect("a folder");
        let target = place.path().join("name");
        fs::create_dir(&target).expect("a folder in its place");
        let text = folder.replace("new", "name", b"x").expect_err("a folder").to_string();
        for path in [place.path().join("new"), target] {
            assert!(text.contains(&path.display().to_string()), "{text}");
        }
    }
}
