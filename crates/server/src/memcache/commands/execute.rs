//! Executes requests.

use super::refusal::{Refusal, Result};
use super::resp_command::command;
use super::time::End;
use super::{Call, Next, meta, stats, text};
use crate::full::Full;
use crate::memcache::reply::{self, Line};
use crate::memcache::{
    Arith, Direction, Error, KeyBuffer, Meta, MetaVerb, Request, Store, StoreMode, TooLarge,
};
use crate::resp::commands::writes;
use crate::state::{OtherRequest, Snapshots};

/// Executes a request and appends its reply.
///
/// # Errors
///
/// [`Full`] if there is no memory. The request had no effect and got no reply then. The caller
/// renews the guard and calls this once more, and after a second failure calls [`out_of_memory`].
#[inline]
pub fn execute(call: &mut Call<'_>, request: &Request<'_>) -> std::result::Result<Next, Full> {
    call.shared.flush_if_due(call.guard);
    let start = call.out.len();
    if let Some(snapshots) = &call.server.snapshots
        && let Some(text) = refused_by_snapshots(snapshots, request)
    {
        if !noreply(request) {
            reply::client_error(call.out, &text);
        }
        return Ok(Next::Continue);
    }
    let result = run(call, request);
    if call.guard.needs_disk() {
        // The request found less than there is.
        call.truncate_output(start);
        return Err(Full);
    }
    match result {
        Ok(next) => Ok(next),
        Err(Refusal::Full) => {
            call.truncate_output(start);
            Err(Full)
        }
        Err(Refusal::Reply(error)) => {
            call.truncate_output(start);
            refuse(call, request, error);
            Ok(Next::Continue)
        }
    }
}

/// Replies with an error to a request for which there is no memory even after the guard was
/// renewed. Removes the old value if the request would have replaced it unconditionally.
pub fn out_of_memory(call: &mut Call<'_>, request: &Request<'_>) {
    refuse(call, request, Error::OutOfMemory);
}

/// Returns the error for a request that would write to a key of a snapshot.
#[inline(never)]
fn refused_by_snapshots(snapshots: &Snapshots, request: &Request<'_>) -> Option<String> {
    if !writes(command(request)) {
        return None;
    }
    let mut room = KeyBuffer::default();
    keys(request, &mut room).find_map(|key| snapshots.refuse_write(key))
}

/// Returns the keys that a request looks up, for prefetching.
#[inline]
pub fn keys<'r>(
    request: &Request<'r>,
    room: &'r mut KeyBuffer,
) -> impl Iterator<Item = &'r [u8]> + Clone {
    let (one, many) = match request {
        Request::Get(get) => (None, Some(get.keys)),
        Request::Store(Store { key, .. })
        | Request::Arith(Arith { key, .. })
        | Request::Touch { key, .. }
        | Request::Delete { key, .. } => (Some(*key), None),
        Request::Meta(meta) => (Some(meta.key.bytes(room)), None),
        Request::TooLarge(TooLarge { key, remove: true, .. }) => (Some(key.bytes(room)), None),
        _ => (None, None),
    };
    one.into_iter().chain(many.into_iter().flatten())
}

/// Returns whether a request probably replaces its item without reading the value.
#[inline]
pub fn replaces(request: &Request<'_>) -> bool {
    match request {
        Request::Store(_) | Request::Delete { .. } => true,
        Request::Meta(meta) => matches!(meta.verb, MetaVerb::Set(_) | MetaVerb::Delete),
        _ => false,
    }
}

