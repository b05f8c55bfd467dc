//! The disk, as far as it may refuse or differ: tests put another one in its place.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What writes go through, and what knows the filesystem of the folder.
pub trait Disk: Send + Sync {
    /// Writes all of both slices, one after the other, from an offset on.
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()>;

    /// Bytes of the file system that are free for this user.
    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64>;

    /// Returns the name of the network filesystem that holds a folder, such as `nfs`, or `None` if
    /// the folder is on a local one.
    ///
    /// # Errors
    /// The system does not know, for example because the folder was removed.
    fn network_filesystem(&self, folder: &Path) -> io::Result<Option<&'static str>> {
        nuthatch_filesystem::network_filesystem(folder)
    }
}

/// The disk of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

/// Heads at most this long are copied before their data when both fit, to save a call.
const COPIED: usize = 16 << 10;

impl Disk for SystemDisk {
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
        if head.len() + data.len() <= COPIED {
            return file.write_all_at(&[head, data].concat(), offset);
        }
        let slices = [io::IoSlice::new(head), io::IoSlice::new(data)];
        let written = rustix::io::pwritev(file, &slices, offset)?;
        if written < head.len() {
            file.write_all_at(&head[written..], offset + written as u64)?;
        }
        let from = written.saturating_sub(head.len());
        file.write_all_at(&data[from..], offset + (head.len() + from) as u64)
    }

    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64> {
        let system = rustix::fs::fstatvfs(folder)?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }
}
