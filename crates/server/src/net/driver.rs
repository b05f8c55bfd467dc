//! The interface between connections and the commands of a protocol.

use super::connection::Connection;
pub(crate) use super::decoders::{Decoders, Decodes};
use crate::cluster::{Admission, Forward};
use crate::full::Full;
use crate::span::Span;
use crate::state::{MemcachedState, Server};
use nuthatch_cache::{BatchKey, Guard};

/// What the next bytes of a connection contain.
pub(crate) enum Step<R> {
    /// A request, or an error that is replied in its place.
    Request {
        /// The request.
        request: R,
        /// The number of bytes that it takes.
        consumed: usize,
    },
    /// Bytes that need no reply.
    Skip {
        /// The number of bytes.
        consumed: usize,
    },
    /// An incomplete request.
    More,
}

/// The context in which a request is executed.
pub(crate) struct Context<'a, T: Decoders> {
    pub(crate) guard: &'a Guard<'a>,
    pub(crate) connection: &'a mut Connection<T>,
    pub(crate) server: &'a Server,
    pub(crate) memcache: &'a MemcachedState,
    /// The arguments of all requests of the batch, each relative to its request.
    pub(crate) spans: &'a [Span],
    pub(crate) known: Known<'a>,
}

/// What is known of a request before it is executed.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// What was checked of the slots of the request.
    pub(crate) admission: Admission,
    /// What the prefetch found of the first keys of the request, in their order and without those
    /// of snapshots.
    pub(crate) prefetched: &'a [BatchKey],
}

impl Known<'_> {
    /// Returns what is known of a request that was executed before, and is executed again.
    pub(crate) fn of_retry(is_permitted: bool) -> Self {
        Self { admission: Admission::of_request(is_permitted, false), prefetched: &[] }
    }
}

/// A protocol: decodes requests, executes them and writes their replies.
///
/// Batches are compiled once for each protocol, so that no code of one protocol slows down the
/// requests of another.
pub(crate) trait Driver<T: Decoders> {
    /// A decoded request, which borrows from the received bytes.
    type Request<'b>;

    /// Decodes the next step of `bytes`, which are not empty.
    fn next<'b>(
        connection: &mut Connection<T>,
        bytes: &'b [u8],
        spans: &mut Vec<Span>,
    ) -> Step<Self::Request<'b>>;

    /// Calls `each` with each key that a request looks up, until it returns false.
    fn keys(request: &Self::Request<'_>, spans: &[Span], each: impl FnMut(&[u8]) -> bool);

    /// Calls `each` with each key that a request needs, also those of requests that it executes.
    fn all_keys(
        request: &Self::Request<'_>,
        _: &Connection<T>,
        spans: &[Span],
        mut each: impl FnMut(&[u8]),
    ) {
        Self::keys(request, spans, |key| {
            each(key);
            true
        });
    }

    /// Returns whether the client is permitted to execute the request with all its keys, as far as
    /// is known before it is executed.
    fn is_permitted(
        request: &Self::Request<'_>,
        connection: &Connection<T>,
        server: &Server,
        spans: &[Span],
    ) -> bool;

    /// Returns whether the request probably replaces items without reading their values.
    fn replaces(request: &Self::Request<'_>) -> bool;

    /// Returns whether no other thread may hold an epoch guard while the request is executed.
    fn is_exclusive(request: &Self::Request<'_>) -> bool;

    /// Returns whether the request must find all its keys in memory, since it may change something
    /// before it needs the last of them: one that changes several keys, or a transaction.
    fn changes_several(_: &Self::Request<'_>) -> bool {
        false
    }

    /// Executes a request and appends its reply. With [`Full`] nothing was replied: the caller
    /// renews the guard and tries once more.
    fn execute(request: &Self::Request<'_>, context: &mut Context<'_, T>) -> Result<(), Full>;

    /// Returns what the owners of its slots execute for a request that has to wait for
    /// [them](crate::state::ClusterWait::Owner). `bytes` are those of the request, without a value
    /// that was received in place.
    fn forward(
        _: &Self::Request<'_>,
        _: &Connection<T>,
        _: &Server,
        _: &[Span],
        _bytes: &[u8],
    ) -> Option<Forward> {
        None
    }

    /// Refuses a request for which there is no memory even after the guard was renewed.
    fn out_of_memory(request: &Self::Request<'_>, context: &mut Context<'_, T>);
}
