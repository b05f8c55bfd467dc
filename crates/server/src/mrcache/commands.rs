//! The commands of mrcache: get and set. A set has no reply.
//!
//! As in mrcache, the values of `SETZ` are stored compressed, even if the server compresses no
//! others, and `GETZ` replies with the raw value. So does `GET` here, as all other protocols.

use super::{Framing, Request};
use crate::full::Full;
use crate::output::ZeroCopyValues;
use crate::state::{OtherRequest, Server, SnapshotKey, values};
use nuthatch_cache::{Error, Guard, Outcome, Result as CacheResult, Write};

/// Executes a request and appends its reply, if it has one.
///
/// # Errors
///
/// [`Full`] if there is no memory. The request had no effect then. The caller renews the guard and
/// calls this once more, and after a second failure calls [`out_of_memory`].
#[inline]
pub fn execute(
    (guard, server): (&Guard<'_>, &Server),
    framing: Framing,
    request: &Request<'_>,
    (out, zero_copy): (&mut Vec<u8>, &mut ZeroCopyValues),
) -> Result<(), Full> {
    match *request {
        Request::Get { key } | Request::GetZ { key } => {
            if let Some(key) = server.snapshot_key(key) {
                reply_snapshot(server, framing, key, out);
                return Ok(());
            }
            let start = out.len();
            // The length of a value may exceed the field if another protocol stored it.
            let item = guard
                .get(key)
                .filter(|item| framing.value_header(out, values::raw_len(item)).is_some());
            let sent = item.map(|item| values::send((guard, server), &item, (out, zero_copy)));
            if !matches!(sent, Some(Ok(()))) {
                // The protocol has no error reply for a value that cannot be decompressed.
                out.truncate(start);
                framing.miss(out);
            }
            Ok(())
        }
        Request::Set { key, value } => {
            finish_set(guard, request, values::set((guard, server), key, value, &Write::new()))
        }
        Request::SetZ { key, value } => {
            let write = Write::new();
            let stored = values::set_compressed((guard, server), key, value, &write);
            finish_set(guard, request, stored)
        }
        // The counters of the server are available as metrics.
        Request::Stat => Ok(()),
    }
}

/// Replies with the value of a key of a snapshot. A damaged one is a miss: the protocol has no
/// error replies.
fn reply_snapshot(server: &Server, framing: Framing, key: SnapshotKey<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let read = key.text(
        || server.max_reply_len(),
        |text| {
            let text = text?;
            framing.value_header(out, text.len())?;
            out.extend_from_slice(text);
            Some(())
        },
    );
    if !matches!(read, Ok(Some(()))) {
        out.truncate(start);
        framing.miss(out);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the caller has no other use for it")]
fn finish_set(
    guard: &Guard<'_>,
    request: &Request<'_>,
    stored: CacheResult<Outcome>,
) -> Result<(), Full> {
    match stored {
        Ok(_) => Ok(()),
        Err(Error::Full | Error::OnDisk) => Err(Full),
        Err(_) => {
            out_of_memory(guard, request);
            Ok(())
        }
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

/// Returns the RESP command whose permission a request needs.
pub(crate) fn command(request: &Request<'_>) -> &'static str {
    if writes(request) { "set" } else { "get" }
}

/// Returns whether a request stores a value.
pub fn writes(request: &Request<'_>) -> bool {
    matches!(request, Request::Set { .. } | Request::SetZ { .. })
}
