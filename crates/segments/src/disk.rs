//! Writes and free space of the disk. Tests replace it to simulate failures.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The disk that holds a folder. It writes records and reports free space and the filesystem.
pub trait Disk: Send + Sync {
    /// Writes `head` and `data`, one after the other, from `offset` on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not write all bytes.
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()>;

    /// Returns the bytes of the filesystem that are free for this user.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64>;

    /// Returns the name of the network filesystem that holds a folder, such as `nfs`, or `None` if
    /// the folder is on a local one.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not know, for example because the folder was removed.
    fn network_filesystem(&self, folder: &Path) -> io::Result<Option<&'static str>> {
        nuthatch_filesystem::network_filesystem(folder)
    }
}

/// The disk of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

/// Maximum length of head and data together to copy them into one buffer, which saves a system
/// call.
const MAX_CONCATENATED: usize = 16 << 10;

impl Disk for SystemDisk {
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
        if head.len() + data.len() <= MAX_CONCATENATED {
            return file.write_all_at(&[head, data].concat(), offset);
        }
        let slices = [io::IoSlice::new(head), io::IoSlice::new(data)];
        let written = rustix::io::pwritev(file, &slices, offset)?;
        if written < head.len() {
            file.write_all_at(&head[written..], offset + written as u64)?;
        }
        let start = written.saturating_sub(head.len());
        file.write_all_at(&data[start..], offset + (head.len() + start) as u64)
    }

    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64> {
        let system = rustix::fs::fstatvfs(folder)?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }
}
