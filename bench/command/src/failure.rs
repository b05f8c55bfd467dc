//! Why a measurement failed.

use std::fmt::Display;
use std::io::{self, ErrorKind};

/// Why a measurement failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error, with its message.
    Error(String),
    /// The reader of standard output closed it.
    ClosedPipe,
}

impl Failure {
    /// Returns a failure with the message of an error.
    pub(crate) fn of(error: impl Display) -> Self {
        Self::Error(error.to_string())
    }
}

/// Errors of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Error(format!("<stdout>: write: {error}")),
        }
    }
}
