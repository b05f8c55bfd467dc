//! What a decoder finds.

use super::Inline;

/// What the bytes begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request, whose arguments were appended.
    Request {
        /// The bytes it takes up.
        consumed: usize,
    },
    /// A request as a person types it.
    Inline {
        /// The bytes it takes up.
        consumed: usize,
        /// Its arguments, of which there is at least one.
        line: Box<Inline>,
    },
    /// A request without arguments, which gets no answer.
    Empty {
        /// The bytes it takes up.
        consumed: usize,
    },
    /// A part of a request.
    More {
        /// At least this many bytes are missing: what the client announced, not a size to
        /// allocate before it arrives.
        needed: usize,
    },
}
