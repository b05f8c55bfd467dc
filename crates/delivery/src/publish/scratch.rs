//! A temporary folder beside a file, and the removal of those that killed publishers left behind.

use crate::error::{Error, Result};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// The prefix of the names of temporary folders.
const PREFIX: &str = ".nuthatch-delta-";
/// The file in a temporary folder that is locked while the folder is in use.
const LOCK: &str = "lock";
/// Age from which a folder without a lock is removed with its files.
const MAX_AGE: Duration = Duration::from_hours(24);

/// A temporary folder that only its owner can open, as the snapshot may be private. Dropping it
/// removes it.
pub(super) struct ScratchFolder {
    folder: TempDir,
    _lock: File,
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // `TempDir` removes the rest.
        remove_all_but_lock(self.folder.path());
    }
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
pub(super) fn remove_leftovers(beside: &Path, now: SystemTime) {
    remove_leftovers_in(parent(beside), now);
    remove_leftovers_in(&std::env::temp_dir(), now);
}

fn remove_leftovers_in(folder: &Path, now: SystemTime) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            continue;
        }
        let path = entry.path();
        match File::open(path.join(LOCK)) {
            Ok(lock) if lock.try_lock().is_ok() => {
                remove_all_but_lock(&path);
                let _ = fs::remove_dir_all(&path);
            }
            Ok(_) => {}
            // An earlier version removed the lock first, and can have been killed then.
            Err(_) if is_old(&path, now) => {
                let _ = fs::remove_dir_all(&path);
            }
            // The process was killed before it had the lock. Fails if the folder has files.
            Err(_) => {
                let _ = fs::remove_dir(&path);
            }
        }
    }
}

/// Removes the files of a temporary folder but the lock, without which the folder would not be
/// removed later if this process is killed meanwhile.
fn remove_all_but_lock(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name() != LOCK {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns whether nothing was created in a folder or removed from it for a long time.
fn is_old(folder: &Path, now: SystemTime) -> bool {
    let changed = fs::symlink_metadata(folder).and_then(|found| found.modified());
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > MAX_AGE))
}

#[cfg(test)]
mod tests {
    use super::{MAX_AGE, PREFIX, ScratchFolder, remove_all_but_lock, remove_leftovers_in};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

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
        let now = fs::metadata(&left).and_then(|found| found.modified()).expect("a time");
        remove_leftovers_in(place.path(), now);
        let other = ScratchFolder::create(&file).expect("a folder");
        let mode = fs::metadata(other.path()).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(in_use.path().exists() && other.path().exists());
        assert!(!left.exists() && !empty.exists());
        let path = other.path().to_owned();
        drop(other);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_whose_removal_was_killed_is_removed_later() {
        let place = tempfile::tempdir().expect("a folder");
        let killed = place.path().join(format!("{PREFIX}killed"));
        let without_lock = place.path().join(format!("{PREFIX}without-lock"));
        for folder in [&killed, &without_lock] {
            fs::create_dir(folder).expect("a folder");
            fs::write(folder.join("old"), "").expect("a file");
        }
        fs::write(killed.join("lock"), "").expect("a file");
        remove_all_but_lock(&killed);
        assert!(killed.join("lock").exists() && !killed.join("old").exists());
        let changed = fs::metadata(&without_lock).and_then(|found| found.modified());
        let changed = changed.expect("a time");
        remove_leftovers_in(place.path(), changed + MAX_AGE);
        assert!(!killed.exists() && without_lock.exists());
        remove_leftovers_in(place.path(), changed + MAX_AGE + Duration::from_secs(1));
        assert!(!without_lock.exists());
    }
}
