//! Locks on bytes of files, without waiting.
//!
//! Three on bytes of a segment: its writer has
//! the first as long as it may append, everybody who lends its bytes out shares the second, and
//! who goes through all of its records has the third. And those on bytes of a file that has none,
//! which stand for whatever its users agree on.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The bytes of a segment that locks are put on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Byte {
    /// Whoever appends has it alone, until the last record that is being put is in the index.
    Writer = 0,
    /// Whoever lends bytes out shares it; whoever frees the bytes has it alone.
    Lent = 1,
    /// Whoever reclaims the segment, or enters its parts into the index, has it alone.
    Work = 2,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Shared,
    Alone,
    None,
}

/// Takes a lock on a byte of a file, or gives it back, without waiting. False if somebody else
/// has it. The lock belongs to the open file, not to the process.
pub(crate) fn on_byte(file: &File, byte: Byte, mode: Mode) -> io::Result<bool> {
    on_bytes(file, byte as u64, 1, mode)
}

/// Returns whether nobody has the lock on a byte of a file, but for `file` itself.
pub(crate) fn is_free(file: &File, byte: Byte) -> bool {
    let Ok(mut lock) = flock_of(byte as u64, 1, Mode::Alone) else { return false };
    // SAFETY: the descriptor is open as long as `file` is borrowed, and `lock` is valid.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    status == 0 && lock.l_type == libc::F_UNLCK as libc::c_short
}

/// As [`on_byte`], for so many bytes from one on, whether the file has them or not.
pub(crate) fn on_bytes(file: &File, start: u64, len: u64, mode: Mode) -> io::Result<bool> {
    let lock = flock_of(start, len, mode)?;
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

/// Returns what the system takes for a lock on a range of bytes.
fn flock_of(start: u64, len: u64, mode: Mode) -> io::Result<libc::flock> {
    let kind = match mode {
        Mode::Shared => libc::F_RDLCK,
        Mode::Alone => libc::F_WRLCK,
        Mode::None => libc::F_UNLCK,
    };
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: libc::off_t::try_from(start).map_err(io::Error::other)?,
        l_len: libc::off_t::try_from(len).map_err(io::Error::other)?,
        l_pid: 0,
    })
}
