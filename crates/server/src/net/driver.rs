//! Between connections and commands: how the requests of each protocol are found in received
//! bytes, which keys they will look up, and who executes them.

use super::connection::Connection;
pub(crate) use super::decoders::{Decoders, Decodes};
use crate::full::Full;
use crate::span::Span;
use crate::state::{MemcachedState, Server};
use nuthatch_cache::Guard;

/// What a connection's bytes begin with.
pub(crate) enum Step<R> {
    /// A request, or a mistake that gets an answer as one does.
    Request {
        /// What to execute.
        request: R,
        /// The bytes it takes up.
        consumed: usize,
    },
    /// Bytes that need no answer.
    Skip {
        /// How many.
        consumed: usize,
    },
    /// A part of a request.
    More,
}

/// What a request is executed with.
pub(crate) struct Context<'a, T: Decoders> {
    pub(crate) guard: &'a Guard<'a>,
    pub(crate) connection: &'a mut Connection<T>,
    pub(crate) server: &'a Server,
    pub(crate) memcache: &'a MemcachedState,
    /// Where the arguments of all requests of the batch lie, each in its own.
    pub(crate) spans: &'a [Span],
}

/// One protocol: from received bytes to answers.
///
/// Each has its own batches, so that what is most frequent pays for nothing that another protocol
/// needs.
pub(crate) trait Driver<T: Decoders> {
    /// A request that was found, in the bytes that it came in.
    type Request<'b>;

    /// Finds what `bytes` begin with, which is not empty.
    fn next<'b>(
        connection: &mut Connection<T>,
        bytes: &'b [u8],
        spans: &mut Vec<Span>,
    ) -> Step<Self::Request<'b>>;

    /// Hands each key that a request looks up to `each`, as long as that answers true.
    fn keys(request: &Self::Request<'_>, spans: &[Span], each: impl FnMut(&[u8]) -> bool);

    /// Whether it replaces what its keys have without a look at their values, most likely.
    fn replaces(request: &Self::Request<'_>) -> bool;

    /// Whether nobody else may be in a turn while this is executed.
    fn is_exclusive(request: &Self::Request<'_>) -> bool;

    /// Executes a request and appends its answer. With [`Full`] nothing was answered: there may be
    /// room in the next turn, in which to try once more.
    fn execute(request: &Self::Request<'_>, context: &mut Context<'_, T>) -> Result<(), Full>;

    /// Gives up a request for which there is no room, not even in another turn.
    fn out_of_memory(request: &Self::Request<'_>, context: &mut Context<'_, T>);
}
