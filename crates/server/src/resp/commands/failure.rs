//! Why a command has no proper answer.

use crate::state::{Denied, ValueLimit};
use std::borrow::Cow;

/// What a command comes to.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// Why a command has no proper answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This text is the answer, its code first. Clients match on it: it is what Redis says.
    Answer(Cow<'static, str>),
    /// There is no room in this turn. In another one there may be.
    Full,
}

impl Failure {
    /// An answer, its code first.
    pub const fn answer(text: &'static str) -> Self {
        Self::Answer(Cow::Borrowed(text))
    }
}

/// An option is not one, or stands beside another that it excludes.
pub(crate) const SYNTAX: Failure = Failure::answer("ERR syntax error");
/// An argument should be a number, and is not, or not one of 64 bits.
pub(crate) const NOT_AN_INTEGER: Failure =
    Failure::answer("ERR value is not an integer or out of range");

/// An argument should be a number with a fraction, and is not.
pub(crate) const NOT_A_FLOAT: Failure = Failure::answer("ERR value is not a valid float");

/// Returns the error for a value that is longer than this limit allows.
#[cold]
pub(crate) fn value_too_long(limit: ValueLimit) -> Failure {
    Failure::Answer(format!("ERR string exceeds maximum allowed size ({limit})").into())
}

/// An answer would be longer than [`Server::max_reply_len`](crate::state::Server::max_reply_len).
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

/// The answer to a command that is denied.
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
