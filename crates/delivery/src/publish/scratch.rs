//! A temporary folder beside a file, and the removal of those that killed publishers left behind.

use crate::error::{Error, Result};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// The prefix of the names of temporary folders.
const PREFIX: &str = ".nuthatch-delta-";
/// The file in a temporary folder that is locked while the folder is in use.
const LOCK: &str = "lock";

/// A temporary folder that only its owner can open, as the snapshot may be private. Dropping it
/// removes it.
pub(super) struct ScratchFolder {
    folder: TempDir,
    _lock: File,
}

impl ScratchFolder {
    /// Creates a folder beside a file, where there is room for files of its size, or else where the
    /// system has its temporary files.
    pub(super) fn create(beside: &Path) -> Result<Self> {
        let folder = parent(beside);
        Self::create_in(folder)
            .or_else(|_| Self::create_in(&std::env::temp_dir()))
            .map_err(|e| Error::io(folder, "create a temporary folder in", e))
    }

    fn create_in(folder: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
        let folder = builder.tempdir_in(folder)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.try_lock()?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Returns the folder of a file.
fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// Removes the temporary folders of killed processes beside a file, and where the system has its
/// temporary files. Ignores errors, because they do not interfere with a publication.
pub(super) fn remove_leftovers(beside: &Path) {
    remove_leftovers_in(parent(beside));
    remove_leftovers_in(&std::env::temp_dir());
}

fn remove_leftovers_in(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            continue;
        }
        let path = entry.path();
        match File::open(path.join(LOCK)) {
            Ok(lock) if lock.try_lock().is_ok() => {
                let _ = fs::remove_dir_all(&path);
            }
            Ok(_) => {}
            // The process was killed before it had the lock. Fails if the folder has files.
            Err(_) => {
                let _ = fs::remove_dir(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, ScratchFolder, remove_leftovers_in};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_of_killed_processes_are_removed_and_those_in_use_stay() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("users.nut");
        let in_use = ScratchFolder::create(&file).expect("a folder");
        let left = place.path().join(format!("{PREFIX}left"));
        let empty = place.path().join(format!("{PREFIX}empty"));
        for folder in [&left, &empty] {
            fs::create_dir(folder).expect("a folder");
        }
        for name in ["lock", "old"] {
            fs::write(left.join(name), "").expect("a file");
        }
        remove_leftovers_in(place.path());
        let other = ScratchFolder::create(&file).expect("a folder");
        let mode = fs::metadata(other.path()).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(in_use.path().exists() && other.path().exists());
        assert!(!left.exists() && !empty.exists());
        let path = other.path().to_owned();
        drop(other);
        assert!(!path.exists());
    }
}
