//! Atomic replacement of files: a file is written under a temporary name and then renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// The text between the name of a file and the number of the process that writes it.
const PARTIAL: &str = ".partial-";
/// Maximum number of temporary names that are tried.
const MAX_NAMES: u32 = 100;

/// A file that is written under a temporary name. Dropping it removes it and leaves the target
/// unchanged.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    target: PathBuf,
    path: PathBuf,
    file: File,
    is_published: bool,
    sync_folder: fn(&File) -> io::Result<()>,
}

/// Maximum number of symbolic links that are followed, as by the kernel.
const MAX_LINKS: usize = 40;

impl AtomicFile {
    /// Creates a temporary file beside `target`. If `target` is a symbolic link, the file that it
    /// points to is replaced. Removes temporary files of the same target that killed processes
    /// left.
    pub(crate) fn create(target: PathBuf) -> io::Result<Self> {
        let target = resolve_links(target)?;
        remove_leftovers(&target);
        let process = std::process::id();
        for number in 0..MAX_NAMES {
            // A process in another container can have the same number.
            let more = if number == 0 { String::new() } else { format!("-{number}") };
            let mut name = target.as_os_str().to_owned();
            name.push(format!("{PARTIAL}{process}{more}"));
            match Self::create_at(name.into(), target.clone(), 0o666) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Creates a file at `path` that only the user of this process can read. Publishing renames it
    /// to `target`, in the same folder.
    pub(crate) fn create_private(path: PathBuf, target: PathBuf) -> io::Result<Self> {
        // An existing file was left by a killed process.
        let _ = fs::remove_file(&path);
        Self::create_at(path, target, 0o600)
    }

    /// Creates a file at `path`. Before it has any bytes, which can be secret, it gets the mode of
    /// the file that it replaces, or `mode` if there is none, and also the owner if the process may
    /// set it. Fails if `target` exists and is not a regular file.
    fn create_at(path: PathBuf, target: PathBuf, mode: u32) -> io::Result<Self> {
        let replaced = match fs::metadata(&target) {
            Ok(found) if found.is_file() => Some(found),
            Ok(_) => {
                return Err(io::Error::other("expected a file to replace, found another kind"));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        options.mode(replaced.as_ref().map_or(mode, |replaced| replaced.mode() & 0o700));
        let file = options.open(&path)?;
        // The lock is held until the file is closed, and shows that the file is in use. On a
        // filesystem without locks, no file is removed as a leftover.
        let _ = file.lock();
        if !is_at(&file, &path) {
            // Another process removed it as a leftover before it was locked.
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let sync_folder = File::sync_all;
        let created = Self { target, path, file, is_published: false, sync_folder };
        if let Some(replaced) = replaced {
            let owner = (Some(replaced.uid()), Some(replaced.gid()));
            // Only the super-user may change the owner; members of a group may set the group.
            let _ = fchown(&created.file, owner.0, owner.1)
                .or_else(|_| fchown(&created.file, None, owner.1));
            created.file.set_permissions(replaced.permissions())?;
        }
        Ok(created)
    }

    /// Renames the file to its target, durably. If the file is renamed but a power failure may undo
    /// that, the error reports it.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        // Opened before the rename: if this fails, nothing is published.
        let folder = File::open(folder_of(&self.target))?;
        fs::rename(&self.path, &self.target).map_err(|error| {
            let (path, target) = (self.path.display(), self.target.display());
            io::Error::new(error.kind(), format!("rename {path} to {target}: {error}"))
        })?;
        self.is_published = true;
        (self.sync_folder)(&folder).map_err(|error| {
            let state = "published, but may not survive a power failure";
            io::Error::new(error.kind(), format!("{state}: sync its folder: {error}"))
        })
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Follows symbolic links, also to a file that does not exist yet.
fn resolve_links(mut path: PathBuf) -> io::Result<PathBuf> {
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = folder_of(&path).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_published {
            // The file may have been removed already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes temporary files of a target that killed processes left. Running processes lock theirs.
fn remove_leftovers(target: &Path) {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(entries) = folder_of(target).read_dir() else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let rest = found.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix(PARTIAL));
        let is_number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && rest.is_some_and(is_number) {
            let path = entry.path();
            let file = File::open(&path);
            if file.is_ok_and(|file| file.try_lock().is_ok() && is_at(&file, &path)) {
                // If it cannot be removed, the next process tries again.
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// Returns whether a path refers to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: fs::Metadata| (found.dev(), found.ino());
    let (open, named) = (file.metadata().map(number), fs::symlink_metadata(path).map(number));
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn write(target: &Path) -> io::Result<()> {
        let mut file = AtomicFile::create(target.to_owned())?;
        file.write_all(b"new")?;
        file.publish()
    }

    #[test]
    fn a_leftover_of_a_killed_process_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        let left = folder.path().join(format!("file.partial-{}", std::process::id()));
        fs::write(&left, b"left over, and longer").expect("a file");
        write(&target).expect("room");
        assert_eq!(fs::read(&target).expect("the file"), b"new");
        assert!(!left.exists());
    }

    #[test]
    fn leftovers_are_removed_and_files_that_are_being_written_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        let leftover = folder.path().join("file.partial-999999999");
        fs::write(&leftover, b"left over").expect("a file");
        let other_files = ["file.partial-", "file.partial-1x", "other.partial-1", "file"];
        let other_files = other_files.map(|name| folder.path().join(name));
        for other in &other_files[1..] {
            fs::write(other, b"of another program").expect("a file");
        }
        let mut first = AtomicFile::create(target.clone()).expect("a file");
        assert!(!leftover.exists());
        let mut second = AtomicFile::create(target.clone()).expect("a second file");
        assert_ne!(first.path, second.path);
        first.write_all(b"first").expect("room");
        second.write_all(b"second").expect("room");
        second.publish().expect("room");
        first.publish().expect("it was not removed");
        assert_eq!(fs::read(&target).expect("the file"), b"first");
        assert!(other_files[1..].iter().all(|other| other.exists()));
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        fs::write(&target, b"old").expect("a file");
        for mode in [0o600, 0o444, 0o777] {
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).expect("a mode");
            write(&target).expect("room");
            let found = fs::metadata(&target).expect("the file").permissions().mode();
            assert_eq!(found & 0o7777, mode, "{found:o}");
        }
    }

    #[test]
    fn a_symbolic_link_is_kept_and_its_target_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink("target", &link).expect("a link");
        for _ in 0..2 {
            write(&link).expect("room");
            assert!(link.symlink_metadata().expect("the link").is_symlink());
            assert_eq!(fs::read(&target).expect("the file"), b"new");
        }
        assert!(write(Path::new("/dev/null")).is_err(), "a device");
    }

    #[test]
    fn a_failed_sync_of_the_folder_says_that_the_file_is_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        let mut file = AtomicFile::create(target.clone()).expect("a file");
        file.sync_folder = |_| Err(io::Error::from_raw_os_error(5));
        let error = file.publish().expect_err("a failed sync").to_string();
        assert!(error.starts_with("published, but may not survive a power failure: "), "{error}");
        assert!(target.exists());
    }

    #[test]
    fn a_failed_rename_names_both_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        let file = AtomicFile::create(target.clone()).expect("a file");
        let path = file.path.clone();
        fs::create_dir(&target).expect("a folder at the target");
        let error = file.publish().expect_err("a folder").to_string();
        let both = format!("rename {} to {}: ", path.display(), target.display());
        assert!(error.starts_with(&both), "{error}");
        assert!(!path.exists(), "nothing is left");
    }

    #[test]
    fn a_dropped_file_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        fs::write(&target, b"old").expect("a file");
        let mut file = AtomicFile::create(target.clone()).expect("a file");
        file.write_all(b"new").expect("room");
        drop(file);
        assert_eq!(fs::read(&target).expect("the file"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
