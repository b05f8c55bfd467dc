//! Disks that fail.

use nuthatch_tier::{Disk, SystemDisk};
use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the disk fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// From an operation on, nothing is done: the process died.
    Dies,
    /// One operation fails, with an error number.
    Once(i32),
}

/// A disk that counts its operations and fails at one of them. If that is a write, it writes a part
/// of the bytes.
pub(crate) struct FailingDisk {
    operations: AtomicU64,
    fails_at: u64,
    failure: Failure,
    /// Bytes that the failing write writes: this many 64ths of all bytes.
    part: usize,
    /// The name of the file of the failed operation.
    failed: Mutex<Option<String>>,
}

impl FailingDisk {
    pub(crate) fn new(fails_at: u64, failure: Failure, part: usize) -> Self {
        let (operations, failed) = (AtomicU64::new(0), Mutex::default());
        Self { operations, fails_at, failure, part, failed }
    }

    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> Option<String> {
        self.failed.lock().expect("no panic").clone()
    }

    /// Counts an operation. Returns the error of the one that fails.
    fn count(&self, name: &str) -> Result<(), (bool, io::Error)> {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        let is_first = number == self.fails_at;
        let errno = match self.failure {
            Failure::Dies if number >= self.fails_at => 5,
            Failure::Once(errno) if is_first => errno,
            _ => return Ok(()),
        };
        if is_first {
            *self.failed.lock().expect("no panic") = Some(name.to_owned());
        }
        Err((is_first, io::Error::from_raw_os_error(errno)))
    }

    fn check(&self, name: &str) -> io::Result<()> {
        self.count(name).map_err(|(_, error)| error)
    }
}

impl Disk for FailingDisk {
    fn create(&self, folder: &File, name: &str) -> io::Result<File> {
        self.check(name)?;
        SystemDisk.create(folder, name)
    }

    fn allocate(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        self.check(name)?;
        SystemDisk.allocate(file, name, len)
    }

    fn write(&self, file: &File, name: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.count(name) {
            Ok(()) => SystemDisk.write(file, name, bytes, offset),
            Err((is_first, error)) => {
                if is_first {
                    SystemDisk.write(file, name, &bytes[..bytes.len() * self.part / 64], offset)?;
                }
                Err(error)
            }
        }
    }

    fn read(&self, file: &File, name: &str, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        SystemDisk.read(file, name, bytes, offset)
    }

    fn set_len(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        self.check(name)?;
        SystemDisk.set_len(file, name, len)
    }

    fn sync(&self, file: &File, name: &str) -> io::Result<()> {
        self.check(name)?;
        SystemDisk.sync(file, name)
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        self.check("")?;
        SystemDisk.sync_folder(folder)
    }

    fn rename(&self, folder: &File, from: &str, to: &str) -> io::Result<()> {
        self.check(to)?;
        SystemDisk.rename(folder, from, to)
    }

    fn remove(&self, folder: &File, name: &str) -> io::Result<()> {
        self.check(name)?;
        SystemDisk.remove(folder, name)
    }
}

/// The operations that fail on a [`LogDisk`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum LogFailure {
    #[default]
    None,
    /// Writes of entries to files of the removal log, and their creation and growth.
    Entries,
    /// All writes to files of the removal log.
    Log,
    /// All writes to files of the removal log, and the removal of item files.
    LogAndNames,
}

/// A disk on which operations on the removal log fail.
#[derive(Default)]
pub(crate) struct LogDisk(Mutex<(LogFailure, i32)>);

impl LogDisk {
    pub(crate) fn fail(&self, failure: LogFailure, errno: i32) {
        *self.0.lock().expect("no panic") = (failure, errno);
    }

    fn check(&self, name: &str, is_mark: bool) -> io::Result<()> {
        let (failure, errno) = *self.0.lock().expect("no panic");
        let is_log = name.starts_with("removed");
        let fails = match failure {
            LogFailure::None => false,
            LogFailure::Entries => is_log && !is_mark,
            LogFailure::Log | LogFailure::LogAndNames => is_log,
        };
        if fails { Err(io::Error::from_raw_os_error(errno)) } else { Ok(()) }
    }
}

impl Disk for LogDisk {
    fn create(&self, folder: &File, name: &str) -> io::Result<File> {
        self.check(name, false)?;
        SystemDisk.create(folder, name)
    }

    fn allocate(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        self.check(name, false)?;
        SystemDisk.allocate(file, name, len)
    }

    fn write(&self, file: &File, name: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_mark = offset == 4096;
        if let Err(error) = self.check(name, is_mark) {
            if !is_mark {
                // A part is written, as if the disk was full in the middle.
                SystemDisk.write(file, name, &bytes[..bytes.len() / 2], offset)?;
            }
            return Err(error);
        }
        SystemDisk.write(file, name, bytes, offset)
    }

    fn read(&self, file: &File, name: &str, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        SystemDisk.read(file, name, bytes, offset)
    }

    fn set_len(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        SystemDisk.set_len(file, name, len)
    }

    fn sync(&self, file: &File, name: &str) -> io::Result<()> {
        SystemDisk.sync(file, name)
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        SystemDisk.sync_folder(folder)
    }

    fn rename(&self, folder: &File, from: &str, to: &str) -> io::Result<()> {
        SystemDisk.rename(folder, from, to)
    }

    fn remove(&self, folder: &File, name: &str) -> io::Result<()> {
        let (failure, errno) = *self.0.lock().expect("no panic");
        if matches!(failure, LogFailure::LogAndNames) && name.starts_with("items-") {
            return Err(io::Error::from_raw_os_error(errno));
        }
        SystemDisk.remove(folder, name)
    }
}
