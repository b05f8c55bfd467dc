//! Opens files of credentials and settings, which a running server reads again.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether pipes and terminals are refused.
static IS_SERVING: AtomicBool = AtomicBool::new(false);

/// Makes [`open_readable`] refuse pipes and terminals from now on. A server calls this after its
/// start: they have their text once, and a read could block a reload, and signals with it.
pub fn refuse_pipes() {
    IS_SERVING.store(true, Ordering::Relaxed);
}

/// Returns whether [`refuse_pipes`] was called.
#[must_use]
pub fn refuses_pipes() -> bool {
    IS_SERVING.load(Ordering::Relaxed)
}

/// Opens a file to read it as a whole.
///
/// # Errors
///
/// Fails with the error of the system, and after [`refuse_pipes`] if it is a pipe or a terminal.
pub fn open_readable(path: &Path) -> io::Result<File> {
    if !refuses_pipes() {
        return File::open(path);
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    // No flag of an open call has the highest bit.
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.file_type().is_fifo() || file.is_terminal() {
        return Err(refused_pipe());
    }
    Ok(file)
}

/// Returns the error for a pipe or a terminal that a running server must not read.
#[must_use]
pub fn refused_pipe() -> io::Error {
    io::Error::other(
        "it is a pipe or a terminal, which cannot be read again; replace it by a regular file, or \
         restart the server",
    )
}
