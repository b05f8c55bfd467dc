//! Standard output, which may be a pipe that its reader closes early.

use crate::commands::Failure;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};

/// Standard output with a buffer.
pub(crate) struct Stdout(BufWriter<StdoutLock<'static>>);

impl Stdout {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    /// Whether a person looks at the output.
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.get_ref().is_terminal()
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(failure)
    }

    /// Writes what the buffer holds. Without it a full disk would go unnoticed.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(failure)
    }
}

fn failure(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Error(format!("<stdout>: write: {error}")),
    }
}
