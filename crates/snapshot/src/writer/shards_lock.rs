//! The lock of the shards in a folder: builds of sets share it while they rely on shards that no
//! manifest refers to yet, and shards are removed only while no build has it.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of the lock file. The last process that has the lock removes it.
const NAME: &str = ".nuthatch-shards.lock";

/// A lock of the shards in a folder. The system releases it when the process ends, also after a
/// crash.
#[derive(Debug)]
pub(super) struct ShardsLock {
    file: File,
    path: PathBuf,
    is_exclusive: bool,
}

/// Whether shards in a folder can be removed.
#[derive(Debug)]
pub(super) enum Removal {
    /// No build of a set runs there, and none begins before the lock is dropped.
    Exclusive(#[expect(dead_code, reason = "held until the shards are removed")] ShardsLock),
    /// A build runs, another process removes shards, or the lock failed, so that there may be one.
    Busy,
    /// The folder has no locks: it is on a file system without them, or the lock file cannot be
    /// created.
    Unknown,
}

impl ShardsLock {
    /// Waits until no process removes shards, and takes the lock with other builds. Returns `None`
    /// if the folder has no locks.
    pub(super) fn share(folder: &Path) -> Option<Self> {
        loop {
            let (file, path) = open(folder).ok()?;
            match file.lock_shared() {
                Ok(()) if is_linked(&file, &path) => {
                    return Some(Self { file, path, is_exclusive: false });
                }
                // The process that had the lock has removed the file.
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Takes the exclusive lock, if no other process has the lock.
    pub(super) fn try_exclusive(folder: &Path) -> Removal {
        loop {
            let Ok((file, path)) = open(folder) else {
                // A process that can open the file may have the lock.
                let exists = fs::symlink_metadata(folder.join(NAME)).is_ok();
                return if exists { Removal::Busy } else { Removal::Unknown };
            };
            match file.try_lock() {
                Err(error) => return without_lock(&error),
                Ok(()) if is_linked(&file, &path) => {
                    return Removal::Exclusive(Self { file, path, is_exclusive: true });
                }
                Ok(()) => {}
            }
        }
    }
}

impl Drop for ShardsLock {
    fn drop(&mut self) {
        // Removed only by a process that has the exclusive lock: others could take the lock of a
        // new file.
        if self.is_exclusive || self.file.try_lock().is_ok() {
            let _ = fs::remove_file(&self.path);
        }
        // A child process that was just forked has the file open, too, until it runs its program.
        let _ = self.file.unlock();
    }
}

/// Returns whether shards can be removed after an attempt to take the exclusive lock failed.
fn without_lock(error: &TryLockError) -> Removal {
    match error {
        TryLockError::Error(error) if error.kind() == io::ErrorKind::Unsupported => {
            Removal::Unknown
        }
        TryLockError::WouldBlock | TryLockError::Error(_) => Removal::Busy,
    }
}

/// Opens the lock file for writing, since NFS locks no other file exclusively, or else for reading:
/// other users must be able to lock it, too.
fn open(folder: &Path) -> io::Result<(File, PathBuf)> {
    let path = folder.join(NAME);
    if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
        // To open a named pipe would wait for its other end.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o644);
    match options.open(&path) {
        Ok(file) => {
            // The umask may have made it private. Fails for the file of another user, who did this.
            let _ = file.set_permissions(Permissions::from_mode(0o644));
            Ok((file, path))
        }
        Err(error) => Ok((File::open(&path).map_err(|_| error)?, path)),
    }
}

/// Returns whether the file at a path is this one.
fn is_linked(file: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let (here, there) = (file.metadata().map(identity), fs::metadata(path).map(identity));
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

#[cfg(test)]
mod tests {
    use super::{NAME, Removal, ShardsLock, open, without_lock};
    use std::fs::{self, Permissions, TryLockError};
    use std::io;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn shards_are_removed_only_while_no_build_shares_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path();
        let (first, second) = (ShardsLock::share(place), ShardsLock::share(place));
        assert!(first.is_some() && second.is_some());
        drop(first);
        assert!(matches!(ShardsLock::try_exclusive(place), Removal::Busy));
        drop(second);
        let exclusive = ShardsLock::try_exclusive(place);
        assert!(matches!(exclusive, Removal::Exclusive(_)));
        assert!(matches!(ShardsLock::try_exclusive(place), Removal::Busy));
        // A build that begins meanwhile waits, and then locks another file.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ShardsLock::share(place).is_some());
            drop(exclusive);
            assert!(waiting.join().expect("no panic"));
        });
        assert_eq!(fs::read_dir(place).expect("a folder").count(), 0);
    }

    #[test]
    fn only_an_error_which_says_that_there_are_no_locks_permits_to_remove_shards() {
        let of = |number| TryLockError::Error(io::Error::from_raw_os_error(number));
        // ENOSYS and EOPNOTSUPP, then EINTR, EBADF (NFS: a file that is not open for writing),
        // ENOLCK, ESTALE and EIO.
        assert!([38, 95].map(of).iter().all(|it| matches!(without_lock(it), Removal::Unknown)));
        assert!(
            [4, 9, 37, 116, 5]
                .map(of)
                .iter()
                .all(|it| { matches!(without_lock(it), Removal::Busy) })
        );
        assert!(matches!(without_lock(&TryLockError::WouldBlock), Removal::Busy));
    }

    #[test]
    fn the_lock_file_is_opened_for_writing_and_one_that_cannot_be_opened_counts_as_locked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        fs::write(&path, "").expect("a lock file of another build");
        let (file, _) = open(folder.path()).expect("opened");
        file.set_len(1).expect("it is open for writing");
        fs::remove_file(&path).expect("removed");
        symlink(NAME, &path).expect("a link to itself");
        assert!(matches!(ShardsLock::try_exclusive(folder.path()), Removal::Busy));
        let missing = folder.path().join("missing");
        assert!(matches!(ShardsLock::try_exclusive(&missing), Removal::Unknown));
    }

    #[test]
    fn a_lock_file_is_a_file_that_other_users_can_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        fs::write(&path, "").expect("a lock file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("as by a umask of 077");
        open(folder.path()).expect("opened");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        fs::remove_file(&path).expect("removed");
        // Opening it would wait for a writer.
        let created = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(created.success());
        assert!(ShardsLock::share(folder.path()).is_none());
        let elsewhere = folder.path().join("elsewhere");
        fs::remove_file(&path).expect("removed");
        symlink(&elsewhere, &path).expect("a link to a missing file");
        assert!(ShardsLock::share(folder.path()).is_none() && !elsewhere.exists());
    }
}
