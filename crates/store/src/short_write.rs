//! Finds out why a write to the file of a store ended early.
//!
//! LMDB reports a write that the system did only in part as an input/output error. Such a write is
//! the last one that a full disk, a quota or a limit on the length of files lets through.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;

/// Returns the reason why the file cannot become longer, if it cannot and LMDB reported an
/// input/output error; otherwise the error as it is.
///
/// Writes nothing: a write could meet one of another process. It asks for space for one more page,
/// which stays the file's if there is some.
#[cold]
pub(crate) fn reason(error: io::Error, file: &File, page_size: u32) -> io::Error {
    if error.raw_os_error() != Some(libc::EIO) {
        return error;
    }
    let Ok(len) = file.metadata().map(|found| found.len()) else { return error };
    let limit = getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| len.saturating_add(page_size.into()) > limit) {
        return Errno::FBIG.into();
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, len, page_size.into()) {
        Err(reason @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => reason.into(),
        // The disk failed, there is space by now, or the file system does not say.
        _ => error,
    }
}
