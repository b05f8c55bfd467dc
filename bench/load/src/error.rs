//! Errors of a run.

use crate::address::Address;
use crate::replies::Unexpected;
use std::fmt;
use std::io;

/// The reason why a run failed.
#[derive(Debug)]
pub enum Error {
    /// Connecting to the server failed.
    Connect {
        /// The number of the connection, counted from zero.
        connection: usize,
        /// The address of the server.
        address: Address,
        /// The cause.
        source: io::Error,
    },
    /// An established connection failed.
    Connection {
        /// The number of the connection, counted from zero.
        connection: usize,
        /// The address of the server.
        address: Address,
        /// A description of the failure.
        what: String,
    },
    /// The settings are invalid.
    Usage(String),
    /// The user interrupted the run.
    Interrupted,
    /// Another system call failed.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { connection, address, source } => {
                write!(f, "{address}: connection {connection}: {source}")
            }
            Self::Connection { connection, address, what } => {
                write!(f, "{address}: connection {connection}: {what}")
            }
            Self::Usage(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// An error without the address of the server, which the caller adds.
#[derive(Debug)]
pub(crate) enum Trouble {
    Connection { connection: usize, what: String },
    Io(io::Error),
}

impl Trouble {
    pub(crate) fn unexpected(connection: usize, unexpected: &Unexpected) -> Self {
        Self::Connection { connection, what: unexpected.to_string() }
    }

    pub(crate) fn at(self, address: &Address) -> Error {
        match self {
            Self::Connection { connection, what } => {
                Error::Connection { connection, address: address.clone(), what }
            }
            Self::Io(error) => Error::Io(error),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
