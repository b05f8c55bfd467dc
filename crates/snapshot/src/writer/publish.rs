//! Atomic publication of a file: write a temporary file, sync it, rename it.

use super::{spill, temporary};
use crate::error::{Error, Result};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links that are followed, the limit of the kernel.
const MAX_SYMLINKS: usize = 40;

/// Number of bytes that are compared at once with a published file.
const COMPARED_BYTES: usize = 1 << 20;

/// A file that is being written. Removed when it is dropped before it is published.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    /// Its path until it is published, or `None` if it has no name.
    temporary: Option<PathBuf>,
    /// The path at which it is published. Not a symbolic link.
    path: PathBuf,
    /// Syncs the folder. Tests replace it.
    sync_folder: fn(&File) -> io::Result<()>,
}

impl NewFile {
    /// Creates a temporary file beside the path at which it will be published. If the path is a
    /// symbolic link, the file that it points to will be replaced. The new file takes the mode of
    /// the file that it replaces, and its owner if the process is permitted to set it.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the path names a folder, device, pipe or socket, or if a system
    /// call fails.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.file_name().is_none() || names_folder(path) {
            let message = "expected a path that ends in the name of a file, found one of a folder";
            let source = io::Error::new(ErrorKind::InvalidInput, message);
            return Err(Error::io(path, "create", source));
        }
        let replaced = replaced_file(path)?;
        let path = resolve_symlinks(path)?;
        let folder = folder_of(&path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        temporary::remove_leftovers(folder, &name);
        temporary::remove_leftovers(folder, spill::NAME);
        let private = replaced.is_some();
        let (file, temporary) = temporary::create(folder, &name, private)?;
        let new = Self { file, temporary: Some(temporary), path, sync_folder: File::sync_all };
        if let Some(replaced) = replaced {
            new.copy_ownership(&replaced).map_err(|e| Error::io(&new.path, "set the mode", e))?;
        }
        Ok(new)
    }

    /// Creates a temporary file that will be published in the same folder as this one, with the
    /// same mode and owner. [`set_name`](Self::set_name) sets its name.
    pub(crate) fn sibling(&self) -> Result<Self> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let like = self.file.metadata().map_err(|e| Error::io(&self.path, "stat", e))?;
        let (file, temporary) = temporary::create(self.folder(), &name, true)?;
        let (path, sync_folder) = (self.path.clone(), self.sync_folder);
        let new = Self { file, temporary: Some(temporary), path, sync_folder };
        new.copy_ownership(&like).map_err(|e| Error::io(&new.path, "set the mode", e))?;
        Ok(new)
    }

    /// Sets the name with which the file is published.
    pub(crate) fn set_name(&mut self, name: &str) {
        self.path.set_file_name(name);
    }

    /// Creates a file without a name in a folder.
    pub(crate) fn unnamed(folder: &Path) -> Result<Self> {
        let (file, path) = temporary::create(folder, spill::NAME, true)?;
        fs::remove_file(&path).map_err(|e| Error::io(&path, "unlink", e))?;
        Ok(Self { file, temporary: None, path, sync_folder: File::sync_all })
    }

    /// Sets the mode of the replaced file, and its owner and group as far as the system permits.
    fn copy_ownership(&self, replaced: &Metadata) -> io::Result<()> {
        let created = self.file.metadata()?;
        if (created.uid(), created.gid()) != (replaced.uid(), replaced.gid()) {
            // Only the superuser can change the owner. A member of a group can set the group.
            let _ = fchown(&self.file, Some(replaced.uid()), Some(replaced.gid()))
                .or_else(|_| fchown(&self.file, None, Some(replaced.gid())));
        }
        self.file.set_permissions(replaced.permissions())
    }

    /// Returns the folder of the file.
    pub(crate) fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path at which the file will be published.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes bytes at an offset.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| Error::io(&self.path, "write", e))
    }

    /// Writes the header, as the last part of the file, sets the length and returns the file.
    pub(crate) fn into_file(self, header: &[u8], len: u64) -> Result<File> {
        self.complete(header, len)?;
        self.file.try_clone().map_err(|e| Error::io(&self.path, "open again", e))
    }

    /// Publishes the file: writes the header, as the last part of the file, sets the length, syncs
    /// the file, renames it and syncs the folder.
    ///
    /// # Errors
    /// Returns [`Error::NotDurable`] if the file is published but the sync of its folder fails, and
    /// [`Error::Io`] if it is not published.
    pub(crate) fn publish(self, header: &[u8], len: u64) -> Result<()> {
        self.stage(header, len)?;
        self.publish_staged()
    }

    /// Writes the header, as the last part of the file, sets the length and syncs the file. The
    /// file keeps its temporary name.
    pub(crate) fn stage(&self, header: &[u8], len: u64) -> Result<()> {
        self.complete(header, len)?;
        self.file.sync_all().map_err(|e| Error::io(&self.path, "sync", e))
    }

    /// Publishes a file that [`stage`](Self::stage) has completed.
    ///
    /// # Errors
    /// Returns the same errors as [`publish`](Self::publish).
    pub(crate) fn publish_staged(mut self) -> Result<()> {
        // Opened before the rename: if this fails, nothing is published.
        let folder = self.open_folder()?;
        self.rename_staged()?;
        (self.sync_folder)(&folder).map_err(|e| Error::not_durable(&self.path, e))
    }

    /// Returns the path that the file has until it is published; `None` if it has no name.
    pub(crate) fn temporary_path(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Publishes the file as [`publish`](Self::publish) does, but does not sync the folder.
    pub(crate) fn publish_without_folder(mut self, header: &[u8], len: u64) -> Result<()> {
        self.rename(header, len)
    }

    /// Sets the time of the file at the path to that of this one, as if it was published again: old
    /// shards are removed. Returns whether that was possible.
    pub(crate) fn renew_published(&self) -> bool {
        let renewed = (self.file.metadata().and_then(|written| written.modified()))
            .and_then(|written| File::open(&self.path)?.set_modified(written));
        renewed.is_ok()
    }

    /// Returns whether the same bytes are already at the path: this header, then the contents of
    /// this file. All of them are compared, so that a damaged file is published again.
    pub(crate) fn is_published(&self, header: &[u8], len: u64) -> bool {
        let Ok(published) = File::open(&self.path) else { return false };
        let found = published.metadata();
        if !found.is_ok_and(|found| found.is_file() && found.len() == len) {
            return false;
        }
        let mut buffers = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
        let mut at = 0;
        while at < len {
            let count = (len - at).min(COMPARED_BYTES as u64) as usize;
            let [new, old] = buffers.each_mut().map(|buffer| &mut buffer[..count]);
            // The zeros at the end are not written yet.
            new.fill(0);
            if read_up_to(&self.file, new, at).is_err() || published.read_exact_at(old, at).is_err()
            {
                return false;
            }
            if at == 0 {
                new[..header.len()].copy_from_slice(header);
            }
            if new != old {
                return false;
            }
            at += count as u64;
        }
        true
    }

    /// Syncs the folder.
    pub(crate) fn sync_folder(&self) -> Result<()> {
        let synced = (self.sync_folder)(&self.open_folder()?);
        synced.map_err(|e| Error::io(self.folder(), "sync", e))
    }

    fn open_folder(&self) -> Result<File> {
        let opened = File::open(self.folder());
        opened.map_err(|e| Error::io(&self.path, "open its folder to sync it", e))
    }

    /// Writes the header, sets the length, syncs the file and renames it.
    fn rename(&mut self, header: &[u8], len: u64) -> Result<()> {
        self.stage(header, len)?;
        self.rename_staged()
    }

    fn rename_staged(&mut self) -> Result<()> {
        let Some(temporary) = &self.temporary else {
            let source = ErrorKind::InvalidInput.into();
            return Err(Error::io(&self.path, "publish (the file has no name)", source));
        };
        fs::rename(temporary, &self.path).map_err(|e| {
            let source = io::Error::new(e.kind(), format!("from {}: {e}", temporary.display()));
            Error::io(&self.path, "rename", source)
        })?;
        self.temporary = None;
        Ok(())
    }

    /// Writes the header and sets the length.
    fn complete(&self, header: &[u8], len: u64) -> Result<()> {
        self.write_at(header, 0)?;
        self.file.set_len(len).map_err(|e| Error::io(&self.path, "set the length", e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // A failure is harmless: the next build uses another name.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Reads bytes at an offset until the buffer is full or the file ends.
fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether a path can only name a folder.
fn names_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Returns the metadata of the file at a path, or `None` if the path does not exist. Fails if the
/// path names something that is not a regular file.
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

/// Returns the folder of the file that is at a path or will be there.
pub(super) fn real_folder(path: &Path) -> Result<PathBuf> {
    Ok(folder_of(&resolve_symlinks(path)?).to_owned())
}

/// Follows symbolic links. The target need not exist.
fn resolve_symlinks(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_SYMLINKS {
        match fs::read_link(&target) {
            Ok(link) => target = folder_of(&target).join(link),
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
    fn a_failed_sync_of_the_folder_differs_from_a_file_that_was_not_published() -> Result<()> {
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
