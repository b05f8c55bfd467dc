//! All operations that change files, and reads of item files. Tests replace them to simulate
//! failures.

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The disk that holds a folder. Names are those of files in the folder.
pub trait Disk: Send + Sync {
    /// Creates a file of mode 0600 for reading and writing, and empties an existing one.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn create(&self, folder: &File, name: &str) -> io::Result<File>;

    /// Reserves space for `len` bytes. The file is `len` bytes long afterwards; the bytes are zero.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn allocate(&self, file: &File, name: &str, len: u64) -> io::Result<()>;

    /// Writes all bytes at an offset.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not write all bytes.
    fn write(&self, file: &File, name: &str, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Reads bytes at an offset. Returns fewer bytes than `bytes` has only at the end of the file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn read(&self, file: &File, name: &str, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Sets the length of a file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn set_len(&self, file: &File, name: &str, len: u64) -> io::Result<()>;

    /// Waits until the bytes and the length of a file are durable.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn sync(&self, file: &File, name: &str) -> io::Result<()>;

    /// Waits until the names of files in the folder are durable.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn sync_folder(&self, folder: &File) -> io::Result<()>;

    /// Renames a file and replaces the file of the new name.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn rename(&self, folder: &File, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    fn remove(&self, folder: &File, name: &str) -> io::Result<()>;
}

/// The disk of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn create(&self, folder: &File, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
        let safe = OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o600);
        let file = File::from(rustix::fs::openat(folder, name, flags | safe, mode)?);
        // The umask does not apply.
        rustix::fs::fchmod(&file, mode)?;
        Ok(file)
    }

    fn allocate(&self, file: &File, _: &str, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(len),
            result => Ok(result?),
        }
    }

    fn write(&self, file: &File, _: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        match file.write_all_at(bytes, offset) {
            // The device requires a larger alignment, or the system refuses direct I/O.
            Err(error) if is_invalid(&error) && disable_direct_io(file)? => {
                file.write_all_at(bytes, offset)
            }
            result => result,
        }
    }

    fn read(&self, file: &File, _: &str, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Also after the unaligned end of a file that was truncated.
                Err(error) if is_invalid(&error) && disable_direct_io(file)? => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn set_len(&self, file: &File, _: &str, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    fn sync(&self, file: &File, _: &str) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        folder.sync_all()
    }

    fn rename(&self, folder: &File, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(folder, from, folder, to)?)
    }

    fn remove(&self, folder: &File, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }
}

fn is_invalid(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INVAL)
}

/// Enables direct I/O for an open file. Returns false if the filesystem does not support it.
pub(crate) fn enable_direct_io(file: &File) -> bool {
    let flags = rustix::fs::fcntl_getfl(file);
    flags.is_ok_and(|flags| rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).is_ok())
}

/// Turns direct I/O off for an open file. Returns false if it was not enabled.
fn disable_direct_io(file: &File) -> io::Result<bool> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    if !flags.contains(OFlags::DIRECT) {
        return Ok(false);
    }
    rustix::fs::fcntl_setfl(file, flags - OFlags::DIRECT)?;
    Ok(true)
}
