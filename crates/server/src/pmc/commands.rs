//! The commands of poor-man's-cache in its own messages. RESP messages are executed by
//! [`commands`].
//!
//! [`commands`]: crate::resp::commands

use super::{Reply, Request, Span};
use crate::full::Full;
use crate::output::ZeroCopyValues;
use crate::resp::commands::Client;
use crate::state::{Denied, OtherRequest, Server, SnapshotKey, values};
use nuthatch_cache::{Error, Guard, Item, Write};

/// Executes the request of a message and appends its reply.
///
/// # Errors
///
/// [`Full`] if there is no memory. The request had no effect and got no reply then. The caller
/// renews the guard and calls this once more, and after a second failure calls [`out_of_memory`].
#[inline]
pub fn execute(
    (guard, server): (&Guard<'_>, &Server),
    message: &[u8],
    request: Request,
    (out, zero_copy): (&mut Vec<u8>, &mut ZeroCopyValues),
) -> Result<(), Full> {
    let part = |span: Span| span.of(message).unwrap_or_default();
    if let Some(found) = key(message, request).and_then(|key| server.snapshot_key(key)) {
        execute_on_snapshot((server, found), message, request, out);
        return Ok(());
    }
    let mut reply = Reply::new(out);
    match request {
        Request::Get { key } => match guard.get(part(key)) {
            Some(item) if item.is_compressed() => reply_decompressed(server, &item, out),
            Some(item) if reply.takes(item.value()) => {
                zero_copy.value(guard, &server.cache, &item, out);
                Reply::new(out).value_end();
            }
            Some(_) => {}
            None => reply.miss(),
        },
        Request::Set { key, value } => {
            match values::set((guard, server), part(key), part(value), &Write::new()) {
                Ok(_) => reply.ok(),
                Err(Error::Full | Error::OnDisk) => return Err(Full),
                Err(error) => refuse(guard, part(key), &error, &mut reply),
            }
        }
        Request::Del { key } if guard.remove(part(key)) => reply.ok(),
        Request::Del { .. } => reply.no_such_key(),
        Request::Fault(fault) => reply.fault(fault),
    }
    Ok(())
}

/// Executes a request with a key of a snapshot.
fn execute_on_snapshot(
    (server, found): (&Server, SnapshotKey<'_>),
    message: &[u8],
    request: Request,
    out: &mut Vec<u8>,
) {
    if !matches!(request, Request::Get { .. }) {
        let key = key(message, request).unwrap_or_default();
        let refused = server.snapshots.as_ref().and_then(|snapshots| snapshots.refuse_write(key));
        return Reply::new(out).error(&refused.unwrap_or_default());
    }
    let start = out.len();
    let read = found.text(
        || server.max_reply_len(),
        |text| {
            let mut reply = Reply::new(out);
            match text {
                Some(text) if reply.takes(text) => {
                    out.extend_from_slice(text);
                    Reply::new(out).value_end();
                }
                Some(_) => {}
                None => reply.miss(),
            }
        },
    );
    if let Err(error) = read {
        out.truncate(start);
        Reply::new(out).error(&error.to_string());
    }
}

/// Replies with a value that is stored compressed.
fn reply_decompressed(server: &Server, item: &Item<'_>, out: &mut Vec<u8>) {
    let mut value = Vec::new();
    let decompressed = server.compression.decompress(item, &mut value);
    let mut reply = Reply::new(out);
    match decompressed {
        Ok(()) if reply.takes(&value) => {
            out.extend_from_slice(&value);
            Reply::new(out).value_end();
        }
        Ok(()) => {}
        Err(error) => reply.error(&error.to_string()),
    }
}

/// Returns whether a message may be executed, and replies if it may not. Clients log in with `AUTH`
/// of RESP, on the same connection.
pub fn admit(
    client: &mut Client,
    server: &Server,
    (message, request): (&[u8], Request),
    out: &mut Vec<u8>,
) -> bool {
    let keys = key(message, request).into_iter();
    let text = match client.admit(server, command(request), keys) {
        Ok(()) => return true,
        Err(Denied::All) => "Authentication required",
        Err(Denied::Command) => "No permission to run this command",
        Err(Denied::Key) => "No permission to access this key",
    };
    Reply::new(out).error(text);
    false
}

/// Returns whether a message may be executed, and changes nothing.
pub(crate) fn may_execute(
    client: &Client,
    server: &Server,
    (message, request): (&[u8], Request),
) -> bool {
    client.may(server, command(request), key(message, request).into_iter())
}

/// Returns the RESP command whose permission a message needs.
fn command(request: Request) -> &'static str {
    match request {
        Request::Get { .. } => "get",
        Request::Set { .. } => "set",
        Request::Del { .. } => "del",
        Request::Fault(_) => "ping",
    }
}

/// Replies with an error to a request for which there is no memory even after the guard was
/// renewed. Removes the old value if the request would have replaced it.
pub fn out_of_memory(guard: &Guard<'_>, message: &[u8], request: Request, out: &mut Vec<u8>) {
    let key = key(message, request).unwrap_or_default();
    refuse(guard, key, &Error::Full, &mut Reply::new(out));
}

/// Removes the old value, so that no client takes it for the one that could not be stored, and
/// replies with an error.
fn refuse(guard: &Guard<'_>, key: &[u8], error: &Error, reply: &mut Reply<'_>) {
    guard.remove(key);
    reply.error(&error.to_string());
}

/// Returns the key that a request looks up, for prefetching.
#[inline]
pub fn key(message: &[u8], request: Request) -> Option<&[u8]> {
    match request {
        Request::Get { key } | Request::Set { key, .. } | Request::Del { key } => key.of(message),
        Request::Fault(_) => None,
    }
}

/// Returns the kind under which a request is counted.
#[inline]
pub fn kind(request: Request) -> OtherRequest {
    match request {
        Request::Get { .. } => OtherRequest::PmcGet,
        Request::Set { .. } => OtherRequest::PmcSet,
        Request::Del { .. } => OtherRequest::PmcDel,
        Request::Fault(_) => OtherRequest::PmcFault,
    }
}
