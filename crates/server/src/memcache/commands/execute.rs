//! From a request to its answer.

use super::refusal::{Refusal, Result};
use super::time::End;
use super::{Call, Next, meta, stats, text};
use crate::full::Full;
use crate::memcache::reply::{self, Line};
use crate::memcache::{
    Arith, Direction, Error, KeyBuffer, Meta, MetaVerb, Request, Store, StoreMode, TooLarge,
};
use crate::state::OtherRequest;

/// Executes a request and appends its answer. With [`Full`] nothing was answered: there may be room
/// in the next turn, in which to try once more; then [`out_of_memory`].
#[inline]
pub fn execute(call: &mut Call<'_>, request: &Request<'_>) -> std::result::Result<Next, Full> {
    call.shared.flush_if_due(call.guard);
    let start = call.out.len();
    match run(call, request) {
        Ok(next) => Ok(next),
        Err(Refusal::Full) => {
            call.truncate_output(start);
            Err(Full)
        }
        Err(Refusal::Answer(error)) => {
            call.truncate_output(start);
            refuse(call, request, error);
            Ok(Next::Continue)
        }
    }
}

/// Answers a request for which there is no room, not even in another turn.
pub fn out_of_memory(call: &mut Call<'_>, request: &Request<'_>) {
    refuse(call, request, Error::OutOfMemory);
}

/// The keys that a request looks up, to be hashed and asked for ahead.
#[inline]
pub fn keys<'r>(request: &Request<'r>, room: &'r mut KeyBuffer) -> impl Iterator<Item = &'r [u8]> {
    let (one, many) = match request {
        Request::Get(get) => (None, Some(get.keys)),
        Request::Store(Store { key, .. })
        | Request::Arith(Arith { key, .. })
        | Request::Touch { key, .. }
        | Request::Delete { key, .. } => (Some(*key), None),
        Request::Meta(meta) => (Some(meta.key.bytes(room)), None),
        _ => (None, None),
    };
    one.into_iter().chain(many.into_iter().flatten())
}

/// Whether a request replaces what its key has without a look at the value, most likely.
#[inline]
pub fn replaces(request: &Request<'_>) -> bool {
    match request {
        Request::Store(_) | Request::Delete { .. } => true,
        Request::Meta(meta) => matches!(meta.verb, MetaVerb::Set(_) | MetaVerb::Delete),
        _ => false,
    }
}

/// What a request is counted as, and its bytes, about.
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
            call.answer(*noreply, if was_there { Line::Deleted } else { Line::NotFound });
        }
        Request::FlushAll { exptime, noreply } => {
            let end = End::new(*exptime, call.guard.now_ms());
            call.shared.flush_at(call.guard, end.0);
            call.answer(*noreply, Line::Ok);
        }
        Request::Stats { args } => stats::stats(call, args),
        Request::Version => reply::version(call.out, stats::COMPATIBLE_VERSION),
        // There is nothing to say more or less of.
        Request::Verbosity { noreply, .. } => call.answer(*noreply, Line::Ok),
        Request::Noop => reply::line(call.out, Line::Noop),
        Request::TooLarge(_) => return Err(Refusal::Answer(Error::TooLarge)),
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

/// The key whose value was to be replaced by another, whatever it was. When the new one cannot be
/// stored, the old one must go, so that nobody gets it for the new one.
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

/// Whether not even errors are answered. Quiet meta requests get theirs.
fn noreply(request: &Request<'_>) -> bool {
    match *request {
        Request::Store(Store { noreply, .. })
        | Request::Arith(Arith { noreply, .. })
        | Request::TooLarge(TooLarge { noreply, .. })
        | Request::Touch { noreply, .. } => noreply,
        _ => false,
    }
}
