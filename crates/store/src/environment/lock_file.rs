//! The lock that each process has on a store that it uses. This file has unsafe code: a system call
//! locks one byte of a file.
//!
//! LMDB locks byte 0 of `lock.mdb`, and for each process that reads the byte of its process ID.
//! When LMDB opens a store read-only, it opens the data before it has those locks, so a compaction
//! could replace the file in between. Therefore this crate holds a shared lock on another byte from
//! before the data is opened until after it is closed. Compaction locks the whole file exclusively.
//!
//! The lock belongs to the open file description and not to the process: it persists when another
//! part of the process opens and closes the file, which drops the process's other locks on it.

use crate::environment::removed::check_linked;
use crate::error::{Error, Result};
use crate::file_names::LOCKS;
use crate::process::OfProcess;
use crate::process::registry::{FileId, Registration};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The offset of the shared byte. LMDB's locks are below the largest process ID.
const SHARED_BYTE: libc::off_t = 1 << 40;

/// A lock on a store, released when it is dropped.
pub(crate) struct StoreLock {
    file: OfProcess<File>,
    path: PathBuf,
}

impl StoreLock {
    /// Registers a store of this process and takes the shared lock. Waits while another process
    /// compacts the store.
    ///
    /// Takes no lock if the filesystem is read-only and has no lock file: no process can write to
    /// the store then.
    ///
    /// # Errors
    /// Returns `AlreadyOpen` if this process uses the store already.
    pub(crate) fn share(folder: &Path, read_only: bool) -> Result<(Registration, Option<Self>)> {
        let (registration, file) = open(folder, read_only)?;
        let path = folder.join(LOCKS);
        let Some(file) = file else { return Ok((registration, None)) };
        loop {
            match set_shared_byte(&file, libc::F_OFD_SETLKW, libc::F_RDLCK) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&path, "lock", error)),
            }
        }
        Ok((registration, Some(Self { file: OfProcess::new(file), path })))
    }

    /// Registers a store of this process and takes the exclusive lock, without waiting.
    ///
    /// # Errors
    /// Returns `AlreadyOpen` if this process uses the store, `InUse` if another one does.
    pub(crate) fn exclusive(folder: &Path) -> Result<(Registration, Self)> {
        let (registration, file) = open(folder, false)?;
        let path = folder.join(LOCKS);
        let file = file.ok_or_else(|| Error::io(&path, "lock", ErrorKind::NotFound.into()))?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok((registration, Self { file: OfProcess::new(file), path })),
            Err(Errno::AGAIN | Errno::ACCESS) => Err(Error::InUse(folder.to_owned())),
            Err(e) => Err(Error::io(&path, "lock", e.into())),
        }
    }
}

impl StoreLock {
    /// Returns an error if the file was removed or replaced: other processes would lock another
    /// file, and write at the same time.
    pub(crate) fn check_linked(&self) -> Result<()> {
        check_linked(&self.file, &self.path)
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        if self.file.is_own() {
            // A child made by `fork` has a copy of the descriptor, so closing this one would not
            // release the lock.
            let _ = set_shared_byte(&self.file, libc::F_OFD_SETLK, libc::F_UNLCK);
        }
    }
}

/// Registers a store and opens its lock file, which is created if it does not exist.
fn open(folder: &Path, read_only: bool) -> Result<(Registration, Option<File>)> {
    let path = folder.join(LOCKS);
    let error = |e| Error::io(&path, "open", e);
    let id = FileId::of(folder).map_err(|e| Error::io(folder, "open", e))?;
    let existing = match FileId::of(&path) {
        Ok(id) => Some(id),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(error(e)),
    };
    // Nothing is opened that this process has open: closing it again would drop its locks.
    let registration = Registration::new(folder, id, existing)?;
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = match options.open(&path) {
        Ok(file) => file,
        Err(e) if read_only && e.kind() == ErrorKind::ReadOnlyFilesystem => {
            match File::open(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok((registration, None)),
                Err(e) => return Err(error(e)),
            }
        }
        Err(e) => return Err(error(e)),
    };
    if existing.is_none() {
        let found = file.metadata().map_err(error)?;
        registration.add_locks(FileId::of_metadata(&found));
    }
    Ok((registration, Some(file)))
}

/// Locks or unlocks [`SHARED_BYTE`] for this open file.
fn set_shared_byte(file: &File, command: i32, kind: i32) -> io::Result<()> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: SHARED_BYTE,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the call only reads `lock`.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const lock) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
