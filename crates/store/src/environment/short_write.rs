//! Finds the reason why a write to the file of a store was incomplete.
//!
//! LMDB reports an incomplete write as an input/output error. Such a write is the last one that a
//! full disk, a quota or a limit on the file size permits.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;

/// Returns the reason why the file cannot grow, if LMDB reported an input/output error and the file
/// cannot grow; otherwise the error unchanged.
///
/// Writes nothing, since a write could collide with one of another process. Requests space for one
/// more page, which stays allocated if it is available.
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
        // The disk failed, there is space by now, or the filesystem does not support the request.
        _ => error,
    }
}
