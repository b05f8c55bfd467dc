//! The text commands over keys.

use super::Call;
use super::arithmetic::{Counted, Counting};
use super::refusal::{OUT_OF_MEMORY, Refusal, Result};
use super::rewrite::rewritten;
use super::store::{Stored, Storing};
use super::time::End;
use crate::memcache::reply::{self, Line};
use crate::memcache::{Arith, Error, Get, Store};
use crate::state::update;
use crate::state::values::raw_len;

/// The CAS number of all values of snapshots, which no request can replace.
pub(crate) const SNAPSHOT_CAS: u64 = 0;

/// Executes `get`, `gets`, `gat` and `gats`.
#[inline]
pub(crate) fn get(call: &mut Call<'_>, get: &Get<'_>) -> Result {
    let max = call.out.len() + call.server.max_reply_len();
    let mut all_prefetched = call.prefetched.iter();
    for key in get.keys {
        if let Some(found) = call.server.snapshot_key(key) {
            call.snapshot_value((found, key), get.cas.then_some(SNAPSHOT_CAS))?;
            continue;
        }
        let prefetched = all_prefetched.next();
        if let Some(exptime) = get.exptime {
            get_and_touch(call, key, exptime, get.cas)?;
        } else if get.cas {
            if let Some((item, cas)) = call.guard.get_with_cas(key)? {
                reply::value_header(call.out, key, item.flags(), raw_len(&item), Some(cas));
                call.value(&item)?;
            }
        } else if let Some(item) = call.item(key, prefetched) {
            reply::value_header(call.out, key, item.flags(), raw_len(&item), None);
            call.value(&item)?;
        }
        if call.out.len() > max {
            return Err(Refusal::Reply(Error::ReplyTooLong));
        }
    }
    reply::line(call.out, Line::End);
    Ok(())
}

fn get_and_touch(call: &mut Call<'_>, key: &[u8], exptime: i64, with_cas: bool) -> Result {
    let start = call.out.len();
    let (guard, out) = (call.guard, &mut *call.out);
    // Counts the lookup, which an update does not.
    if guard.get(key).is_none() && guard.confirm_missing(key) {
        return Ok(());
    }
    let end = End::new(exptime, guard.now_ms());
    let touched = update(
        (guard, call.server),
        key,
        |old| old,
        |item, value| {
            // Removes the reply of an earlier attempt, which is about another item.
            out.truncate(start);
            let Some(item) = item else { return (None, ()) };
            let cas = item.cas().or_else(|| with_cas.then(|| guard.new_cas()));
            reply::value(out, key, item.flags(), item.value(), cas.filter(|_| with_cas));
            (Some(rewritten(&item, end, cas, value)), ())
        },
    )?;
    touched.ok_or(OUT_OF_MEMORY)
}

/// Executes `set`, `add`, `replace`, `append`, `prepend` and `cas`.
pub(crate) fn store(call: &mut Call<'_>, store: &Store<'_>) -> Result {
    let storing = Storing {
        mode: store.mode,
        key: store.key,
        value: store.value,
        flags: store.flags,
        end: End::new(store.exptime, call.guard.now_ms()),
        compare: store.cas,
        cas: None,
        invalidate: false,
        vivify: None,
    };
    let line = match storing.store(call.place())? {
        Stored::Yes { .. } => Line::Stored,
        Stored::No => Line::NotStored,
        Stored::Exists => Line::Exists,
        Stored::NotFound => Line::NotFound,
    };
    call.reply_line(store.noreply, line);
    Ok(())
}

/// Executes `incr` and `decr`.
pub(crate) fn arith(call: &mut Call<'_>, arith: &Arith<'_>) -> Result {
    let counting = Counting {
        key: arith.key,
        direction: arith.direction,
        delta: arith.delta,
        end: None,
        compare: None,
        cas: None,
        vivify: None,
    };
    match counting.count(call.place())? {
        Counted::To { number, .. } if !arith.noreply => reply::number(call.out, number),
        Counted::To { .. } => {}
        Counted::NotFound | Counted::Exists => call.reply_line(arith.noreply, Line::NotFound),
    }
    Ok(())
}

/// Executes `touch key exptime`.
pub(crate) fn touch(call: &mut Call<'_>, key: &[u8], exptime: i64, noreply: bool) -> Result {
    let end = End::new(exptime, call.guard.now_ms());
    let was_there = update(
        call.place(),
        key,
        |old| old,
        |item, value| (item.map(|item| rewritten(&item, end, item.cas(), value)), item.is_some()),
    )?;
    let was_there = was_there.ok_or(OUT_OF_MEMORY)?;
    call.reply_line(noreply, if was_there { Line::Touched } else { Line::NotFound });
    Ok(())
}
