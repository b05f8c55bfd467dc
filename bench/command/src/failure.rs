//! The errors of a benchmark.

use std::fmt::Display;
use std::io::{self, ErrorKind};

/// The reason why a benchmark failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error message.
    Error(String),
    /// A check of the measured system failed.
    Check(String),
    /// The reader of standard output closed the pipe.
    ClosedPipe,
}

impl Failure {
    /// Returns a failure with the message of an error.
    pub(crate) fn of(error: impl Display) -> Self {
        Self::Error(error.to_string())
    }
}

/// Converts errors of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Error(format!("<stdout>: write: {error}")),
        }
    }
}
