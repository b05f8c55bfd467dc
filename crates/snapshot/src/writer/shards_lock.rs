//! The lock of the shards in a folder: builds of sets share it while they rely on shards that no
//! manifest refers to yet, and shards are removed only while no build has it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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
    Alone(#[expect(dead_code, reason = "held until the shards are removed")] ShardsLock),
    /// A build runs, or another process removes shards.
    Busy,
    /// The folder has no locks: it is on a file system without them, or the lock file cannot be
    /// opened.
    Unknown,
}

impl ShardsLock {
    /// Waits until no process removes shards, and takes the lock with other builds. Returns `None`
    /// if the folder has no locks.
    pub(super) fn share(folder: &Path) -> Option<Self> {
        loop {
            let (file, path) = open(folder).ok()?;
            file.lock_shared().ok()?;
            if is_linked(&file, &path) {
                return Some(Self { file, path, is_exclusive: false });
            }
            // The process that had the lock has removed the file.
        }
    }

    /// Takes the lock alone, if no other process has it.
    pub(super) fn try_alone(folder: &Path) -> Removal {
        loop {
            let Ok((file, path)) = open(folder) else { return Removal::Unknown };
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Removal::Busy,
                Err(TryLockError::Error(_)) => return Removal::Unknown,
                Ok(()) if is_linked(&file, &path) => {
                    return Removal::Alone(Self { file, path, is_exclusive: true });
                }
                Ok(()) => {}
            }
        }
    }
}

impl Drop for ShardsLock {
    fn drop(&mut self) {
        // Removed only by a process that has it alone: others could take the lock of a new file.
        if self.is_exclusive || self.file.try_lock().is_ok() {
            let _ = fs::remove_file(&self.path);
        }
        // A child process that was just forked has the file open, too, until it runs its program.
        let _ = self.file.unlock();
    }
}

/// Opens the lock file. Other users must be able to open it, so that they can lock it, too.
fn open(folder: &Path) -> io::Result<(File, PathBuf)> {
    let path = folder.join(NAME);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .open(&path)?,
        opened => opened?,
    };
    Ok((file, path))
}

/// Returns whether the file at a path is this one.
fn is_linked(file: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let (here, there) = (file.metadata().map(identity), fs::metadata(path).map(identity));
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

#[cfg(test)]
mod tests {
    use super::{Removal, ShardsLock};

    #[test]
    fn shards_are_removed_only_while_no_build_shares_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path();
        let (first, second) = (ShardsLock::share(place), ShardsLock::share(place));
        assert!(first.is_some() && second.is_some());
        drop(first);
        assert!(matches!(ShardsLock::try_alone(place), Removal::Busy));
        drop(second);
        let alone = ShardsLock::try_alone(place);
        assert!(matches!(alone, Removal::Alone(_)));
        assert!(matches!(ShardsLock::try_alone(place), Removal::Busy));
        // A build that begins meanwhile waits, and then locks another file.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ShardsLock::share(place).is_some());
            drop(alone);
            assert!(waiting.join().expect("no panic"));
        });
        assert_eq!(std::fs::read_dir(place).expect("a folder").count(), 0);
    }
}
