//! Why a request has no proper answer.

use crate::memcache::Error;

/// What a request comes to.
pub(crate) type Result<T = ()> = std::result::Result<T, Refusal>;

/// Why a request has no proper answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This is the answer.
    Answer(Error),
    /// There is no room in this turn. In another one there may be.
    Full,
}

/// There is no room for what would be made of another value, not even in another turn.
pub(crate) const NO_ROOM: Refusal = Refusal::Answer(Error::OutOfMemory);

impl From<nuthatch_cache::Error> for Refusal {
    fn from(error: nuthatch_cache::Error) -> Self {
        match error {
            nuthatch_cache::Error::Full => Self::Full,
            nuthatch_cache::Error::TooLong { .. } => Self::Answer(Error::TooLarge),
            _ => Self::Answer(Error::OutOfMemory),
        }
    }
}
