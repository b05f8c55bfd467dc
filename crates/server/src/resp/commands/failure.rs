//! Errors of RESP commands.

use crate::state::{Denied, ValueLimit};
use std::borrow::Cow;

/// The result of a command.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The text of the error reply, with its code first. Clients match on it, so it is that of
    /// Redis.
    Answer(Cow<'static, str>),
    /// No memory is available under this guard. There may be some after it is renewed.
    Full,
}

impl Failure {
    /// Creates a failure with this text, its code first.
    pub const fn answer(text: &'static str) -> Self {
        Self::Answer(Cow::Borrowed(text))
    }
}

/// An option is unknown or excluded by another one.
pub(crate) const SYNTAX: Failure = Failure::answer("ERR syntax error");
/// An argument is not an integer of 64 bits.
pub(crate) const NOT_AN_INTEGER: Failure =
    Failure::answer("ERR value is not an integer or out of range");

/// An argument is not a floating-point number.
pub(crate) const NOT_A_FLOAT: Failure = Failure::answer("ERR value is not a valid float");

/// Returns the error for a value that is longer than this limit allows.
#[cold]
pub(crate) fn value_too_long(limit: ValueLimit) -> Failure {
    Failure::Answer(format!("ERR string exceeds maximum allowed size ({limit})").into())
}

/// A reply would exceed [`Server::max_reply_len`](crate::state::Server::max_reply_len).
pub(crate) const ANSWER_TOO_LONG: Failure =
    Failure::answer("ERR the answer is longer than there is memory for");

impl From<nuthatch_cache::Error> for Failure {
    fn from(error: nuthatch_cache::Error) -> Self {
        match error {
            nuthatch_cache::Error::Full => Self::Full,
            nuthatch_cache::Error::TooLong { what: "value", max, .. } => {
                value_too_long(ValueLimit::of_cache(max))
            }
            other => Self::Answer(format!("ERR {other}").into()),
        }
    }
}

/// Returns the error for a command that is denied.
pub(crate) fn failure_of(denied: Denied, name: &str) -> Failure {
    match denied {
        Denied::All => Failure::answer("NOAUTH Authentication required."),
        Denied::Command => {
            let text = "NOPERM this user has no permissions to run the";
            Failure::Answer(format!("{text} '{name}' command").into())
        }
        Denied::Key => Failure::answer(
            "NOPERM this user has no permissions to access one of the keys used as arguments",
        ),
    }
}
