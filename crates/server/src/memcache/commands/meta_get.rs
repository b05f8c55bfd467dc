//! `mg`: returns the value of an item and its metadata, and decides which client renews it.

use super::Call;
use super::refusal::{OUT_OF_MEMORY, Result};
use super::rewrite::{STALE, WON, rewritten, write};
use super::time::End;
use crate::memcache::Meta;
use crate::memcache::meta_reply::{self, Item as Facts, Outcome, Renewal};
use crate::memcache::reply::LINE_END;
use crate::state::values::raw_len;
use crate::state::{SnapshotKey, update};
use nuthatch_cache::Item;

/// The changes that a request may make.
struct Wants {
    /// The new expiry of the item.
    touch: Option<End>,
    /// The expiry of the item that is created if the key is missing.
    vivify: Option<End>,
    /// An item that expires before this time is to be renewed.
    recache: Option<End>,
    /// The item must have a CAS number.
    cas: bool,
}

impl Wants {
    #[inline]
    fn of(request: &Meta<'_>, now_ms: u64) -> Self {
        let flags = &request.flags;
        let end = |exptime| End::new(exptime, now_ms);
        Self {
            touch: flags.exptime().map(end),
            vivify: flags.vivify().map(end),
            recache: flags.recache().map(end),
            cas: flags.has(b'c'),
        }
    }

    /// Returns whether the client that gets the item must renew it.
    #[inline]
    fn renewal(&self, item: &Item<'_>) -> Renewal {
        let ends = |before| End::of(item).is_before(before);
        match item.protocol_bits() {
            marks if marks & WON != 0 => Renewal::Taken,
            marks if marks & STALE != 0 || self.recache.is_some_and(ends) => Renewal::Won,
            _ => Renewal::None,
        }
    }

    /// Returns whether the item must be written to answer the request.
    #[inline]
    fn change(&self, item: &Item<'_>) -> bool {
        self.touch.is_some()
            || (self.cas && item.cas().is_none())
            || self.renewal(item) == Renewal::Won
    }
}

/// Executes `mg`.
#[inline]
pub(crate) fn get(call: &mut Call<'_>, request: &Meta<'_>, key: &[u8]) -> Result {
    if let Some(found) = call.server.snapshot_key(key) {
        return get_of_snapshot(call, request, found);
    }
    let wants = Wants::of(request, call.guard.now_ms());
    let bump = !request.flags.no_bump();
    let found = if bump { call.item(key, call.prefetched.first()) } else { call.guard.peek(key) };
    match found {
        Some(item) if !wants.change(&item) => {
            let renewal = wants.renewal(&item);
            let facts = Facts { renewal, ..facts(&item, call.guard.now_ms()) };
            if meta_reply::reply(call.out, request, Outcome::Done(&facts)) {
                call.value(&item)?;
            }
        }
        None if wants.vivify.is_none() => {
            meta_reply::reply(call.out, request, Outcome::NotFound);
        }
        _ => {
            let hit_before = found.is_some_and(|item| item.frequency() > 0);
            change(call, request, (key, hit_before), &wants)?;
        }
    }
    Ok(())
}

/// Replies with a value of a snapshot: with flags 0, CAS number 0, and without expiry.
fn get_of_snapshot(call: &mut Call<'_>, request: &Meta<'_>, key: SnapshotKey<'_>) -> Result {
    let out = &mut *call.out;
    Ok(key.text(
        || call.server.max_reply_len(),
        |text| match text {
            Some(text) => {
                let facts = Facts { len: text.len(), ..Facts::default() };
                reply_item(out, request, &facts, text);
            }
            None => {
                meta_reply::reply(out, request, Outcome::NotFound);
            }
        },
    )?)
}

/// Returns the metadata of an item.
#[inline]
pub(crate) fn facts(item: &Item<'_>, now_ms: u64) -> Facts {
    Facts {
        len: raw_len(item),
        cas: item.cas().unwrap_or(0),
        client_flags: item.flags(),
        ttl_secs: End::of(item).ttl_secs(now_ms),
        idle_secs: 0,
        hit_before: item.frequency() > 0,
        stale: item.protocol_bits() & STALE != 0,
        renewal: Renewal::None,
    }
}

#[inline]
fn reply_item(out: &mut Vec<u8>, request: &Meta<'_>, facts: &Facts, value: &[u8]) {
    if meta_reply::reply(out, request, Outcome::Done(facts)) {
        out.extend_from_slice(value);
        out.extend_from_slice(LINE_END);
    }
}

/// Replies with the changed item, and writes it.
fn change(
    call: &mut Call<'_>,
    request: &Meta<'_>,
    (key, hit_before): (&[u8], bool),
    wants: &Wants,
) -> Result {
    let start = call.out.len();
    let made_cas = call.cas_to_store(&request.flags);
    let (guard, out) = (call.guard, &mut *call.out);
    let now_ms = guard.now_ms();
    let changed = update(
        (guard, call.server),
        key,
        |old| old,
        |item, value| {
            // Removes the reply of an earlier attempt, which is about another item.
            out.truncate(start);
            let Some(item) = item else {
                let Some(end) = wants.vivify else {
                    meta_reply::reply(out, request, Outcome::NotFound);
                    return (None, ());
                };
                let facts = Facts {
                    cas: made_cas.unwrap_or(0),
                    ttl_secs: end.ttl_secs(now_ms),
                    renewal: Renewal::Won,
                    ..Facts::default()
                };
                reply_item(out, request, &facts, b"");
                return (Some(write(end, made_cas).protocol_bits(WON)), ());
            };
            let renewal = wants.renewal(&item);
            let end = wants.touch.unwrap_or(End::of(&item));
            let cas = item.cas().or_else(|| wants.cas.then(|| guard.new_cas()));
            let facts = Facts {
                cas: cas.unwrap_or(0),
                ttl_secs: end.ttl_secs(now_ms),
                hit_before,
                renewal,
                ..facts(&item, now_ms)
            };
            reply_item(out, request, &facts, item.value());
            if !wants.change(&item) {
                return (None, ());
            }
            let write = rewritten(&item, end, cas, value);
            let won = renewal == Renewal::Won;
            (Some(if won { write.protocol_bits(item.protocol_bits() | WON) } else { write }), ())
        },
    )?;
    changed.ok_or(OUT_OF_MEMORY)
}
