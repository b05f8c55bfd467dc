//! The commands of mrcache: get and set. A set has no reply.
//!
//! mrcache stores the values of `SETZ` compressed. Here `SETZ` and `GETZ` are the same as `SET` and
//! `GET`: nothing is compressed, and other protocols read the same value.

use super::{Framing, Request};
use crate::full::Full;
use crate::output::ZeroCopyValues;
use crate::state::OtherRequest;
use nuthatch_cache::{Cache, Error, Guard, Write};
use std::sync::Arc;

/// Executes a request and appends its reply, if it has one.
///
/// # Errors
///
/// [`Full`] if there is no memory. The request had no effect then. The caller renews the guard and
/// calls this once more, and after a second failure calls [`out_of_memory`].
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
            // The length of a value may exceed the field if another protocol stored it.
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
                Err(Error::Full | Error::OnDisk) => Err(Full),
                Err(_) => {
                    out_of_memory(guard, request);
                    Ok(())
                }
            }
        }
        // The counters of the server are available as metrics.
        Request::Stat => Ok(()),
    }
}

/// Ends a request for which there is no memory. The protocol has no error reply, so the old
/// value of the key is removed: otherwise clients would take it for the new one.
pub fn out_of_memory(guard: &Guard<'_>, request: &Request<'_>) {
    if let Request::Set { key, .. } | Request::SetZ { key, .. } = request {
        guard.remove(key);
    }
}

/// Returns the key that a request looks up, for prefetching.
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

/// Returns the kind under which a request is counted, and the approximate length of the request in
/// bytes.
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

/// Returns whether a request stores a value.
pub fn writes(request: &Request<'_>) -> bool {
    matches!(request, Request::Set { .. } | Request::SetZ { .. })
}
