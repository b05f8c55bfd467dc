//! Errors of RESP commands.

use crate::state::{Denied, ReadError, ValueLimit};
use std::borrow::Cow;

/// The result of a command.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The text of the error reply, which begins with its code. Clients match on it, so it is that
    /// of Redis if Redis has the error.
    Reply(Cow<'static, str>),
    /// There is no memory under this guard. Renewing the guard may free some.
    Full,
}

impl Failure {
    /// Creates a failure with this text, which begins with the code of the error.
    pub const fn reply(text: &'static str) -> Self {
        Self::Reply(Cow::Borrowed(text))
    }
}

/// The server is not a node of a cluster.
pub(crate) const CLUSTER_DISABLED: Failure =
    Failure::reply("ERR This instance has cluster support disabled");

/// An option is unknown or excluded by another one.
pub(crate) const SYNTAX: Failure = Failure::reply("ERR syntax error");
/// An argument is not an integer of 64 bits.
pub(crate) const NOT_AN_INTEGER: Failure =
    Failure::reply("ERR value is not an integer or out of range");

/// An argument is not a floating-point number.
pub(crate) const NOT_A_FLOAT: Failure = Failure::reply("ERR value is not a valid float");

/// Returns the error for a value that is longer than this limit allows.
#[cold]
pub(crate) fn value_too_long(limit: ValueLimit) -> Failure {
    Failure::Reply(format!("ERR string exceeds maximum allowed size ({limit})").into())
}

/// A reply would exceed [`Server::max_reply_len`](crate::state::Server::max_reply_len).
pub(crate) const REPLY_TOO_LONG: Failure =
    Failure::reply("ERR the reply is longer than the free memory for connections");

impl From<nuthatch_cache::Error> for Failure {
    fn from(error: nuthatch_cache::Error) -> Self {
        match error {
            nuthatch_cache::Error::Full | nuthatch_cache::Error::OnDisk => Self::Full,
            nuthatch_cache::Error::TooLong { what: "value", max, .. } => {
                value_too_long(ValueLimit::of_cache(max))
            }
            other => Self::Reply(format!("ERR {other}").into()),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooLong => REPLY_TOO_LONG,
            ReadError::Damaged(text) => Self::Reply(format!("ERR {text}").into()),
        }
    }
}

/// Returns the error for a command that is denied.
pub(crate) fn failure_of(denied: Denied, name: &str) -> Failure {
    match denied {
        Denied::All => Failure::reply("NOAUTH Authentication required."),
        Denied::Command => {
            let text = "NOPERM this user has no permissions to run the";
            Failure::Reply(format!("{text} '{name}' command").into())
        }
        Denied::Key => Failure::reply(
            "NOPERM this user has no permissions to access one of the keys used as arguments",
        ),
    }
}
