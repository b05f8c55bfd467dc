//! Files whose reads end when the job is interrupted.

use super::{Interruption, LOOK_INTERVAL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The paths of standard input.
const STDIN: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// An open file. A pipe may have no writer, or one that writes nothing: a read of it ends when the
/// job is interrupted.
#[derive(Debug)]
pub(crate) struct InterruptibleFile {
    file: File,
    is_regular: bool,
    interruption: Interruption,
}

impl InterruptibleFile {
    /// Opens a file for reading. A pipe without a writer is opened at once; the first read waits.
    ///
    /// # Errors
    ///
    /// Returns the error of open(2) or fstat(2).
    pub(crate) fn open(path: &Path, interruption: &Interruption) -> io::Result<Self> {
        #[expect(clippy::cast_possible_wrap, reason = "the flags of open(2) are small numbers")]
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = if STDIN.iter().any(|stdin| path == Path::new(stdin)) {
            // Opened again, a named pipe whose writer has ended would have no end.
            io::stdin().as_fd().try_clone_to_owned()?.into()
        } else {
            OpenOptions::new().read(true).custom_flags(flags).open(path)?
        };
        let is_regular = file.metadata()?.is_file();
        Ok(Self { file, is_regular, interruption: interruption.clone() })
    }

    /// Reads a whole file of text, such as a password.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or an error after an interruption.
    pub(crate) fn read_text(path: &Path, interruption: &Interruption) -> io::Result<String> {
        io::read_to_string(Self::open(path, interruption)?)
    }

    /// Returns the metadata of the open file.
    ///
    /// # Errors
    ///
    /// Returns the error of fstat(2).
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Returns the file if it is a regular one, whose reads never wait; else this one.
    pub(crate) fn into_regular(self) -> Result<File, Self> {
        if self.is_regular { Ok(self.file) } else { Err(self) }
    }

    /// Returns another handle of the same open file.
    ///
    /// # Errors
    ///
    /// Returns the error of dup(2).
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let Self { file, is_regular, interruption } = self;
        let interruption = interruption.clone();
        Ok(Self { file: file.try_clone()?, is_regular: *is_regular, interruption })
    }

    /// Waits until a read returns at once.
    fn wait(&self) -> io::Result<()> {
        let timeout = Timespec::try_from(LOOK_INTERVAL).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
        loop {
            self.interruption.check_io()?;
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for InterruptibleFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_regular {
            return self.file.read(buffer);
        }
        loop {
            self.wait()?;
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}