/// Returns the kind under which a request is counted, and the approximate length of the request in
/// bytes; `usize::MAX` for a request that must be timed alone.
#[inline]
pub fn kind(request: &Request<'_>) -> (OtherRequest, usize) {
    match request {
        Request::Get(get) => (
            if get.exptime.is_some() { OtherRequest::Gat } else { OtherRequest::Get },
            get.keys.len(),
        ),
        Request::Meta(meta) => (
            match meta.verb {
                MetaVerb::Get => OtherRequest::Mg,
                MetaVerb::Set(_) => OtherRequest::Ms,
                MetaVerb::Delete => OtherRequest::Md,
                MetaVerb::Arith(_) => OtherRequest::Ma,
                MetaVerb::Debug => OtherRequest::Me,
            },
            meta.value.len(),
        ),
        Request::Store(store) => (
            match store.mode {
                StoreMode::Set if store.cas.is_some() => OtherRequest::Cas,
                StoreMode::Set => OtherRequest::Set,
                StoreMode::Add => OtherRequest::Add,
                StoreMode::Replace => OtherRequest::Replace,
                StoreMode::Append => OtherRequest::Append,
                StoreMode::Prepend => OtherRequest::Prepend,
            },
            store.value.len(),
        ),
        Request::Arith(Arith { direction: Direction::Increment, .. }) => (OtherRequest::Incr, 0),
        Request::Arith(_) => (OtherRequest::Decr, 0),
        Request::Touch { .. } => (OtherRequest::Touch, 0),
        Request::Delete { .. } => (OtherRequest::Delete, 0),
        Request::FlushAll { .. } => (OtherRequest::FlushAll, usize::MAX),
        Request::Stats { .. } => (OtherRequest::Stats, usize::MAX),
        Request::Version => (OtherRequest::Version, 0),
        Request::Verbosity { .. } => (OtherRequest::Verbosity, 0),
        Request::Noop => (OtherRequest::Mn, 0),
        Request::TooLarge(_) => (OtherRequest::Set, 0),
        Request::Quit => (OtherRequest::Quit, 0),
    }
}

#[inline]
fn run(call: &mut Call<'_>, request: &Request<'_>) -> Result<Next> {
    match request {
        Request::Get(get) => text::get(call, get)?,
        Request::Meta(request) => meta::run(call, request)?,
        Request::Store(store) => text::store(call, store)?,
        Request::Arith(arith) => text::arith(call, arith)?,
        Request::Touch { key, exptime, noreply } => text::touch(call, key, *exptime, *noreply)?,
        Request::Delete { key, noreply } => {
            let was_there = call.guard.remove(key);
            call.reply_line(*noreply, if was_there { Line::Deleted } else { Line::NotFound });
        }
        Request::FlushAll { exptime, noreply } => {
            let end = End::new(*exptime, call.guard.now_ms());
            if let Some(cluster) = &call.server.cluster {
                cluster.note_flush();
            }
            call.shared.flush_at(call.guard, end.0);
            call.reply_line(*noreply, Line::Ok);
        }
        Request::Stats { args } => stats::stats(call, args),
        Request::Version => reply::version(call.out, stats::COMPATIBLE_VERSION),
        // There is no log level to change.
        Request::Verbosity { noreply, .. } => call.reply_line(*noreply, Line::Ok),
        Request::Noop => reply::line(call.out, Line::Noop),
        Request::TooLarge(_) => return Err(Refusal::Reply(Error::TooLarge)),
        Request::Quit => return Ok(Next::Close),
    }
    Ok(Next::Continue)
}

#[cold]
fn refuse(call: &mut Call<'_>, request: &Request<'_>, error: Error) {
    if matches!(error, Error::TooLarge | Error::OutOfMemory) {
        let mut room = KeyBuffer::default();
        if let Some(key) = replaced(request, &mut room) {
            call.guard.remove(key);
        }
    }
    if !noreply(request) {
        reply::error(call.out, error);
    }
}

/// Returns the key that a request replaces unconditionally. If the new value cannot be stored, the
/// old one must be removed, since clients would take it for the new one.
fn replaced<'r>(request: &Request<'r>, room: &'r mut KeyBuffer) -> Option<&'r [u8]> {
    match request {
        Request::Store(Store { mode: StoreMode::Set, cas: None, key, .. }) => Some(key),
        Request::Meta(Meta { verb: MetaVerb::Set(StoreMode::Set), key, flags, .. })
            if flags.compare_cas().is_none() =>
        {
            Some(key.bytes(room))
        }
        Request::TooLarge(TooLarge { key, remove: true, .. }) => Some(key.bytes(room)),
        _ => None,
    }
}

/// Returns whether not even errors are replied. Quiet meta requests do get errors.
pub(crate) fn noreply(request: &Request<'_>) -> bool {
    match *request {
        Request::Store(Store { noreply, .. })
        | Request::Arith(Arith { noreply, .. })
        | Request::TooLarge(TooLarge { noreply, .. })
        | Request::Delete { noreply, .. }
        | Request::Touch { noreply, .. }
        | Request::FlushAll { noreply, .. } => noreply,
        _ => false,
    }
}
