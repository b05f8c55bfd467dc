//! The meta commands `ms`, `md`, `ma` and `me`. `mg` is in its own file.

use super::arithmetic::{Counted, Counting};
use super::refusal::{OUT_OF_MEMORY, Result};
use super::rewrite::{STALE, write};
use super::store::{Stored, Storing};
use super::time::End;
use super::{Call, meta_get};
use crate::memcache::meta_reply::{self, Item, Outcome};
use crate::memcache::reply::LINE_END;
use crate::memcache::{Direction, KeyBuffer, Meta, MetaVerb, StoreMode};
use crate::state::new_value::{removal, update};

/// Executes a meta command.
#[inline]
pub(crate) fn run(call: &mut Call<'_>, request: &Meta<'_>) -> Result {
    let mut room = KeyBuffer::default();
    let key = request.key.bytes(&mut room);
    match request.verb {
        MetaVerb::Get => meta_get::get(call, request, key),
        MetaVerb::Set(mode) => set(call, request, key, mode),
        MetaVerb::Delete => delete(call, request, key),
        MetaVerb::Arith(direction) => arith(call, request, key, direction),
        MetaVerb::Debug => debug(call, request, key),
    }
}

/// Executes `ms`.
fn set(call: &mut Call<'_>, request: &Meta<'_>, key: &[u8], mode: StoreMode) -> Result {
    let (flags, now_ms) = (request.flags, call.guard.now_ms());
    let cas = call.cas_to_store(&request.flags);
    let storing = Storing {
        mode,
        key,
        value: request.value,
        flags: flags.client_flags(),
        end: flags.exptime().map_or(End(None), |exptime| End::new(exptime, now_ms)),
        compare: flags.compare_cas(),
        cas,
        invalidate: flags.invalidate(),
        vivify: flags.vivify().map(|exptime| End::new(exptime, now_ms)),
    };
    let mut item = Item { cas: cas.unwrap_or(0), ..Item::default() };
    let outcome = match storing.store(call.place())? {
        Stored::Yes { len } => {
            item.len = len;
            Outcome::Done(&item)
        }
        Stored::No => Outcome::NotStored,
        Stored::Exists => Outcome::Exists,
        Stored::NotFound => Outcome::NotFound,
    };
    meta_reply::reply(call.out, request, outcome);
    Ok(())
}

/// Executes `md`: removes the item, removes its value, or marks it as stale.
fn delete(call: &mut Call<'_>, request: &Meta<'_>, key: &[u8]) -> Result {
    const DONE: Outcome<'_> = Outcome::Done(&Item {
        len: 0,
        cas: 0,
        client_flags: 0,
        ttl_secs: None,
        idle_secs: 0,
        hit_before: false,
        stale: false,
        renewal: meta_reply::Renewal::None,
    });
    let (flags, guard) = (request.flags, call.guard);
    let (invalidate, compare) = (flags.invalidate(), flags.compare_cas());
    let outcome = if !invalidate && !flags.remove_value() && compare.is_none() {
        if guard.remove(key) { DONE } else { Outcome::NotFound }
    } else {
        let len = |old| if flags.remove_value() { 0 } else { old };
        let outcome = update((guard, call.server), key, len, |item, value| {
            let Some(item) = item else { return (None, Outcome::NotFound) };
            if compare.is_some() && compare != item.cas() {
                return (None, Outcome::Exists);
            }
            if !invalidate && !flags.remove_value() {
                return (Some(removal()), DONE);
            }
            let end = match flags.exptime() {
                Some(exptime) => End::new(exptime, guard.now_ms()),
                None => End::of(&item),
            };
            // Without the CAS number, so that no client stores a value that was derived from the
            // old item.
            let mut write = write(end, flags.new_cas());
            if !flags.remove_value() {
                value.extend_from_slice(item.value());
                write = write.flags(item.flags());
            }
            (Some(if invalidate { write.protocol_bits(STALE) } else { write }), DONE)
        })?;
        outcome.ok_or(OUT_OF_MEMORY)?
    };
    meta_reply::reply(call.out, request, outcome);
    Ok(())
}

/// Executes `ma`.
fn arith(call: &mut Call<'_>, request: &Meta<'_>, key: &[u8], direction: Direction) -> Result {
    let (flags, now_ms) = (request.flags, call.guard.now_ms());
    let cas = call.cas_to_store(&request.flags);
    let vivify = flags.vivify();
    let counting = Counting {
        key,
        direction,
        delta: flags.delta(),
        end: flags.exptime().map(|exptime| End::new(exptime, now_ms)),
        compare: flags.compare_cas(),
        cas,
        vivify: vivify.map(|exptime| (flags.initial(), End::new(exptime, now_ms))),
    };
    let mut digits = itoa::Buffer::new();
    let mut text = "";
    let mut item = Item { cas: cas.unwrap_or(0), ..Item::default() };
    let outcome = match counting.count(call.place())? {
        Counted::To { number, end } => {
            text = digits.format(number);
            item.len = text.len();
            item.ttl_secs = end.ttl_secs(now_ms);
            Outcome::Done(&item)
        }
        Counted::NotFound => Outcome::NotFound,
        Counted::Exists => Outcome::Exists,
    };
    if meta_reply::reply(call.out, request, outcome) {
        call.out.extend_from_slice(text.as_bytes());
        call.out.extend_from_slice(LINE_END);
    }
    Ok(())
}

/// Executes `me`. There are no slab classes, and the overhead of an item is not reported.
fn debug(call: &mut Call<'_>, request: &Meta<'_>, key: &[u8]) -> Result {
    if let Some(key) = call.server.snapshot_key(key) {
        let stored = key.stored_len()?.map(|stored_len| meta_reply::Stored {
            item: Item::default(),
            class: 1,
            stored_len,
        });
        meta_reply::debug(call.out, request, stored.as_ref());
        return Ok(());
    }
    let stored = call.guard.peek(key).map(|item| meta_reply::Stored {
        item: meta_get::facts(&item, call.guard.now_ms()),
        class: 1,
        stored_len: key.len() + item.value().len(),
    });
    meta_reply::debug(call.out, request, stored.as_ref());
    Ok(())
}
