//! Standard output and standard error. Either can be a pipe whose reader closes it.

use crate::outcome::Failure;
use nuthatch_terminal::print_message;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};

/// Buffered standard output.
pub(crate) struct Stdout(BufWriter<StdoutLock<'static>>);

impl Stdout {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    /// Returns whether the output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.get_ref().is_terminal()
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(|e| failure(&e))
    }

    /// Copies the rest of a file to the output.
    pub(crate) fn write_file(&mut self, mut file: File) -> Result<(), Failure> {
        io::copy(&mut file, &mut self.0).map(|_| ()).map_err(|e| failure(&e))
    }

    /// Writes the content of the buffer. Without this call, the error of a full disk is lost.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(|e| failure(&e))
    }
}

/// Prints the summary of a change that was made. If it cannot be printed, the error contains it.
pub(crate) fn print_summary(text: &str) -> Result<(), Failure> {
    print_or_quote("the change was made", text)
}

/// Prints the result of a check. If it cannot be printed, the error contains it.
pub(crate) fn print_result(text: &str) -> Result<(), Failure> {
    print_or_quote("the result is", text)
}

fn print_or_quote(what: &str, text: &str) -> Result<(), Failure> {
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
    stdout.write(text.as_bytes())?;
    stdout.flush()
}

/// Writes the message of a failure to standard error, with what to do about the limit of open files
/// if that is the cause.
pub(crate) fn print_failure(message: &str) {
    print_message(format_args!("{message}{}", file_limit_advice(message)));
}

/// Returns what to do about the limit of open files if it is the cause of a failure, whichever
/// library or system call reports it, and the message does not say it already.
fn file_limit_advice(message: &str) -> String {
    let cause = std::io::Error::from(rustix::io::Errno::MFILE);
    let is_cause = message.contains(&cause.to_string()) && !message.contains("ulimit");
    let advice = nuthatch_filesystem::file_limit_advice(&cause).filter(|_| is_cause);
    advice.unwrap_or_default()
}

/// Writes whole lines to standard error, without the name of the program.
pub(crate) fn print_error_lines(lines: &str) {
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Error(format!("<stdout>: write: {error}")),
    }
}
