//! A file that appears under its name only once it is whole: temporary file, sync, rename.

use super::{spill, temporary};
use crate::error::{Error, Result};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed at most, as by the kernel.
const MAX_LINKS: usize = 40;

/// A file that is being made. Dropped before it is published, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    /// Its name until it is published; `None` if it has no name.
    temporary: Option<PathBuf>,
    /// The path that it gets, which is no link.
    path: PathBuf,
    sync_folder: fn(&File) -> io::Result<()>,
}

impl NewFile {
    /// Starts a file beside the path it is to have. Where a link leads is replaced, not the link. A
    /// file that is replaced passes on its mode, and its owner if the process may do that.
    ///
    /// Fails if there is something else than a file: a folder, device, pipe or socket.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.file_name().is_none() || names_folder(path) {
            let message = "expected a path that ends in the name of a file, found one of a folder";
            let source = io::Error::new(ErrorKind::InvalidInput, message);
            return Err(Error::io(path, "create", source));
        }
        let replaced = replaced_file(path)?;
        let path = behind_links(path)?;
        let directory = directory_of(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        temporary::remove_leftovers(directory, &name);
        temporary::remove_leftovers(directory, spill::NAME);
        let private = replaced.is_some();
        let (file, temporary) = temporary::create(directory, &name, private)?;
        let new = Self { file, temporary: Some(temporary), path, sync_folder: File::sync_all };
        if let Some(replaced) = replaced {
            new.take_after(&replaced).map_err(|e| Error::io(&new.path, "set the mode", e))?;
        }
        Ok(new)
    }

    /// Starts a file in a directory that never gets a name.
    pub(crate) fn unnamed(directory: &Path) -> Result<Self> {
        let (file, path) = temporary::create(directory, spill::NAME, true)?;
        fs::remove_file(&path).map_err(|e| Error::io(&path, "unlink", e))?;
        Ok(Self { file, temporary: None, path, sync_folder: File::sync_all })
    }

    /// Takes the owner, where the system allows it, and the mode of the file that is replaced.
    fn take_after(&self, replaced: &Metadata) -> io::Result<()> {
        let made = self.file.metadata()?;
        if (made.uid(), made.gid()) != (replaced.uid(), replaced.gid()) {
            // Only the super-user may give files away; members of a group may give them to it.
            let _ = fchown(&self.file, Some(replaced.uid()), Some(replaced.gid()))
                .or_else(|_| fchown(&self.file, None, Some(replaced.gid())));
        }
        self.file.set_permissions(replaced.permissions())
    }

    /// The directory the file is in.
    pub(crate) fn directory(&self) -> &Path {
        directory_of(&self.path)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| Error::io(&self.path, "write", e))
    }

    /// Writes the header, which is last, and returns the file.
    pub(crate) fn into_file(self, header: &[u8], len: u64) -> Result<File> {
        self.complete(header, len)?;
        self.file.try_clone().map_err(|e| Error::io(&self.path, "open again", e))
    }

    /// Writes the header, which is last, makes everything durable, and renames.
    ///
    /// Fails with [`Error::NotDurable`] if the file has its name, but its folder cannot be synced.
    pub(crate) fn publish(mut self, header: &[u8], len: u64) -> Result<()> {
        let io = |act| {
            let path = self.path.clone();
            move |e| Error::io(&path, act, e)
        };
        self.complete(header, len)?;
        self.file.sync_all().map_err(io("sync"))?;
        let Some(temporary) = &self.temporary else {
            return Err(io("publish (the file has no name)")(ErrorKind::InvalidInput.into()));
        };
        // Opened before the rename: when this fails, nothing is published.
        let folder = File::open(self.directory()).map_err(io("open its folder to sync it"))?;
        fs::rename(temporary, &self.path).map_err(|e| {
            let source = io::Error::new(e.kind(), format!("from {}: {e}", temporary.display()));
            Error::io(&self.path, "rename", source)
        })?;
        self.temporary = None;
        (self.sync_folder)(&folder).map_err(|e| Error::not_durable(&self.path, e))
    }

    fn complete(&self, header: &[u8], len: u64) -> Result<()> {
        self.write_at(header, 0)?;
        self.file.set_len(len).map_err(|e| Error::io(&self.path, "set the length", e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing is lost when this fails: the next build takes another name.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Returns whether a path can only name a folder.
fn names_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns the file that a new one replaces, if there is one. Fails if it cannot be replaced.
fn replaced_file(path: &Path) -> Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(found) if found.is_dir() => {
            Err(Error::io(path, "create", ErrorKind::IsADirectory.into()))
        }
        Ok(_) => {
            let message = "expected a file to replace, found a device, pipe or socket";
            let source = io::Error::new(ErrorKind::InvalidInput, message);
            Err(Error::io(path, "create", source))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path, "create", error)),
    }
}

/// Follows symbolic links, also one that leads to a file which does not exist yet.
fn behind_links(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = directory_of(&target).join(link),
            Err(_) => return Ok(target),
        }
    }
    let source = io::Error::other("too many symbolic links");
    Err(Error::io(path, "create", source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_rename_names_both_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("snapshot");
        let new = NewFile::create(&path).expect("a file");
        let temporary = new.temporary.clone().expect("a name of its own");
        fs::create_dir(&path).expect("a folder in its place");
        let text = new.publish(b"header", 6).expect_err("a folder").to_string();
        for path in [path, temporary] {
            assert!(text.contains(&path.display().to_string()), "{text}");
        }
    }

    #[test]
    fn a_failed_sync_of_the_folder_is_told_from_a_file_that_was_not_published() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new.nut");
        let mut new = NewFile::create(&path)?;
        new.sync_folder = |_| Err(io::Error::from_raw_os_error(5));
        let error = new.publish(b"header", 6).expect_err("a failed sync");
        assert_eq!(error.code(), "not-durable");
        let text = error.to_string();
        let expected = "new.nut: published, but may not survive a power failure: sync its folder: ";
        assert!(text.contains(expected), "{text}");
        assert_eq!(fs::read(&path).expect("the file"), b"header");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        Ok(())
    }
}
