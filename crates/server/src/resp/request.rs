//! Results of the decoder.

use super::Inline;

/// What the next bytes contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request, whose arguments were appended.
    Request {
        /// The number of bytes.
        consumed: usize,
    },
    /// An inline request.
    Inline {
        /// The number of bytes.
        consumed: usize,
        /// Its arguments, at least one.
        line: Box<Inline>,
    },
    /// A request without arguments, which gets no reply.
    Empty {
        /// The number of bytes.
        consumed: usize,
    },
    /// An incomplete request.
    More {
        /// The minimum number of missing bytes. Do not allocate as many: the number comes from the
        /// client.
        needed: usize,
    },
}
