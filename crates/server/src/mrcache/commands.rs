//! The commands of mrcache: get and set, and nothing is answered to a set.
//!
//! `SETZ` and `GETZ` do what `SET` and `GET` do: a client gets what it has stored, and other
//! protocols read the same value. How values are kept in memory is the cache's business.

use super::{Framing, Request};
use crate::full::Full;
use crate::output::ZeroCopyValues;
use crate::state::OtherRequest;
use nuthatch_cache::{Cache, Error, Guard, Write};
use std::sync::Arc;

/// Executes a request and appends its answer, if there is one. With [`Full`] nothing was done:
/// there may be room in the next turn, in which to try once more; then [`out_of_memory`].
#[inline]
pub fn execute(
    guard: &Guard<'_>,
    framing: Framing,
    request: &Request<'_>,
    (out, zero_copy, cache): (&mut Vec<u8>, &mut ZeroCopyValues, &Arc<Cache>),
) -> Result<(), Full> {
    match *request {
        Request::Get { key } | Request::GetZ { key } => {
            let item = guard.get(key);
            // A value whose length cannot be told was not stored by this protocol.
            match item
                .and_then(|item| framing.value_header(out, item.value().len()).and(Some(item)))
            {
                Some(item) => zero_copy.value(guard, cache, &item, out),
                None => framing.miss(out),
            }
            Ok(())
        }
        Request::Set { key, value } | Request::SetZ { key, value } => {
            match guard.set(key, value, &Write::new()) {
                Ok(_) => Ok(()),
                Err(Error::Full) => Err(Full),
                Err(_) => {
                    out_of_memory(guard, request);
                    Ok(())
                }
            }
        }
        // Its numbers are those of all protocols, and those who read numbers have other ways.
        Request::Stat => Ok(()),
    }
}

/// Gives up a request for which there is no room, not even in another turn. The client is not told:
/// so that nobody gets the old value for the new one, it must go.
pub fn out_of_memory(guard: &Guard<'_>, request: &Request<'_>) {
    if let Request::Set { key, .. } | Request::SetZ { key, .. } = request {
        guard.remove(key);
    }
}

/// The key that a request looks up, to be hashed and asked for ahead.
#[inline]
pub fn key<'b>(request: &Request<'b>) -> Option<&'b [u8]> {
    match request {
        Request::Get { key }
        | Request::Set { key, .. }
        | Request::GetZ { key }
        | Request::SetZ { key, .. } => Some(key),
        Request::Stat => None,
    }
}

/// What a request is counted as, and its bytes, about.
#[inline]
pub fn kind(request: &Request<'_>) -> (OtherRequest, usize) {
    match request {
        Request::Get { .. } => (OtherRequest::MrcacheGet, 0),
        Request::Set { value, .. } => (OtherRequest::MrcacheSet, value.len()),
        Request::GetZ { .. } => (OtherRequest::MrcacheGetZ, 0),
        Request::SetZ { value, .. } => (OtherRequest::MrcacheSetZ, value.len()),
        Request::Stat => (OtherRequest::MrcacheStat, 0),
    }
}

/// Whether a request stores something.
pub fn writes(request: &Request<'_>) -> bool {
    matches!(request, Request::Set { .. } | Request::SetZ { .. })
}
