//! Errors of memcached commands.

use crate::memcache::Error;
use crate::state::ReadError;

/// The result of a command.
pub(crate) type Result<T = ()> = std::result::Result<T, Refusal>;

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The error that the client gets.
    Reply(Error),
    /// No memory is available under this guard. There may be some after it is renewed.
    Full,
}

/// There is no memory for a value that is derived from another one.
pub(crate) const OUT_OF_MEMORY: Refusal = Refusal::Reply(Error::OutOfMemory);

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Self::Reply(match error {
            ReadError::TooLong => Error::ReplyTooLong,
            ReadError::Damaged(_) => Error::SnapshotDamaged,
        })
    }
}

impl From<nuthatch_cache::Error> for Refusal {
    fn from(error: nuthatch_cache::Error) -> Self {
        match error {
            nuthatch_cache::Error::Full | nuthatch_cache::Error::OnDisk => Self::Full,
            nuthatch_cache::Error::TooLong { .. } => Self::Reply(Error::TooLarge),
            _ => Self::Reply(Error::OutOfMemory),
        }
    }
}
