//! Standard output and standard error, either of which may be a pipe whose reader goes away.

use crate::outcome::Failure;
use std::fmt::Display;
use std::fs::File;
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
        self.0.write_all(bytes).map_err(|e| failure(&e))
    }

    /// Writes the rest of a file.
    pub(crate) fn put_file(&mut self, mut file: File) -> Result<(), Failure> {
        io::copy(&mut file, &mut self.0).map(|_| ()).map_err(|e| failure(&e))
    }

    /// Writes what the buffer holds. Without it a full disk would go unnoticed.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(|e| failure(&e))
    }
}

/// Prints the summary of a change that was made. If it cannot be printed, the error contains it.
pub(crate) fn report(text: &str) -> Result<(), Failure> {
    report_as("the change was made", text)
}

/// Prints the result of a check. If it cannot be printed, the error contains it.
pub(crate) fn report_result(text: &str) -> Result<(), Failure> {
    report_as("the result is", text)
}

fn report_as(what: &str, text: &str) -> Result<(), Failure> {
    print(text).map_err(|failure| match failure {
        Failure::Error(error) => {
            let summary = text.trim_end().replace('\n', "; ");
            Failure::Error(format!("{error}; {what}: {summary}"))
        }
        failure => failure,
    })
}

/// Prints the whole output of a command.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = Stdout::new();
    stdout.put(text.as_bytes())?;
    stdout.flush()
}

/// Writes a message to standard error. Where nobody reads it, nothing is lost.
pub(crate) fn tell(message: impl Display) {
    let _ = writeln!(io::stderr().lock(), "nuthatch: {message}");
}

/// Writes whole lines to standard error.
pub(crate) fn tell_lines(lines: &str) {
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Error(format!("<stdout>: write: {error}")),
    }
}
