//! Locks on bytes of files (open file description locks). They are taken without waiting.
//!
//! Three bytes of a segment are locked: see [`Byte`]. Bytes of the file `claims` are fetch locks.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A byte of a segment that processes lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Byte {
    /// Exclusive: the process that appends, until the last record of its puts is in the index.
    Writer = 0,
    /// Shared: processes with views. Exclusive: the process that frees the bytes.
    View = 1,
    /// Exclusive: the process that reclaims the segment or enters its parts into the index.
    Scan = 2,
}

/// What to do with a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LockMode {
    Shared,
    Exclusive,
    Unlock,
}

/// Takes or releases the lock on a byte of a segment without waiting. Returns false if another open
/// file has it. The lock belongs to the open file description, not to the process.
///
/// # Errors
///
/// Returns the error of the system.
pub(crate) fn lock_byte(file: &File, byte: Byte, mode: LockMode) -> io::Result<bool> {
    lock_bytes(file, byte as u64, 1, mode)
}

/// Returns whether no other open file has a lock on a byte of a segment. Returns false if the
/// system call fails.
pub(crate) fn is_unlocked(file: &File, byte: Byte) -> bool {
    let Ok(mut lock) = flock_for(byte as u64, 1, LockMode::Exclusive) else { return false };
    // SAFETY: the descriptor is open as long as `file` is borrowed, and `lock` is valid.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    status == 0 && lock.l_type == libc::F_UNLCK as libc::c_short
}

/// Does the same as [`lock_byte`] for `len` bytes from `start` on. The file may be shorter.
///
/// # Errors
///
/// Returns the error of the system.
pub(crate) fn lock_bytes(file: &File, start: u64, len: u64, mode: LockMode) -> io::Result<bool> {
    let lock = flock_for(start, len, mode)?;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the call only reads `lock`.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if status == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

/// Returns the argument of the system call for a range of bytes.
///
/// # Errors
///
/// Returns an error if the range does not fit into a file offset.
fn flock_for(start: u64, len: u64, mode: LockMode) -> io::Result<libc::flock> {
    let kind = match mode {
        LockMode::Shared => libc::F_RDLCK,
        LockMode::Exclusive => libc::F_WRLCK,
        LockMode::Unlock => libc::F_UNLCK,
    };
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: libc::off_t::try_from(start).map_err(io::Error::other)?,
        l_len: libc::off_t::try_from(len).map_err(io::Error::other)?,
        l_pid: 0,
    })
}
