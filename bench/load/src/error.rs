//! What can go wrong.

use crate::address::Address;
use crate::replies::Unexpected;
use std::fmt;
use std::io;

/// Why a run failed.
#[derive(Debug)]
pub enum Error {
    /// A connection could not be made.
    Connect {
        /// Which one, counted from zero.
        connection: usize,
        /// Where to.
        address: Address,
        /// The cause.
        source: io::Error,
    },
    /// Something went wrong on a connection that was there.
    Connection {
        /// Which one, counted from zero.
        connection: usize,
        /// Where to.
        address: Address,
        /// What happened.
        what: String,
    },
    /// The work cannot be done as it was asked for.
    Usage(String),
    /// The run was told to stop.
    Interrupted,
    /// Anything else that the system refused.
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

/// What a connection met, before its address is added.
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
